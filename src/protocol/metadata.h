// An object's metadata as it travels: what its bytes mean (element type and shape), its name, and the user's own text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hoplite/dtype.h"
#include "protocol/names.h"

namespace hoplite {

constexpr std::size_t kMaxDimensions = 32;
// What type, shape and name add to the user's text.
constexpr std::size_t kMaxTypeBytes = 3 + 8 * kMaxDimensions + kMaxNameBytes;

struct Metadata {
  DType type = DType::kBytes;
  std::vector<std::uint64_t> shape;
  std::string name;  // of a named object, at most kMaxNameBytes
  std::string text;
  bool failure = false;  // the object is a failure: the text is its reason, the bytes what goes with it
  bool operator==(const Metadata&) const = default;
};

// Empty for a Metadata{}.
std::string encode_metadata(const Metadata& metadata);
// What encode_metadata has written; anything else is taken for untyped text.
Metadata decode_metadata(std::string_view bytes);
// The name in an object's encoded metadata; "" if there is none, or it is not this object's.
std::string name_in_metadata(const ObjectId& id, std::string_view bytes);

}  // namespace hoplite
