// The set of live members as one node sees it, as one number: equal sets have equal digests.
#pragma once

#include <cstdint>
#include <vector>

#include "base/node_id.h"
#include "base/random.h"

namespace hoplite {

inline std::uint64_t view_digest(const std::vector<NodeRef>& members) {
  std::uint64_t digest = 0;
  for (const NodeRef& m : members) digest ^= mix64(m.id.value ^ mix64(m.incarnation));
  return digest;
}

}  // namespace hoplite
