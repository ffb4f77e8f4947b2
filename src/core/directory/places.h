// The order in which two nodes go through the ids that both know of, to find out where they differ: by hash, so that any
// range of places holds its fair share of ids, whoever made them.
#pragma once

#include <cstdint>
#include <set>

#include "base/random.h"
#include "hoplite/object_id.h"
#include "protocol/transfer.h"

namespace hoplite {

struct Place {
  std::uint64_t value = 0;
  auto operator<=>(const Place&) const = default;
};
constexpr Place kLastPlace{~0ULL};

inline Place place_of(const ObjectId& id) { return {mix64(id.hi ^ mix64(id.lo))}; }

struct ByPlace {
  using is_transparent = void;
  bool operator()(const ObjectId& a, const ObjectId& b) const {
    const Place pa = place_of(a);
    const Place pb = place_of(b);
    return pa != pb ? pa < pb : a < b;
  }
  bool operator()(const ObjectId& a, Place b) const { return place_of(a) < b; }
  bool operator()(Place a, const ObjectId& b) const { return a < place_of(b); }
};
using PlacedIds = std::set<ObjectId, ByPlace>;

// A copy as the node that has it and its home must both see it. A range's digest is the sum over its copies.
inline std::uint64_t copy_digest(const ObjectId& id, Version version, bool complete, bool primary) {
  const std::uint64_t state = (complete ? 1ULL : 0ULL) + (complete && primary ? 2ULL : 0ULL);
  return mix64(place_of(id).value ^ mix64(version ^ mix64(state)));
}

}  // namespace hoplite
