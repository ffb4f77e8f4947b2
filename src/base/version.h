// Versions name the bytes of an object: one for each put, one for each attempt of a reduce's slot.
//
// A version is a generation (wall-clock milliseconds, or one more than the newest that the id's home has heard of) and a
// random number. Equality decides whether bytes fit together. The generation decides which of two puts of one name is the
// newer; within one generation, that of two sides of a partition, the lower version stays.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hoplite {

using Version = std::uint64_t;  // 0 = none

// 42 bits of milliseconds last until 2109; of two puts in one millisecond, one pair in four million would look alike.
constexpr int kVersionRandomBits = 22;
constexpr std::uint64_t kLastGeneration = (std::uint64_t{1} << (64 - kVersionRandomBits)) - 1;

constexpr std::uint64_t generation(Version version) { return version >> kVersionRandomBits; }
constexpr Version make_version(std::uint64_t generation, std::uint64_t random) {
  constexpr std::uint64_t kRandom = (std::uint64_t{1} << kVersionRandomBits) - 1;
  return std::min(generation, kLastGeneration) << kVersionRandomBits | std::max<std::uint64_t>(random & kRandom, 1);
}
constexpr bool is_newer(Version a, Version b) { return generation(a) > generation(b); }
// Whether `a` stays where both turn up, committed.
constexpr bool prevails(Version a, Version b) {
  return generation(a) != generation(b) ? generation(a) > generation(b) : a < b;
}

// Of an object that is lost though nobody had made any version of it yet: its reduce died first. Every real one is newer.
constexpr Version kNeverMade = 1;

}  // namespace hoplite
