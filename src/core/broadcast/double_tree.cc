#include "core/broadcast/double_tree.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "base/check.h"

namespace hoplite {
namespace {

constexpr std::uint32_t kSuspectExcess = 1'000'000;  // the last resort
constexpr int kLongWait = 4;                         // times the patience
constexpr std::uint32_t kAnyDepth = std::numeric_limits<std::uint32_t>::max();

}  // namespace

DoubleTree::Holder& DoubleTree::join(NodeId node) {
  const auto [it, fresh] = holders_.try_emplace(node);
  if (fresh) it->second.inner_in = joined_++ % kSlices;
  return it->second;
}

// A complete holder sends each half once, an inner node its half twice, a leaf nothing: each sends as much as it receives.
std::uint32_t DoubleTree::excess(const Holder& holder, std::uint32_t slice) const {
  const std::uint32_t share = holder.root ? 1 : holder.inner_in == slice ? 2 : 0;
  const std::uint32_t children = holder.places[slice].children + 1;
  return (children > share ? children - share : 0) + (holder.suspect ? kSuspectExcess : 0);
}

bool DoubleTree::offered(const Holder& holder, std::uint32_t slice) const {
  return holder.root || !holder.places[slice].parent.is_nil();
}

void DoubleTree::list(NodeId node, const Holder& holder) {
  for (std::uint32_t slice = 0; slice < kSlices; ++slice)
    if (offered(holder, slice)) offers_[slice].insert({excess(holder, slice), holder.places[slice].depth, node});
}

void DoubleTree::unlist(NodeId node, const Holder& holder) {
  for (std::uint32_t slice = 0; slice < kSlices; ++slice)
    if (offered(holder, slice)) offers_[slice].erase({excess(holder, slice), holder.places[slice].depth, node});
}

// Whoever has this place is no load on its parent any more.
void DoubleTree::stop_counting(Place& place, std::uint32_t slice) {
  if (!std::exchange(place.counted, false)) return;
  const auto parent = holders_.find(place.parent);
  if (parent == holders_.end()) return;
  unlist(parent->first, parent->second);
  --parent->second.places[slice].children;
  list(parent->first, parent->second);
}

void DoubleTree::unlink(NodeId node, Place& place, std::uint32_t slice) {
  stop_counting(place, slice);
  if (const auto it = holders_.find(place.parent); it != holders_.end()) it->second.places[slice].below.erase(node);
  place.parent = NodeId{};
}

void DoubleTree::add_root(NodeId node) {
  Holder& holder = join(node);
  unlist(node, holder);
  for (std::uint32_t slice = 0; slice < kSlices; ++slice) {
    unlink(node, holder.places[slice], slice);
    holder.places[slice].depth = 0;
  }
  holder.root = true;
  holder.suspect = false;
  list(node, holder);
}

void DoubleTree::remove(NodeId node) {
  const auto it = holders_.find(node);
  if (it == holders_.end()) return;
  unlist(node, it->second);
  for (std::uint32_t slice = 0; slice < kSlices; ++slice) unlink(node, it->second.places[slice], slice);
  const Holder gone = std::move(it->second);
  holders_.erase(it);
  // Its children keep their depth (they may go on from where they are), but nobody is sent to them until they are attached
  // again.
  for (std::uint32_t slice = 0; slice < kSlices; ++slice)
    for (NodeId orphan : gone.places[slice].below) {
      Holder& holder = holders_.at(orphan);
      unlist(orphan, holder);
      holder.places[slice].parent = NodeId{};
      holder.places[slice].counted = false;
      list(orphan, holder);
    }
}

void DoubleTree::complain(const std::vector<NodeId>& avoid) {
  for (NodeId node : avoid) {
    const auto it = holders_.find(node);
    if (it == holders_.end() || it->second.suspect) continue;
    unlist(node, it->second);
    it->second.suspect = true;
    list(node, it->second);
    // If it is dead, its own parents have nobody to send to any more.
    for (std::uint32_t slice = 0; slice < kSlices; ++slice) stop_counting(it->second.places[slice], slice);
  }
}

bool DoubleTree::is_welcome(const Receiver& receiver, NodeId parent) {
  return parent != receiver.node && std::ranges::find(receiver.avoid, parent) == receiver.avoid.end() &&
         std::ranges::find(receiver.cut_off, parent) == receiver.cut_off.end();
}

// The first by excess, then depth, of those less deep than `below_depth`.
std::optional<DoubleTree::Offer> DoubleTree::best_offer(const Receiver& receiver, std::uint32_t below_depth) const {
  const std::set<Offer>& offers = offers_[receiver.slice];
  for (auto it = offers.begin(); it != offers.end();) {
    const auto& [excess, depth, node] = *it;
    if (depth >= below_depth) {  // and so are all others of this excess
      it = offers.lower_bound({excess + 1, 0, NodeId{}});
      continue;
    }
    if (is_welcome(receiver, node)) return *it;
    ++it;
  }
  return std::nullopt;
}

// None if there is only one place.
std::optional<DoubleTree::Offer> DoubleTree::deepest_free(const Receiver& receiver) const {
  const std::set<Offer>& offers = offers_[receiver.slice];
  const auto free_end = offers.lower_bound({1, 0, NodeId{}});
  if (free_end == offers.begin()) return std::nullopt;
  const Holder& first = holders_.at(std::get<NodeId>(*offers.begin()));
  const bool has_two = !first.root && first.places[receiver.slice].children == 0;
  if (std::next(offers.begin()) == free_end && !has_two) return std::nullopt;
  for (auto it = free_end; it != offers.begin();) {
    const NodeId node = std::get<NodeId>(*--it);
    if (is_welcome(receiver, node)) return *it;
  }
  return std::nullopt;
}

std::optional<NodeId> DoubleTree::choose(Time now, const Receiver& receiver) {
  complain(receiver.avoid);
  Holder& self = join(receiver.node);
  Place& place = self.places[receiver.slice];
  if (!self.asked_at) self.asked_at = now;
  unlist(receiver.node, self);
  unlink(receiver.node, place, receiver.slice);
  const bool keeps_place = place.depth > 0 && (receiver.keeps_place || !place.below.empty());
  self.root = self.suspect = false;  // it asks, so it lives

  // Whoever has begun must go on, and an inner node is what the others wait for.
  const bool leaf = !keeps_place && self.inner_in != receiver.slice;
  const Duration waited = now - *self.asked_at;
  std::optional<Offer> offer;
  if (leaf && waited >= patience_) offer = deepest_free(receiver);
  if (!offer && (!leaf || waited >= patience_ * kLongWait))
    offer = best_offer(receiver, keeps_place ? place.depth : kAnyDepth);
  if (!offer) {
    list(receiver.node, self);
    const bool idle =
        std::ranges::none_of(self.places, [](const Place& p) { return !p.parent.is_nil() || !p.below.empty(); });
    if (!leaf && idle) holders_.erase(receiver.node);
    return std::nullopt;
  }
  const auto [excess, depth, node] = *offer;
  if (!keeps_place) place.depth = depth + 1;
  place.parent = node;
  place.counted = true;
  list(receiver.node, self);
  Holder& parent = holders_.at(node);
  unlist(node, parent);
  ++parent.places[receiver.slice].children;
  parent.places[receiver.slice].below.insert(receiver.node);
  list(node, parent);
  return node;
}

NodeId DoubleTree::parent_of(NodeId node, std::uint32_t slice) const {
  const auto it = holders_.find(node);
  return it == holders_.end() ? NodeId{} : it->second.places[slice].parent;
}

std::uint32_t DoubleTree::depth_of(NodeId node, std::uint32_t slice) const {
  const auto it = holders_.find(node);
  return it == holders_.end() ? 0 : it->second.places[slice].depth;
}

std::uint32_t DoubleTree::children_of(NodeId node) const {
  const auto it = holders_.find(node);
  if (it == holders_.end()) return 0;
  std::uint32_t children = 0;
  for (const Place& place : it->second.places) children += place.children;
  return children;
}

void DoubleTree::check_invariants() const {
  std::array<std::size_t, kSlices> listed{};
  for (const auto& [node, holder] : holders_) {
    for (std::uint32_t slice = 0; slice < kSlices; ++slice) {
      const Place& place = holder.places[slice];
      CHECK(!holder.root || (place.parent.is_nil() && place.depth == 0), node, slice);
      CHECK(!place.counted || !place.parent.is_nil(), node, slice);
      std::uint32_t counted = 0;
      for (const NodeId child : place.below) {
        const Place& below = holders_.at(child).places[slice];
        CHECK(below.parent == node && below.depth > place.depth, node, child, slice);
        counted += below.counted ? 1 : 0;
      }
      CHECK(counted == place.children, node, slice, counted, place.children);
      if (!offered(holder, slice)) continue;
      CHECK(offers_[slice].contains({excess(holder, slice), place.depth, node}), node, slice);
      ++listed[slice];
    }
  }
  for (std::uint32_t slice = 0; slice < kSlices; ++slice)
    CHECK(listed[slice] == offers_[slice].size(), slice, listed[slice], offers_[slice].size());
}

}  // namespace hoplite
