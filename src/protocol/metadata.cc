#include "protocol/metadata.h"

#include <cstring>

#include "base/check.h"

namespace hoplite {

// One byte of type, one byte with the number of dimensions (and the bit of failures), 8 bytes for each, one byte with the length
// of the name, the name, the text.
constexpr unsigned char kFailureBit = 0x80;
static_assert(kMaxDimensions < kFailureBit);

std::string encode_metadata(const Metadata& metadata) {
  CHECK(metadata.shape.size() <= kMaxDimensions, metadata.shape.size());
  CHECK(metadata.name.size() <= kMaxNameBytes, metadata.name.size());
  if (metadata == Metadata{}) return "";
  std::string bytes;
  bytes.push_back(static_cast<char>(metadata.type));
  bytes.push_back(static_cast<char>(metadata.shape.size() | (metadata.failure ? kFailureBit : 0)));
  const std::size_t at = bytes.size();
  bytes.resize(at + 8 * metadata.shape.size());
  if (!metadata.shape.empty()) std::memcpy(bytes.data() + at, metadata.shape.data(), 8 * metadata.shape.size());
  bytes.push_back(static_cast<char>(metadata.name.size()));
  return bytes + metadata.name + metadata.text;
}

Metadata decode_metadata(std::string_view bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const std::size_t dimensions = bytes.size() < 2 ? 0 : byte(1) & ~kFailureBit;
  const bool typed = bytes.size() >= 3 && byte(0) <= static_cast<unsigned char>(last_enumerator(DType{})) &&
                     dimensions <= kMaxDimensions;
  const std::size_t name_at = typed ? 3 + 8 * dimensions : 0;
  const bool sane = typed && bytes.size() >= name_at && bytes.size() >= name_at + byte(name_at - 1);
  Metadata metadata;
  if (!sane) {
    metadata.text = bytes;
    return metadata;
  }
  metadata.type = static_cast<DType>(byte(0));
  metadata.failure = (byte(1) & kFailureBit) != 0;
  metadata.shape.resize(dimensions);
  if (dimensions != 0) std::memcpy(metadata.shape.data(), bytes.data() + 2, 8 * dimensions);
  metadata.name = bytes.substr(name_at, byte(name_at - 1));
  metadata.text = bytes.substr(name_at + metadata.name.size());
  return metadata;
}

std::string name_in_metadata(const ObjectId& id, std::string_view bytes) {
  if (!id.is_named() || bytes.empty()) return "";
  std::string name = decode_metadata(bytes).name;
  return is_name_of(id, name) ? name : "";
}

}  // namespace hoplite
