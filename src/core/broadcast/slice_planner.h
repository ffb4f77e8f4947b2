// A BroadcastPlan for each slice, each by itself.
#pragma once

#include "core/broadcast/plan.h"
#include "core/broadcast/planner.h"

namespace hoplite {

class SlicePlanner final : public ParentPlanner {
 public:
  // `object` is for all slices together.
  SlicePlanner(std::uint32_t slices, const BroadcastPlan::Options& object);

  void add_root(NodeId node) override;
  std::vector<NodeId> choose(Time now, NodeId receiver, const Want& want) override;
  void remove(NodeId node) override;
  void measured(NodeId receiver, std::uint64_t bytes_per_second) override;
  void check_invariants() const override;

 private:
  std::vector<BroadcastPlan> plans_;
};

}  // namespace hoplite
