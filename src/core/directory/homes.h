// Which node is the home of an id.
//
// A minted id's home is the node that minted it while that node lives. Every other id is hashed among the live nodes by
// rendezvous: the node with the highest score for the id. So all nodes with the same view agree, a join moves only the ids
// that the new node wins, and a death only those that the dead node had.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/node_id.h"
#include "base/random.h"
#include "hoplite/object_id.h"

namespace hoplite {

// A minting node outranks everybody for its own ids.
inline std::uint64_t home_score(const ObjectId& id, NodeId node) {
  if (!id.is_named() && id.hi == node.value) return ~0ULL;
  return mix64(id.hi ^ mix64(id.lo ^ mix64(node.value))) >> 1;
}

// Whether one of `joined` takes the id over from its present home.
inline bool moves_home(const ObjectId& id, NodeId home, const std::vector<NodeId>& joined) {
  const std::uint64_t score = home_score(id, home);
  return std::ranges::any_of(joined, [&](NodeId node) { return home_score(id, node) > score; });
}

// Of the live members, sorted by id and not empty.
inline NodeRef home_of(const ObjectId& id, const std::vector<NodeRef>& alive) {
  if (!id.is_named()) {  // one look instead of one at everybody
    const auto minter = std::ranges::lower_bound(alive, NodeId{id.hi}, {}, &NodeRef::id);
    if (minter != alive.end() && minter->id.value == id.hi) return *minter;
  }
  NodeRef best = alive.front();
  std::uint64_t best_score = home_score(id, best.id);
  for (const NodeRef& node : alive) {
    const std::uint64_t score = home_score(id, node.id);
    if (score > best_score) best = node, best_score = score;
  }
  return best;
}

// Who remembers what exists at this home, so that the death of home and holder together is not the end of all knowledge: for
// the ids that a home has minted itself one node, for others the one that is next in line. nil if there is nobody else.
inline NodeRef deputy_of(const ObjectId& id, NodeRef home, const std::vector<NodeRef>& alive) {
  const bool minted_there = !id.is_named() && id.hi == home.id.value;
  const ObjectId subject = minted_there ? ObjectId{home.id.value, 0} : id;
  NodeRef best;
  std::uint64_t best_score = 0;
  for (const NodeRef& node : alive) {
    if (node.id == home.id) continue;
    const std::uint64_t score = home_score(subject, node.id);
    if (best.id.is_nil() || score > best_score) best = node, best_score = score;
  }
  return best;
}

}  // namespace hoplite
