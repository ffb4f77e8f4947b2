// Draws versions for what this node puts: of the wall clock's generation, or newer than what was heard of the id.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/random.h"
#include "base/time.h"
#include "base/version.h"

namespace hoplite {

class Versions {
 public:
  // `wall_ms`: what the wall clock says at Time{0}.
  Versions(std::int64_t wall_ms, Random& random) : wall_ms_(wall_ms), random_(random) {}

  std::uint64_t generation_at(Time now) const {
    const std::int64_t ms = wall_ms_ + now.ns / 1'000'000;
    return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::max<std::int64_t>(ms, 1)), 1, kLastGeneration);
  }
  std::uint64_t generation_at(Time now, Version newer_than) const {
    return std::max(generation_at(now), generation(newer_than) + 1);
  }
  Version draw(Time now, Version newer_than = 0) {
    return make_version(generation_at(now, newer_than), random_.next());
  }

 private:
  std::int64_t wall_ms_;
  Random& random_;
};

}  // namespace hoplite
