#include "protocol/metadata.h"

#include <cstring>

#include "base/check.h"

namespace hoplite {

// One byte of type, one byte with the number of dimensions, 8 bytes for each, the text.
std::string encode_metadata(const Metadata& metadata) {
  CHECK(metadata.shape.size() <= kMaxDimensions, metadata.shape.size());
  if (metadata == Metadata{}) return "";
  std::string bytes;
  bytes.push_back(static_cast<char>(metadata.type));
  bytes.push_back(static_cast<char>(metadata.shape.size()));
  const std::size_t at = bytes.size();
  bytes.resize(at + 8 * metadata.shape.size());
  if (!metadata.shape.empty()) std::memcpy(bytes.data() + at, metadata.shape.data(), 8 * metadata.shape.size());
  return bytes + metadata.text;
}

Metadata decode_metadata(std::string_view bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const bool sane = bytes.size() >= 2 && byte(0) <= static_cast<unsigned char>(last_enumerator(DType{})) &&
                    byte(1) <= kMaxDimensions && bytes.size() >= 2 + 8 * std::size_t{byte(1)};
  Metadata metadata;
  if (!sane) {
    metadata.text = bytes;
    return metadata;
  }
  metadata.type = static_cast<DType>(byte(0));
  metadata.shape.resize(byte(1));
  if (!metadata.shape.empty()) std::memcpy(metadata.shape.data(), bytes.data() + 2, 8 * metadata.shape.size());
  metadata.text = bytes.substr(2 + 8 * metadata.shape.size());
  return metadata;
}

}  // namespace hoplite
