// Nodes that each have a slice when it comes into being, and want the others: a ring in the order of node ids, along which
// every slice goes from its root to the node before it. So every link carries each slice but one, once.
//
// Nodes without a slice form a chain in the order in which they ask; the ring feeds its first one.
#pragma once

#include <set>

#include "core/broadcast/planner.h"

namespace hoplite {

class RingPlanner final : public ParentPlanner {
 public:
  explicit RingPlanner(std::uint32_t slices) : slices_(slices) {}

  void add_root(NodeId node) override;
  std::vector<NodeId> choose(Time now, NodeId receiver, const Want& want) override;
  void remove(NodeId node) override;
  void measured(NodeId, std::uint64_t) override {}  // its shape does not depend on rates
  void check_invariants() const override;

 private:
  NodeId parent(NodeId receiver, std::uint32_t slice, const std::vector<NodeId>& avoid);
  NodeId before_in_chain(NodeId receiver);

  const std::uint32_t slices_;
  std::set<NodeId> ring_;
  std::vector<NodeId> chain_;
};

}  // namespace hoplite
