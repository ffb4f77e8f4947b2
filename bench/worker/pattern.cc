#include "worker/pattern.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <string>

namespace hoplite::bench {
namespace {

// Seeds lie 2^40 words apart: no object is long enough to run into the next one's words.
std::uint64_t word(std::uint64_t seed, std::uint64_t index) { return ((seed << 40) + index) * 0x9E3779B97F4A7C15ULL; }

// The upper bits depend on all bits of the index.
float element(std::uint64_t seed, std::uint64_t index) { return static_cast<float>(word(seed, index) >> 56); }

// Calls `piece(offset, word, bytes)` for each word of the pattern; the last may be cut short.
template <typename Piece>
void for_each_word(std::size_t size, std::uint64_t seed, Piece piece) {
  for (std::size_t at = 0, index = 0; at < size; at += sizeof(std::uint64_t), ++index) {
    const std::uint64_t expected = word(seed, index);
    piece(at, &expected, std::min(sizeof expected, size - at));
  }
}

void check_size(std::span<const std::byte> bytes, std::size_t size) {
  if (bytes.size() != size)
    throw std::runtime_error("wrong size: " + std::to_string(bytes.size()) + " instead of " + std::to_string(size));
}

std::size_t elements_in(std::size_t size) {
  if (size % sizeof(float) != 0) throw std::runtime_error("not a whole number of elements: " + std::to_string(size));
  return size / sizeof(float);
}

}  // namespace

void fill(std::span<std::byte> bytes, std::uint64_t seed) {
  for_each_word(bytes.size(), seed, [&](std::size_t at, const std::uint64_t* expected, std::size_t count) {
    std::memcpy(bytes.data() + at, expected, count);
  });
}

void check(std::span<const std::byte> bytes, std::size_t size, std::uint64_t seed) {
  check_size(bytes, size);
  std::size_t wrong = size;
  for_each_word(size, seed, [&](std::size_t at, const std::uint64_t* expected, std::size_t count) {
    if (std::memcmp(bytes.data() + at, expected, count) != 0) wrong = std::min(wrong, at);
  });
  if (wrong != size) throw std::runtime_error("wrong bytes at offset " + std::to_string(wrong));
}

std::vector<std::byte> pattern(std::size_t size, std::uint64_t seed) {
  std::vector<std::byte> bytes(size);
  fill(bytes, seed);
  return bytes;
}

void fill_array(std::span<std::byte> bytes, std::uint64_t seed) {
  const std::size_t elements = elements_in(bytes.size());
  for (std::size_t i = 0; i < elements; ++i) {
    const float value = element(seed, i);
    std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
  }
}

void check_sum(std::span<const std::byte> bytes, std::size_t size, const std::vector<std::uint64_t>& seeds) {
  check_size(bytes, size);
  const std::size_t elements = elements_in(size);
  std::array<float, 4096> sums{};  // as many at a time as stay in the cache for all seeds
  for (std::size_t begin = 0; begin < elements; begin += sums.size()) {
    const std::size_t count = std::min(sums.size(), elements - begin);
    sums.fill(0);
    for (const std::uint64_t seed : seeds)
      for (std::size_t i = 0; i < count; ++i) sums[i] += element(seed, begin + i);
    if (std::memcmp(sums.data(), bytes.data() + begin * sizeof(float), count * sizeof(float)) != 0)
      throw std::runtime_error("wrong sum in elements " + std::to_string(begin) + " to " +
                               std::to_string(begin + count - 1));
  }
}

}  // namespace hoplite::bench
