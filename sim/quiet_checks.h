// What must be true of the whole cluster once nothing is under way.
#pragma once

#include <set>
#include <string>

#include "sim/world.h"

namespace hoplite::sim {

// Whether the running nodes know exactly each other.
bool members_converged(World& world);
// Who knows whom, in words.
std::string members_of_all(World& world);

// Whether the homes know exactly the copies that there are: the first disagreement in words, or "".
std::string directory_disagreement(World& world);

// Ids of which any running node has bytes.
std::set<ObjectId> ids_with_copies(World& world);

// Memory, requests, copies and transfers that the node still has, in words; "" if nothing is left.
std::string leftovers(World& world, NodeIndex node);
std::string leftovers(World& world);  // of the first running node that has any

}  // namespace hoplite::sim
