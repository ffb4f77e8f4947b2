// What the tests of this folder share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>

#include "shm/arena.h"

namespace hoplite {

inline std::unique_ptr<Arena> make_arena(std::uint64_t bytes, std::uint64_t ahead = 0) {
  return Arena::create({.bytes = bytes, .prefault_ahead_bytes = ahead}).value();
}

// Of this process.
inline std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

}  // namespace hoplite
