// What puts contain: bytes derived from the put's number, so that no two puts are alike and any byte out of place is seen.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/bytes.h"
#include "base/random.h"

namespace hoplite::sim {

using PutNumber = std::uint32_t;

inline std::uint64_t content_word(PutNumber put, std::uint64_t word) {
  return mix64((std::uint64_t{put} << 32) + word);
}

// Writes bytes [offset, offset + out.size()) of the put.
inline void fill_contents(PutNumber put, std::uint64_t offset, ByteSpan out) {
  for (std::size_t i = 0; i < out.size();) {
    const std::uint64_t at = offset + i;
    const std::uint64_t word = content_word(put, at / 8);
    const std::size_t length = std::min<std::size_t>(8 - at % 8, out.size() - i);
    std::memcpy(out.data() + i, reinterpret_cast<const char*>(&word) + at % 8, length);
    i += length;
  }
}

// Whether `bytes` are the first of the put.
inline bool contents_match(PutNumber put, ByteView bytes) {
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    const std::uint64_t word = content_word(put, i / 8);
    if (std::memcmp(bytes.data() + i, &word, std::min<std::size_t>(8, bytes.size() - i)) != 0) return false;
  }
  return true;
}

}  // namespace hoplite::sim
