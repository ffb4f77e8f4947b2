// What a home keeps about one object, for displays and the simulator's invariants.
#pragma once

#include <cstddef>
#include <vector>

#include "protocol/messages.h"

namespace hoplite {

struct DirectoryHolder {
  NodeRef ref;
  CopyState state = CopyState::kGrowing;
  bool primary = false;
  bool told_to_reset = false;  // its answer is awaited
  std::uint32_t roots = 0;     // slices that come into being there
  std::uint64_t request = 0;   // of the want or put that made it a holder; 0 = an announcement did
  NodeId relay = {};  // it is to get the bytes from this node, which was told to pass them on; nil: from elsewhere
};

struct DirectorySummary {
  ObjectId id;
  Version version = 0;
  bool committed = false;
  bool lost = false;
  std::vector<DirectoryHolder> holders;
  std::size_t waiters = 0;
};

}  // namespace hoplite
