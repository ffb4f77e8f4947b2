#include "core/broadcast/slice_planner.h"

#include "protocol/bulk.h"

namespace hoplite {

SlicePlanner::SlicePlanner(std::uint32_t slices, const BroadcastPlan::Options& object) {
  for (std::uint32_t i = 0; i < slices; ++i) {
    const SliceRange range = slice_range(object.bytes, slices, i);
    plans_.emplace_back(BroadcastPlan::Options{range.end - range.begin, object.links, object.max_children});
  }
}

void SlicePlanner::add_root(NodeId node) {
  for (BroadcastPlan& plan : plans_) plan.add_root(node);
}

std::vector<NodeId> SlicePlanner::choose(Time now, NodeId receiver, const Want& want) {
  std::vector<NodeId> parents(plans_.size());
  const std::vector<NodeId> cut_off = nodes_of(want.cut_off);
  const auto ask = [&](const SliceWant& slice) {
    if (slice.slice >= plans_.size()) return;
    BroadcastPlan& plan = plans_[slice.slice];
    const auto parent = plan.choose(now, {receiver, slice.have_bytes, slice.has_children, want.avoid, cut_off});
    parents[slice.slice] = parent.value_or(NodeId{});
  };
  for (const SliceWant& slice : want.slices) ask(slice);
  if (want.slices.empty())
    for (std::uint32_t i = 0; i < plans_.size(); ++i) ask({i, 0, false});
  return parents;
}

void SlicePlanner::remove(NodeId node) {
  for (BroadcastPlan& plan : plans_) plan.remove(node);
}

void SlicePlanner::measured(NodeId receiver, std::uint64_t bytes_per_second) {
  for (BroadcastPlan& plan : plans_) plan.measured(receiver, bytes_per_second);
}

void SlicePlanner::check_invariants() const {
  for (const BroadcastPlan& plan : plans_) plan.check_invariants();
}

}  // namespace hoplite
