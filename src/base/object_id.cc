#include "hoplite/object_id.h"

#include <xxhash.h>

#include "base/hex.h"

namespace hoplite {

ObjectId ObjectId::named(std::string_view name) {
  const XXH128_hash_t hash = XXH3_128bits(name.data(), name.size());
  return {hash.high64, hash.low64 | kNamedBit};
}

std::optional<ObjectId> ObjectId::parse(std::string_view text) {
  if (text.size() != 32) return std::nullopt;
  const auto hi = parse_hex64(text.substr(0, 16));
  const auto lo = parse_hex64(text.substr(16));
  if (!hi || !lo) return std::nullopt;
  return ObjectId{*hi, *lo};
}

ObjectId ObjectId::from_text(std::string_view text) {
  if (const auto id = parse(text)) return *id;
  return named(text);
}

std::string ObjectId::to_string() const { return hex64(hi) + hex64(lo); }

}  // namespace hoplite
