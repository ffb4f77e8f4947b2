// Nodes that ask for an object: who is told to wait, who is sent the bytes, who is assigned a parent.
#include <algorithm>

#include "base/coverage.h"
#include "core/directory/directory.h"

namespace hoplite {

void Directory::on_want(Time now, NodeRef from, const Want& want, Output& out) {
  if (park_unless_settled(now, from, want.id, want, out)) return;
  if (is_deleted(want.id)) {
    out.sends.push_back({from, WantFailed{want.request, want.id, 0, Code::kDeleted}});
    return;
  }
  Entry& entry = entries_[want.id];
  const bool remembered = known_.contains(want.id) && !tombstones_.covers(want.id, known_.version_of(want.id));
  if (entry.version == 0 && !entry.reserved && remembered) {
    COVERAGE_MARK(home_remembers_what_is_lost);
    take_known(want.id, entry);
    resolve(now, want.id, entry, out);
  }
  if (entry.lost && !want.wait_if_lost) {
    out.sends.push_back({from, WantFailed{want.request, want.id, entry.version, Code::kLost, entry.lost_why}});
    return;
  }
  if (want.mode == WantMode::kFetch) {
    const Holder* holder = entry.holders.find(from.id);
    if (holder != nullptr && holder->state != CopyState::kGrowing && holder->roots == 0) {
      // It asks, so it does not have it, unless this is an old request that crossed its put. One that is younger than a put
      // which has not ended tells that the put was given up, and that the word of it was lost.
      const bool given_up = holder->state == CopyState::kWriting && want.request > holder->request;
      if (holder->primary && !given_up) return;
      unhold(want.id, entry, from.id);
      resolve(now, want.id, entry, out);
    }
  }
  if (serve_one(now, want.id, entry, {from, want}, out)) {
    // Whoever it fetches for can be hung below it from now on.
    if (want.for_another) serve_waiters(now, want.id, entry, out);
    return;
  }
  // A partial copy stays with its owner; it is a holder only while it is attached or about to be.
  const Holder* holder = entry.holders.find(from.id);
  if (want.mode == WantMode::kFetch && holder != nullptr && holder->roots == 0) {
    unhold(want.id, entry, from.id);
    resolve(now, want.id, entry, out);
  }
  if (entry.lost && !want.wait_if_lost) {
    out.sends.push_back({from, WantFailed{want.request, want.id, entry.version, Code::kLost, entry.lost_why}});
    return;
  }
  Waiter& waiter = entry.waiters[{from.id, want.mode}];
  waiter.ref = from;
  waiter.want = want;
  by_node_[from.id].insert(want.id);
  order_ferry(now, want.id, entry, waiter, out);
  if (want.for_another) ferry_failed(now, want.id, entry, from.id, out);
  if (from == self_) return tell_to_wait(want.id, entry, {from, want}, out);
  untold_.push_back({now + limits_.waiting_after, want.id, {from.id, want.mode}, want.request});
}

void Directory::tell_waiters(Time now, Output& out) {
  for (; !untold_.empty() && untold_.front().when <= now; untold_.pop_front()) {
    const Untold& next = untold_.front();
    const auto it = entries_.find(next.id);
    if (it == entries_.end()) continue;
    const Entry& entry = it->second;
    const auto waiter = entry.waiters.find(next.waiter);
    if (waiter == entry.waiters.end() || waiter->second.want.request != next.request) continue;
    tell_to_wait(next.id, entry, waiter->second, out);
  }
}

void Directory::tell_to_wait(const ObjectId& id, const Entry& entry, const Waiter& waiter, Output& out) const {
  out.sends.push_back({waiter.ref, Waiting{waiter.want.request, id, entry.lost ? 0 : entry.version, entry.reserved}});
}

// --- nodes without a path to those who have it ----------------------------------------------------------------------------

// A node that can reach both is ordered to fetch as an ordinary receiver, and the waiter is hung below it. One level: whoever
// fetches for another is told to wait if it has no path either.
void Directory::order_ferry(Time now, const ObjectId& id, const Entry& entry, Waiter& waiter, Output& out) {
  const Want& want = waiter.want;
  if (want.mode != WantMode::kFetch || want.for_another || want.cut_off.empty()) return;
  if (entry.version == 0 || entry.lost || !has_source(entry)) return;
  const auto can_reach = [&](const auto& item) {
    return item.first != waiter.ref.id && std::ranges::count(want.cut_off, item.first, &CutOff::node) == 0;
  };
  if (std::ranges::any_of(entry.holders, can_reach)) return;
  if (!waiter.ferries.empty() && now >= waiter.ferry_until && waiter.ferries.size() >= limits_.max_ferry_tries)
    waiter.ferries.clear();  // from the beginning, when it asks again
  else if (waiter.ferries.empty() || now >= waiter.ferry_until) {
    const NodeRef ferry = choose_ferry(entry, waiter);
    if (ferry.id.is_nil()) return waiter.ferries.clear();
    waiter.ferries.push_back(ferry.id);
    waiter.ferry_until = now + limits_.request_retry;
  }
  if (waiter.ferries.empty()) return;
  const auto ferry = std::ranges::find(alive_, waiter.ferries.back(), &NodeRef::id);
  if (ferry != alive_.end()) out.sends.push_back({*ferry, FetchFor{id, waiter.ref}});
}

// Whoever is known to reach both; else this node, which is in touch with the waiter; else anybody.
NodeRef Directory::choose_ferry(const Entry& entry, const Waiter& waiter) const {
  const auto member = [&](NodeId node) {
    const auto it = std::ranges::find(alive_, node, &NodeRef::id);
    const bool fits = it != alive_.end() && node != waiter.ref.id && !entry.holders.contains(node) &&
                      std::ranges::count(waiter.ferries, node) == 0 &&
                      std::ranges::count(waiter.want.cut_off, node, &CutOff::node) == 0;
    return fits ? *it : NodeRef{};
  };
  for (const CutOff& pair : waiter.want.cut_off)
    if (entry.holders.contains(pair.node))
      if (const NodeRef both = member(pair.by_way_of); !both.id.is_nil()) return both;
  if (const NodeRef here = member(self_.id); !here.id.is_nil()) return here;
  for (const NodeRef& node : alive_)
    if (const NodeRef any = member(node.id); !any.id.is_nil()) return any;
  return {};
}

// It says that it cannot fetch it: somebody else is to try.
void Directory::ferry_failed(Time now, const ObjectId& id, Entry& entry, NodeId ferry, Output& out) {
  for (auto& [key, waiter] : entry.waiters) {
    if (waiter.ferries.empty() || waiter.ferries.back() != ferry) continue;
    waiter.ferry_until = now;
    order_ferry(now, id, entry, waiter, out);
  }
}

void Directory::on_unwant(Time now, NodeRef from, const Unwant& unwant, Output& out) {
  Want want;
  want.mode = unwant.mode;
  parked_.erase({from.id, unwant.id, kind_of(want)});
  const auto it = entries_.find(unwant.id);
  if (it == entries_.end()) return;
  Entry& entry = it->second;
  entry.waiters.erase({from.id, unwant.mode});
  note_interest(unwant.id, entry, from.id);
  // What is passed on to it will not be taken.
  const Holder* holder = entry.holders.find(from.id);
  if (unwant.mode == WantMode::kFetch && holder != nullptr && !holder->relay.is_nil()) {
    unhold(unwant.id, entry, from.id);
    resolve(now, unwant.id, entry, out);
  }
  erase_if_empty(unwant.id);
}

void Directory::serve_waiters(Time now, const ObjectId& id, Entry& entry, Output& out) {
  for (auto it = entry.waiters.begin(); it != entry.waiters.end();) {
    if (!serve_one(now, id, entry, it->second, out)) {
      ++it;
      continue;
    }
    const NodeId node = it->second.ref.id;
    it = entry.waiters.erase(it);
    note_interest(id, entry, node);
  }
}

bool Directory::serve_one(Time now, const ObjectId& id, Entry& entry, const Waiter& waiter, Output& out) {
  if (entry.version == 0 || entry.lost || !has_source(entry)) return false;
  const Want& want = waiter.want;
  if (want.mode == WantMode::kNotify) {
    if (entry.committed) answer_notify(id, entry, waiter, out);
    return entry.committed;
  }
  // A want that was overtaken by the node's own put: it has what it asked for.
  const Holder* holder = entry.holders.find(waiter.ref.id);
  if (holder != nullptr && holder->state != CopyState::kGrowing && holder->roots == 0) return true;
  if (!entry.committed || !host_.can_inline(id, entry.version, waiter.ref)) return assign(now, id, entry, waiter, out);
  send_bytes(now, id, entry, waiter, out);
  return true;
}

// From here, or by way of a node that has been sent them before: then the receiver is believed to have them when it says so.
void Directory::send_bytes(Time now, const ObjectId& id, Entry& entry, const Waiter& waiter, Output& out) {
  const std::uint64_t request = waiter.want.request;
  const Holder* before = entry.holders.find(waiter.ref.id);
  const bool failed_before = before != nullptr && !before->relay.is_nil();  // it asks again
  const NodeId sender =
      failed_before || waiter.ref == self_
          ? self_.id
          : entry.relays.choose(now, {self_.id, waiter.ref.id, entry.size}, host_.link_costs(), limits_);
  const Holder* relay = sender == self_.id ? nullptr : entry.holders.find(sender);
  if (relay != nullptr) {
    COVERAGE_MARK(small_object_passed_on);
    const NodeRef to = relay->ref;
    hold(id, entry, {.ref = waiter.ref, .request = request, .relay = sender});
    out.sends.push_back({to, PassOn{id, entry.version, waiter.ref, request}});
    return;
  }
  hold(id, entry, {.ref = waiter.ref, .state = CopyState::kComplete, .request = request});
  if (entry.plan) entry.plan->add_root(waiter.ref.id);
  out.sends.push_back({waiter.ref, InlineObject{request, id, entry.version, entry.meta}, true});
}

// `relay` will not pass the bytes on, or may not have: those that it was to serve wait for them again.
void Directory::take_back(const ObjectId& id, Entry& entry, NodeId relay) {
  std::vector<Holder> unserved;
  for (const auto& [node, holder] : entry.holders)
    if (holder.relay == relay) unserved.push_back(holder);
  for (const Holder& holder : unserved) {
    COVERAGE_MARK(relay_failed);
    unhold(id, entry, holder.ref.id);
    Want want;
    want.request = holder.request;
    want.id = id;
    entry.waiters[{holder.ref.id, WantMode::kFetch}] = {holder.ref, want};
    note_interest(id, entry, holder.ref.id);
  }
}

bool Directory::assign(Time now, const ObjectId& id, Entry& entry, const Waiter& waiter, Output& out) {
  if (!entry.plan) {
    // What is still being written grows from its front, in one slice.
    const std::uint32_t cut = entry.committed ? entry.slices : std::max(entry.slices, 1U);
    Plan plan = host_.make_plan({entry.size, cut, is_striped(entry)});
    entry.slices = plan.slices;
    entry.plan = std::move(plan.planner);
    for (const auto& [node, holder] : entry.holders)
      if (holder.state != CopyState::kGrowing) entry.plan->add_root(node);
  }
  Want request = waiter.want;
  // Another version, or cut otherwise by a home of before: it starts over.
  const bool other_slices = std::ranges::any_of(request.slices, [&](const auto& s) { return s.slice >= entry.slices; });
  if (request.have_version != entry.version || other_slices) request.slices.clear();
  std::vector<NodeId> parents = entry.plan->choose(now, waiter.ref.id, request);
  // Who asked, and then did not take what it was given, is nobody's parent.
  const auto is_gone = [&](NodeId parent) { return !parent.is_nil() && !entry.holders.contains(parent); };
  for (auto gone = std::ranges::find_if(parents, is_gone); gone != parents.end();
       gone = std::ranges::find_if(parents, is_gone)) {
    entry.plan->remove(*gone);
    parents = entry.plan->choose(now, waiter.ref.id, request);
  }
  // Who gets other slices already keeps its place in the plan, and asks again for the rest.
  const bool part = !request.slices.empty() && request.slices.size() < entry.slices;
  if (!(part && entry.holders.contains(waiter.ref.id)) && std::ranges::all_of(parents, &NodeId::is_nil)) return false;
  Assign answer{waiter.want.request, id, entry.version, entry.size, entry.meta, entry.committed,
                entry.slices,        {}, ++assignments_};
  for (NodeId parent : parents) answer.parents.push_back(parent.is_nil() ? NodeRef{} : entry.holders.find(parent)->ref);
  const Holder* holder = entry.holders.find(waiter.ref.id);
  if (holder == nullptr || holder->roots == 0) hold(id, entry, {.ref = waiter.ref, .request = waiter.want.request});
  out.sends.push_back({waiter.ref, std::move(answer)});
  return true;
}

}  // namespace hoplite
