#include "core/broadcast/plan.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace hoplite {

BroadcastPlan::BroadcastPlan(const Options& options)
    : bytes_(options.bytes),
      links_(options.links),
      max_load_(options.max_children),
      by_load_(options.max_children + 1) {}

// The load that one more child would make, as an index into by_load_. The last class is for those who have enough children
// and for suspects: better than nobody.
std::uint32_t BroadcastPlan::load_class(const Holder& holder) const {
  if (holder.suspect) return max_load_;
  const double load = (holder.children + 1) * std::max(holder.slowness, 1.0) - 1;
  return static_cast<std::uint32_t>(std::min<double>(load, max_load_));
}

void BroadcastPlan::list(NodeId node, Holder& holder) {
  if (offered(holder)) by_load_[load_class(holder)].insert(offer(node, holder));
}

void BroadcastPlan::unlist(NodeId node, const Holder& holder) {
  if (offered(holder)) by_load_[load_class(holder)].erase(offer(node, holder));
}

// `child` is no load on its parent any more.
void BroadcastPlan::stop_counting(Holder& child) {
  if (!std::exchange(child.counted, false)) return;
  const auto parent = holders_.find(child.parent);
  if (parent == holders_.end()) return;
  unlist(parent->first, parent->second);
  --parent->second.children;
  list(parent->first, parent->second);
}

// Takes `child` off its parent.
void BroadcastPlan::unlink(NodeId node, Holder& child) {
  stop_counting(child);
  if (const auto parent = holders_.find(child.parent); parent != holders_.end()) parent->second.below.erase(node);
  child.parent = NodeId{};
}

void BroadcastPlan::add_root(NodeId node) {
  Holder& holder = holders_[node];
  if (const auto parent = holders_.find(holder.parent); parent != holders_.end()) {
    unlist(parent->first, parent->second);
    parent->second.sent = std::max(parent->second.sent, holder.attached);
    list(parent->first, parent->second);
  }
  unlist(node, holder);
  unlink(node, holder);
  holder.root = true;
  holder.suspect = false;
  holder.finish = Time{};  // before everybody who still waits
  list(node, holder);
}

void BroadcastPlan::remove(NodeId node) {
  const auto it = holders_.find(node);
  if (it == holders_.end()) return;
  unlist(node, it->second);
  unlink(node, it->second);
  const std::set<NodeId> orphans = std::move(it->second.below);
  holders_.erase(it);
  // They keep their place in the order (they may go on from where they are) but nobody is sent to them until they are
  // attached again.
  for (NodeId orphan : orphans) {
    Holder& holder = holders_.at(orphan);
    unlist(orphan, holder);
    holder.parent = NodeId{};
    holder.counted = false;
    list(orphan, holder);
  }
}

void BroadcastPlan::complain(const std::vector<NodeId>& avoid) {
  for (NodeId node : avoid) {
    const auto it = holders_.find(node);
    if (it == holders_.end() || it->second.suspect) continue;
    unlist(node, it->second);
    it->second.suspect = true;
    list(node, it->second);
    // If it is dead, its own parent has nobody to send to any more: that is the best place for its orphans.
    stop_counting(it->second);
  }
}

// When `receiver` would have what it misses. A link that has just sent the object is taken to be busy with it for the time
// that this takes at its rate, even if the bytes have arrived earlier: what lets a burst pass is slow afterwards.
Time BroadcastPlan::forecast(Time now, const Offer& offer, std::uint32_t load, NodeId receiver, double missing) const {
  const auto& [finish, sent, node] = offer;
  const LinkCost link = links_(node, receiver);
  const auto seconds = [&](double bytes) { return Duration::from_seconds(bytes / link.bytes_per_s); };
  const bool has_sent = load == 0 && sent > Time{};
  const Time begin = has_sent ? std::max(now, sent + seconds(static_cast<double>(bytes_))) : now;
  return std::max(finish, begin + seconds(missing * (load + 1))) + Duration::from_seconds(link.hop_s);
}

