// A DoubleTree as homes ask it.
#pragma once

#include "core/broadcast/double_tree.h"
#include "core/broadcast/planner.h"

namespace hoplite {

class TwoTreesPlanner final : public ParentPlanner {
 public:
  explicit TwoTreesPlanner(Duration patience) : trees_(patience) {}

  void add_root(NodeId node) override { trees_.add_root(node); }
  std::vector<NodeId> choose(Time now, NodeId receiver, const Want& want) override;
  void remove(NodeId node) override { trees_.remove(node); }
  void measured(NodeId, std::uint64_t) override {}  // its shape does not depend on rates
  void check_invariants() const override { trees_.check_invariants(); }

 private:
  DoubleTree trees_;
};

}  // namespace hoplite
