// One codec for every message: little-endian fields in declaration order, bounds-checked, no allocation beyond what the
// input has paid for.
//
// A message is a plain struct with
//     template <typename Archive> void fields(Archive& archive) { archive(a, b, c); }
// which serves writing and reading. Numbers have fixed width; strings and vectors are a 32-bit count and their elements.
// A reader never trusts a count: it must be backed by bytes that are there, and by the limit of the field's type.
// See docs/adr/0001-codec.md for why this is not protobuf.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "base/node_id.h"
#include "hoplite/object_id.h"

namespace hoplite {

static_assert(std::endian::native == std::endian::little,
              "the wire is little-endian, and so are the machines we run on");

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  template <typename... Fields>
  void operator()(Fields&... fields) {
    (write(fields), ...);
  }

 private:
  template <typename T>
    requires std::is_integral_v<T> || std::is_enum_v<T>
  void write(T value) {
    const std::size_t at = out_.size();
    out_.resize(at + sizeof value);
    std::memcpy(out_.data() + at, &value, sizeof value);
  }
  void write(const std::string& text) {
    write(static_cast<std::uint32_t>(text.size()));
    out_.append(text);
  }
  void write(const NodeId& id) { write(id.value); }
  void write(const NodeRef& ref) { write(ref.id.value), write(ref.incarnation); }
  void write(const ObjectId& id) { write(id.hi), write(id.lo); }
  void write(const Address& address) { write(address.host), write(address.port); }
  template <typename T>
  void write(std::vector<T>& items) {
    write(static_cast<std::uint32_t>(items.size()));
    for (T& item : items) write(item);
  }
  template <typename T>
    requires requires(T& t, Writer& w) { t.fields(w); }
  void write(T& message) {
    message.fields(*this);
  }

  std::string& out_;
};

// Reads what Writer wrote. After the first field that does not fit, `ok()` is false and every further field is left at its
// default.
class Reader {
 public:
  explicit Reader(ByteView in) : in_(in) {}

  template <typename... Fields>
  void operator()(Fields&... fields) {
    (read(fields), ...);
  }

  bool ok() const { return ok_; }
  // What has not been read: a message's payload.
  ByteView rest() const { return in_; }

 private:
  template <typename T>
    requires std::is_integral_v<T>
  void read(T& value) {
    if (!take(&value, sizeof value)) value = T{};
  }
  void read(bool& value) {
    std::uint8_t byte = 0;
    read(byte);
    if (byte > 1) ok_ = false;
    value = byte == 1;
  }
  // `last_enumerator` says which values there are.
  template <typename T>
    requires std::is_enum_v<T>
  void read(T& value) {
    std::underlying_type_t<T> raw{};
    read(raw);
    if (raw > static_cast<std::underlying_type_t<T>>(last_enumerator(T{}))) ok_ = false, raw = {};
    value = static_cast<T>(raw);
  }
  void read(std::string& text) {
    std::uint32_t size = 0;
    read(size);
    if (size > in_.size()) ok_ = false;
    if (!ok_) return;
    text.assign(reinterpret_cast<const char*>(in_.data()), size);
    in_ = in_.subspan(size);
  }
  void read(NodeId& id) { read(id.value); }
  void read(NodeRef& ref) { read(ref.id.value), read(ref.incarnation); }
  void read(ObjectId& id) { read(id.hi), read(id.lo); }
  void read(Address& address) {
    read(address.host), read(address.port);
    if (address.host.size() > 255) ok_ = false;
  }
  template <typename T>
  void read(std::vector<T>& items) {
    std::uint32_t count = 0;
    read(count);
    // Every element takes at least one byte, so a count beyond the bytes left is a lie; and memory grows with what has
    // been read, not with what was promised.
    if (count > in_.size()) ok_ = false;
    items.clear();
    for (std::uint32_t i = 0; ok_ && i < count; ++i) read(items.emplace_back());
  }
  template <typename T>
    requires requires(T& t, Reader& r) { t.fields(r); }
  void read(T& message) {
    message.fields(*this);
  }

  bool take(void* to, std::size_t size) {
    if (!ok_ || in_.size() < size) return ok_ = false;
    std::memcpy(to, in_.data(), size);
    in_ = in_.subspan(size);
    return true;
  }

  ByteView in_;
  bool ok_ = true;
};

}  // namespace hoplite
