// Names a place in a reduce that this node fills.
#pragma once

#include <compare>
#include <cstdint>

#include "hoplite/object_id.h"

namespace hoplite {

struct SlotKey {
  ObjectId target;
  std::uint64_t slot = 0;  // the coordinator's number for it
  auto operator<=>(const SlotKey&) const = default;
};

}  // namespace hoplite
