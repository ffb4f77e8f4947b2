// Nodes and names for the tests of what is remembered about objects.
#pragma once

#include <string>

#include "base/node_id.h"
#include "hoplite/object_id.h"

namespace hoplite {

inline constexpr NodeRef kOne{NodeId{1}, 0};
inline constexpr NodeRef kOther{NodeId{2}, 0};

inline ObjectId named(int n) { return ObjectId::named("object " + std::to_string(n)); }

}  // namespace hoplite
