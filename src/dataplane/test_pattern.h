// What the tests of everything that moves bytes share.
#pragma once

#include <cstring>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"

namespace hoplite {

constexpr Duration kTestLimit = Duration::s(30);  // reached only when something is broken

// Bytes that differ at every position and for every seed.
inline std::vector<std::byte> pattern(std::uint64_t size, std::uint64_t seed) {
  std::vector<std::byte> out(round_up(size, 8));
  for (std::uint64_t i = 0; i < out.size(); i += 8) {
    const std::uint64_t word = mix64(seed * 0x10001 + i);
    std::memcpy(out.data() + i, &word, 8);
  }
  out.resize(size);
  return out;
}

}  // namespace hoplite
