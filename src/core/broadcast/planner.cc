#include "core/broadcast/planner.h"

#include <algorithm>

#include "base/check.h"
#include "core/broadcast/ring_planner.h"
#include "core/broadcast/slice_planner.h"
#include "core/broadcast/two_trees_planner.h"

namespace hoplite {
namespace {

constexpr double kWorthIt = 0.25;  // of the transfer; for receivers that come one by one, a chain is better

// So many may come for it that the hops of a chain would cost more than two trees do.
bool draws_a_crowd(std::uint64_t bytes, const Surroundings& around) {
  const Limits& limits = around.limits;
  if (around.nodes.size() < limits.crowd || bytes <= limits.inline_bytes) return false;
  std::vector<NodeId> chain;
  for (const NodeRef& node : around.nodes) chain.push_back(node.id);
  const LinkCost link = worst_along(chain, around.links);
  return link.hop_s * static_cast<double>(chain.size()) > kWorthIt * static_cast<double>(bytes) / link.bytes_per_s;
}

// As it is cut already, or as the limits want it cut; 0 = any number will do.
std::uint32_t fixed_slices(const Demand& demand, const Limits& limits) {
  if (demand.slices != 0 || limits.slice_bytes == 0) return demand.slices;
  const std::uint64_t pieces = (demand.bytes + limits.slice_bytes - 1) / limits.slice_bytes;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(pieces, 1, limits.max_slices));
}

}  // namespace

std::vector<NodeId> nodes_of(const std::vector<CutOff>& cut_off) {
  std::vector<NodeId> nodes;
  for (const CutOff& pair : cut_off) nodes.push_back(pair.node);
  return nodes;
}

Plan make_plan(const Demand& demand, const Surroundings& around) {
  CHECK(!demand.striped || demand.slices > 0, demand.bytes);
  if (demand.striped) return {demand.slices, std::make_unique<RingPlanner>(demand.slices)};
  const Limits& limits = around.limits;
  const std::uint32_t fixed = fixed_slices(demand, limits);
  const bool halves = fixed == 0 ? limits.max_slices >= DoubleTree::kSlices : fixed == DoubleTree::kSlices;
  if (halves && draws_a_crowd(demand.bytes, around))
    return {DoubleTree::kSlices, std::make_unique<TwoTreesPlanner>(limits.retry_backoff / 2)};
  const std::uint32_t slices = std::max(fixed, 1U);
  return {slices, std::make_unique<SlicePlanner>(
                      slices, BroadcastPlan::Options{demand.bytes, around.links, limits.max_children})};
}

}  // namespace hoplite
