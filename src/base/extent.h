// A range of the arena.
#pragma once

#include <compare>
#include <cstdint>

namespace hoplite {

struct Extent {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;  // bytes asked for; what the allocator keeps aside may be more

  auto operator<=>(const Extent&) const = default;
  std::uint64_t end() const { return offset + size; }
};

}  // namespace hoplite
