#include "core/broadcast/ring_planner.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace hoplite {

void RingPlanner::add_root(NodeId node) {
  ring_.insert(node);
  std::erase(chain_, node);
}

std::vector<NodeId> RingPlanner::choose(Time, NodeId receiver, const Want& want) {
  std::vector<NodeId> parents(slices_);
  std::vector<NodeId> avoid = want.avoid;
  std::ranges::copy(nodes_of(want.cut_off), std::back_inserter(avoid));
  for (std::uint32_t slice = 0; slice < slices_; ++slice) {
    const bool asked = want.slices.empty() || std::ranges::count(want.slices, slice, &SliceWant::slice) > 0;
    if (asked) parents[slice] = parent(receiver, slice, avoid);
  }
  return parents;
}

void RingPlanner::remove(NodeId node) {
  ring_.erase(node);
  std::erase(chain_, node);
}

NodeId RingPlanner::parent(NodeId receiver, std::uint32_t slice, const std::vector<NodeId>& avoid) {
  const auto welcome = [&](NodeId node) { return node != receiver && std::ranges::count(avoid, node) == 0; };
  if (ring_.empty()) return {};
  auto next = ring_.find(receiver);
  if (next == ring_.end()) {
    const NodeId before = before_in_chain(receiver);
    if (!before.is_nil() && welcome(before)) return before;
    next = std::next(ring_.begin(), static_cast<std::ptrdiff_t>(slice % ring_.size()));
  }
  for (std::size_t tried = 0; tried < ring_.size(); ++tried) {
    next = next == ring_.begin() ? std::prev(ring_.end()) : std::prev(next);
    if (welcome(*next)) return *next;
  }
  std::erase(chain_, receiver);  // it waits, and has nothing for those that come after it
  return {};
}

// The receiver is in the chain from now on. Nil: it is the first one.
NodeId RingPlanner::before_in_chain(NodeId receiver) {
  auto self = std::ranges::find(chain_, receiver);
  if (self == chain_.end()) self = chain_.insert(self, receiver);
  return self == chain_.begin() ? NodeId{} : *std::prev(self);
}

void RingPlanner::check_invariants() const {
  for (const NodeId node : chain_) {
    CHECK(!ring_.contains(node), node);
    CHECK(std::ranges::count(chain_, node) == 1, node);
  }
}

}  // namespace hoplite
