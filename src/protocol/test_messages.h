// Messages with random fields, and messages in words: for tests, and as seeds for fuzzing.
//
// Both are archives for a message's `fields` (protocol/codec.h) that know nothing about the wire, so that the codec is
// compared with something simpler than itself.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/address.h"
#include "base/node_id.h"
#include "base/random.h"
#include "hoplite/object_id.h"
#include "protocol/codec.h"

namespace hoplite {

class RandomFields {
 public:
  explicit RandomFields(Random& random) : random_(random) {}

  template <typename... Fields>
  void operator()(Fields&... fields) {
    (fill(fields), ...);
  }

 private:
  template <typename T>
    requires std::is_integral_v<T>
  void fill(T& value) {
    // All widths are equally likely, so that small numbers and both ends of the range come up.
    const std::uint64_t bits = random_.next() >> random_.below(64);
    value = static_cast<T>(random_.chance(0.1) ? ~std::uint64_t{0} : bits);
  }
  void fill(bool& value) { value = random_.chance(0.5); }
  template <typename T>
    requires std::is_enum_v<T>
  void fill(T& value) {
    value = static_cast<T>(random_.below(static_cast<std::uint64_t>(last_enumerator(T{})) + 1));
  }
  void fill(std::string& text) {
    text.clear();
    for (std::uint64_t left = random_.below(20); left > 0; --left) text.push_back(static_cast<char>(random_.next()));
  }
  void fill(NodeId& id) { fill(id.value); }
  void fill(NodeRef& ref) { fill(ref.id), fill(ref.incarnation); }
  void fill(ObjectId& id) { fill(id.hi), fill(id.lo); }
  void fill(Address& address) { fill(address.host), fill(address.port); }
  template <typename T>
  void fill(std::vector<T>& items) {
    items.resize(random_.below(5));
    for (T& item : items) fill(item);
  }
  template <typename T>
    requires requires(T& t, RandomFields& archive) { t.fields(archive); }
  void fill(T& message) {
    message.fields(*this);
  }

  Random& random_;
};

class DescribedFields {
 public:
  template <typename... Fields>
  void operator()(Fields&... fields) {
    (describe(fields), ...);
  }
  const std::string& text() const { return text_; }

 private:
  template <typename T>
    requires std::is_integral_v<T>
  void describe(T value) {
    text_ += std::to_string(value) + " ";
  }
  template <typename T>
    requires std::is_enum_v<T>
  void describe(T value) {
    describe(static_cast<std::underlying_type_t<T>>(value));
  }
  void describe(const std::string& text) { text_ += "'" + text + "' "; }
  void describe(const NodeId& id) { text_ += id.to_string() + " "; }
  void describe(const NodeRef& ref) { text_ += ref.to_string() + " "; }
  void describe(const ObjectId& id) { text_ += id.to_string() + " "; }
  void describe(const Address& address) { text_ += address.to_string() + " "; }
  template <typename T>
  void describe(std::vector<T>& items) {
    text_ += "[ ";
    for (T& item : items) describe(item);
    text_ += "] ";
  }
  template <typename T>
    requires requires(T& t, DescribedFields& archive) { t.fields(archive); }
  void describe(T& message) {
    text_ += "{ ";
    message.fields(*this);
    text_ += "} ";
  }

  std::string text_;
};

namespace internal {
template <typename Variant, std::size_t... I>
Variant default_message(std::size_t type, std::index_sequence<I...>) {
  Variant message;
  ((type == I ? static_cast<void>(message.template emplace<I>()) : static_cast<void>(0)), ...);
  return message;
}
}  // namespace internal

// The alternative number `type` of a variant of messages, with random fields.
template <typename Variant>
Variant random_message(std::size_t type, Random& random) {
  auto message = internal::default_message<Variant>(type, std::make_index_sequence<std::variant_size_v<Variant>>());
  RandomFields fields(random);
  std::visit([&](auto& m) { m.fields(fields); }, message);
  return message;
}

// "3: 17 'name' [ ... ]": equal for equal messages only.
template <typename Variant>
std::string describe(Variant message) {
  DescribedFields fields;
  std::visit([&](auto& m) { m.fields(fields); }, message);
  return std::to_string(message.index()) + ": " + fields.text();
}

}  // namespace hoplite
