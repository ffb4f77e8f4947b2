// The name of an object: 128 bits.
//
//   minted   hi = the node that minted it (its home while it lives), lo = a number unique on that node, top bit 0
//   named    127 bits of a hash of the name, top bit of lo = 1; its home is chosen by hashing among the live nodes
//
// Text form: 32 lower-case hexadecimal digits, hi first. Ids are values: compare, copy, hash and print them freely.
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hoplite {

struct ObjectId {
  std::uint64_t hi = 0;
  std::uint64_t lo = 0;

  static constexpr std::uint64_t kNamedBit = 1ULL << 63;

  // The id of a name: the same name gives the same id on every node, for ever.
  static ObjectId named(std::string_view name);
  // Parses the text form; nullopt if `text` is not 32 hexadecimal digits.
  static std::optional<ObjectId> parse(std::string_view text);
  // What people type: the text form of an id, or else a name.
  static ObjectId from_text(std::string_view text);

  bool is_nil() const { return hi == 0 && lo == 0; }
  bool is_named() const { return (lo & kNamedBit) != 0; }
  std::string to_string() const;

  auto operator<=>(const ObjectId&) const = default;
};

// Ids as an argument: a vector, an array, a span, or a list in braces. It refers to them, for the length of a call.
class ObjectIds : public std::span<const ObjectId> {
 public:
  ObjectIds() = default;
  ObjectIds(const std::initializer_list<ObjectId>& ids)  // NOLINT(google-explicit-constructor): `wait({a, b}, 1)`
      : span(ids.begin(), ids.size()) {}
  template <typename Range>
    requires std::convertible_to<const Range&, std::span<const ObjectId>>
  ObjectIds(const Range& ids) : span(ids) {}  // NOLINT(google-explicit-constructor): `wait(ids, 1)`
};

}  // namespace hoplite

template <>
struct std::hash<hoplite::ObjectId> {
  std::size_t operator()(const hoplite::ObjectId& id) const noexcept {
    return static_cast<std::size_t>(id.hi * 0x9E3779B97F4A7C15ULL ^ id.lo);
  }
};
