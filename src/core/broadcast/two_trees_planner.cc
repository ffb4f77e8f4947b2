#include "core/broadcast/two_trees_planner.h"

namespace hoplite {

std::vector<NodeId> TwoTreesPlanner::choose(Time now, NodeId receiver, const Want& want) {
  std::vector<NodeId> parents(DoubleTree::kSlices);
  const std::vector<NodeId> cut_off = nodes_of(want.cut_off);
  const auto ask = [&](std::uint32_t slice, bool keeps_place) {
    if (slice >= DoubleTree::kSlices) return;
    parents[slice] = trees_.choose(now, {receiver, slice, keeps_place, want.avoid, cut_off}).value_or(NodeId{});
  };
  for (const SliceWant& slice : want.slices) ask(slice.slice, slice.have_bytes > 0 || slice.has_children);
  if (want.slices.empty())
    for (std::uint32_t slice = 0; slice < DoubleTree::kSlices; ++slice) ask(slice, false);
  return parents;
}

}  // namespace hoplite
