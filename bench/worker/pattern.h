// Bytes that say where they belong: a piece that is missing, moved or of another object does not match.
//
// The checks throw std::runtime_error with the place of the first difference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hoplite::bench {

void fill(std::span<std::byte> bytes, std::uint64_t seed);
void check(std::span<const std::byte> bytes, std::size_t size, std::uint64_t seed);
std::vector<std::byte> pattern(std::size_t size, std::uint64_t seed);

// The same for arrays of f32. Elements are whole numbers below 256, so sums of up to 65,536 arrays are exact in any order, and
// a source that is missing, or counted twice, shows.
void fill_array(std::span<std::byte> bytes, std::uint64_t seed);
// That these are the sums of the arrays of these seeds.
void check_sum(std::span<const std::byte> bytes, std::size_t size, const std::vector<std::uint64_t>& seeds);

}  // namespace hoplite::bench
