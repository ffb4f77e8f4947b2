#include "protocol/metadata.h"

#include <cstring>

#include "base/check.h"

namespace hoplite {

// One byte of type, one byte with the number of dimensions (and the bit of failures), 8 bytes for each, the text.
constexpr unsigned char kFailureBit = 0x80;
static_assert(kMaxDimensions < kFailureBit);

std::string encode_metadata(const Metadata& metadata) {
  CHECK(metadata.shape.size() <= kMaxDimensions, metadata.shape.size());
  if (metadata == Metadata{}) return "";
  std::string bytes;
  bytes.push_back(static_cast<char>(metadata.type));
  bytes.push_back(static_cast<char>(metadata.shape.size() | (metadata.failure ? kFailureBit : 0)));
  const std::size_t at = bytes.size();
  bytes.resize(at + 8 * metadata.shape.size());
  if (!metadata.shape.empty()) std::memcpy(bytes.data() + at, metadata.shape.data(), 8 * metadata.shape.size());
  return bytes + metadata.text;
}

Metadata decode_metadata(std::string_view bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const std::size_t dimensions = bytes.size() < 2 ? 0 : byte(1) & ~kFailureBit;
  const bool sane = bytes.size() >= 2 && byte(0) <= static_cast<unsigned char>(last_enumerator(DType{})) &&
                    dimensions <= kMaxDimensions && bytes.size() >= 2 + 8 * dimensions;
  Metadata metadata;
  if (!sane) {
    metadata.text = bytes;
    return metadata;
  }
  metadata.type = static_cast<DType>(byte(0));
  metadata.failure = (byte(1) & kFailureBit) != 0;
  metadata.shape.resize(dimensions);
  if (dimensions != 0) std::memcpy(metadata.shape.data(), bytes.data() + 2, 8 * dimensions);
  metadata.text = bytes.substr(2 + 8 * dimensions);
  return metadata;
}

}  // namespace hoplite