std::optional<NodeId> BroadcastPlan::choose(Time now, const Receiver& receiver) {
  complain(receiver.avoid);
  Holder& self = holders_[receiver.node];
  unlist(receiver.node, self);
  unlink(receiver.node, self);
  self.suspect = false;  // it asks, so it lives
  // With bytes or children already, only those who are ahead in the plan can help; without, anybody but itself.
  const bool keeps_place =
      self.finish > Time{} && (receiver.have_bytes > 0 || receiver.has_children || !self.below.empty());
  const Time own_finish = keeps_place ? self.finish : Time::never();
  const auto missing = static_cast<double>(bytes_ - std::min(bytes_, receiver.have_bytes));

  std::optional<NodeId> best;
  Time best_finish = Time::never();
  const auto consider_first = [&](std::set<Offer>::const_iterator it, std::set<Offer>::const_iterator end,
                                  std::uint32_t load) {
    const auto welcome = [&](const Offer& offer) {
      const NodeId node = std::get<NodeId>(offer);
      return node != receiver.node && std::ranges::find(receiver.avoid, node) == receiver.avoid.end() &&
             std::ranges::find(receiver.cut_off, node) == receiver.cut_off.end();
    };
    it = std::find_if(it, end, welcome);
    if (it == end || std::get<0>(*it) >= own_finish) return;
    const Time finish = forecast(now, *it, load, receiver.node, missing);
    if (finish < best_finish) best = std::get<NodeId>(*it), best_finish = finish;
  };
  for (std::uint32_t load = 0; load < by_load_.size(); ++load) {
    const std::set<Offer>& offers = by_load_[load];
    const auto growing = offers.lower_bound({Time{1}, Time{}, NodeId{}});
    consider_first(offers.begin(), growing, load);
    consider_first(growing, offers.end(), load);
  }
  if (!best) {
    list(receiver.node, self);
    if (!self.root && self.below.empty() && receiver.have_bytes == 0) holders_.erase(receiver.node);
    return best;
  }
  self.root = false;
  self.parent = *best;
  self.counted = true;
  self.attached = now;
  // Its descendants' forecasts are later than its own, and must stay so.
  if (!keeps_place) self.finish = best_finish;
  list(receiver.node, self);
  Holder& parent = holders_.at(*best);
  unlist(*best, parent);
  ++parent.children;
  parent.below.insert(receiver.node);
  list(*best, parent);
  return best;
}

void BroadcastPlan::measured(NodeId child, std::uint64_t bytes_per_second) {
  const auto it = holders_.find(parent_of(child));
  if (it == holders_.end() || bytes_per_second == 0) return;
  const auto& [node, parent] = *it;
  // What one child got says what the sender can do for all of them.
  const double rate = static_cast<double>(bytes_per_second) * std::max<std::uint32_t>(parent.children, 1);
  const double slowness = links_(node, child).bytes_per_s / rate;
  unlist(node, it->second);
  it->second.slowness = parent.slowness == 0 ? slowness : (parent.slowness + slowness) / 2;
  list(node, it->second);
}

NodeId BroadcastPlan::parent_of(NodeId node) const {
  const auto it = holders_.find(node);
  return it == holders_.end() ? NodeId{} : it->second.parent;
}

std::size_t BroadcastPlan::children_of(NodeId node) const {
  const auto it = holders_.find(node);
  return it == holders_.end() ? 0 : it->second.children;
}

void BroadcastPlan::check_invariants() const {
  std::size_t listed = 0;
  for (const auto& [node, holder] : holders_) {
    CHECK(!holder.root || (holder.parent.is_nil() && holder.finish == Time{}), node);
    CHECK(!holder.counted || !holder.parent.is_nil(), node);
    std::uint32_t counted = 0;
    for (const NodeId child : holder.below) {
      const Holder& below = holders_.at(child);
      CHECK(below.parent == node && below.finish > holder.finish, node, child);
      counted += below.counted ? 1 : 0;
    }
    CHECK(counted == holder.children, node, counted, holder.children);
    CHECK(holder.parent.is_nil() || holders_.at(holder.parent).below.contains(node), node);
    if (!offered(holder)) continue;
    CHECK(by_load_[load_class(holder)].contains(offer(node, holder)), node);
    ++listed;
  }
  for (const std::set<Offer>& offers : by_load_) listed -= offers.size();
  CHECK(listed == 0, listed);
}

}  // namespace hoplite
