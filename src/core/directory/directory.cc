#include "core/directory/directory.h"

#include <algorithm>

#include "base/check.h"
#include "base/coverage.h"
#include "core/directory/homes.h"

namespace hoplite {
namespace {


}  // namespace

std::size_t Directory::kind_of(const Message& message) {
  const auto* want = std::get_if<Want>(&message);
  const bool notify = want != nullptr && want->mode == WantMode::kNotify;
  return 2 * message.index() + (notify ? 1 : 0);
}

Directory::Directory(NodeRef self, const Limits& limits, Host& host, VersionMemory& tombstones,
                     const VersionMemory& known)
    : self_(self),
      limits_(limits),
      host_(host),
      recovery_(self, limits),
      alive_{self},
      tombstones_(tombstones),
      known_(known) {}

// --- the view ------------------------------------------------------------------------------------------------------------

void Directory::set_view(Time now, const std::vector<NodeRef>& alive, Output& out) {
  std::vector<NodeRef> died;
  std::vector<NodeRef> joined;
  std::ranges::set_difference(alive_, alive, std::back_inserter(died));
  std::ranges::set_difference(alive, alive_, std::back_inserter(joined));
  alive_ = alive;
  recovery_.set_view(now, alive, died);
  drop_foreign_entries(joined);
  for (const NodeRef& node : died) node_died(now, node, out);
  tick(now, out);
}

void Directory::drop_foreign_entries(const std::vector<NodeRef>& joined) {
  if (joined.empty()) return;
  std::vector<NodeId> joined_ids;
  for (const NodeRef& node : joined) joined_ids.push_back(node.id);
  std::vector<ObjectId> moved;
  for (const auto& [id, entry] : entries_)
    if (moves_home(id, self_.id, joined_ids)) moved.push_back(id);
  for (const ObjectId& id : moved) {
    Entry& entry = entries_.at(id);
    std::vector<NodeId> nodes;
    for (const auto& [node, holder] : entry.holders) nodes.push_back(node);
    for (const auto& [key, waiter] : entry.waiters) nodes.push_back(key.first);
    for (NodeId node : nodes) by_node_[node].erase(id);
    entries_.erase(id);
  }
}

void Directory::reset(NodeRef self) {
  self_ = self;
  recovery_.reset(self);
  entries_.clear();
  by_node_.clear();
  lost_.clear();
  untold_.clear();
  parked_.clear();
  unconfirmed_.clear();
  deleting_.clear();
}

void Directory::node_died(Time now, NodeRef node, Output& out) {
  unconfirmed_.erase(node.id);
  std::vector<ObjectId> deletes;
  for (const auto& [id, pending] : deleting_) deletes.push_back(id);
  for (const ObjectId& id : deletes) dropped(id, node, out);
  const auto it = by_node_.find(node.id);
  if (it == by_node_.end()) return;
  const std::set<ObjectId> ids = it->second;
  for (const ObjectId& id : ids) {
    Entry& entry = entries_.at(id);
    std::erase_if(entry.waiters, [&](const auto& item) { return item.second.ref == node; });
    const Holder* holder = entry.holders.find(node.id);
    if (holder != nullptr && holder->ref == node) unhold(id, entry, node.id);
    take_back(id, entry, node.id);
    note_interest(id, entry, node.id);
    resolve(now, id, entry, out);
    serve_waiters(now, id, entry, out);
    erase_if_empty(id);
  }
}

// --- knowing what one knows (rule 5) -------------------------------------------------------------------------------------

bool Directory::park_unless_settled(Time now, NodeRef from, const ObjectId& id, const Message& message, Output& out) {
  if (recovery_.settled(id)) return false;
  if (parked_.size() < limits_.max_parked_requests) parked_[{from.id, id, kind_of(message)}] = {from, message};
  recovery_.demand(now, true);
  tick(now, out);
  // With nobody to ask, the round ended at once and the request has been replayed.
  return true;
}

void Directory::tick(Time now, Output& out) {
  tombstones_.expire(now);
  while (!lost_.empty() && (lost_.front().first <= now || lost_.size() > limits_.max_lost)) {
    const auto [when, id] = lost_.front();
    lost_.pop_front();
    const auto it = entries_.find(id);
    // It may have been put again and lost again: then this is not its time.
    if (it == entries_.end() || !it->second.lost || it->second.lost_until > when) continue;
    forget_version(it->second);
    erase_if_empty(id);
  }
  tell_waiters(now, out);
  std::vector<Recovery::Ask> asks;
  const bool ended = recovery_.advance(now, asks);
  for (Recovery::Ask& ask : asks) out.sends.push_back({ask.to, ask.query});
  if (ended) after_settling(now, out);
}

void Directory::after_settling(Time now, Output& out) {
  std::vector<ObjectId> ids;
  for (const auto& [id, entry] : entries_) ids.push_back(id);
  for (const ObjectId& id : ids) {
    const auto it = entries_.find(id);
    if (it == entries_.end()) continue;
    resolve(now, id, it->second, out);
    serve_waiters(now, id, it->second, out);
    erase_if_empty(id);
  }
  replay_parked(now, out);
}

void Directory::replay_parked(Time now, Output& out) {
  auto parked = std::move(parked_);
  parked_.clear();
  for (auto& [key, request] : parked) {
    // While it was parked, its sender may have died, or its home moved; then its sender has asked there.
    if (!std::ranges::binary_search(alive_, request.from)) continue;
    if (home_of(std::get<ObjectId>(key), alive_) != self_) continue;
    if (const auto* put = std::get_if<PutRequest>(&request.message)) {
      on_put(now, request.from, *put, out);
      serve(now, put->id, out);
    }
    if (const auto* want = std::get_if<Want>(&request.message)) on_want(now, request.from, *want, out);
    if (const auto* del = std::get_if<DeleteRequest>(&request.message)) on_delete(now, request.from, *del, out);
  }
}

void Directory::on_recover_reply(Time now, NodeRef from, const RecoverReply& reply, Output& out) {
  recovery_.on_reply(now, from, reply);
  tick(now, out);
}

Time Directory::next_wakeup() const {
  Time next = recovery_.next_wakeup();
  if (!lost_.empty()) next = std::min(next, lost_.front().first);
  if (!untold_.empty()) next = std::min(next, untold_.front().when);
  return next;
}

// --- who holds what ------------------------------------------------------------------------------------------------------

void Directory::note_interest(const ObjectId& id, const Entry& entry, NodeId node) {
  const bool interested = entry.holders.contains(node) || entry.waiters.contains({node, WantMode::kFetch}) ||
                          entry.waiters.contains({node, WantMode::kNotify});
  if (interested) {
    by_node_[node].insert(id);
    return;
  }
  const auto it = by_node_.find(node);
  if (it == by_node_.end()) return;
  it->second.erase(id);
  if (it->second.empty()) by_node_.erase(it);
}

void Directory::hold(const ObjectId& id, Entry& entry, const Holder& holder) {
  entry.holders.put(holder);
  by_node_[holder.ref.id].insert(id);
}

void Directory::unhold(const ObjectId& id, Entry& entry, NodeId node) {
  if (!entry.holders.erase(node)) return;
  if (entry.plan) entry.plan->remove(node);
  entry.relays.remove(node);
  note_interest(id, entry, node);
}

void Directory::erase_if_empty(const ObjectId& id) {
  const auto it = entries_.find(id);
  if (it != entries_.end() && it->second.version == 0 && it->second.waiters.empty() && it->second.holders.empty() &&
      !it->second.reserved)
    entries_.erase(it);
}

// Its slices come into being on different nodes.
bool Directory::is_striped(const Entry& entry) { return entry.holders.roots() > 0; }

bool Directory::has_source(const Entry& entry) {
  if (!entry.holders.complete().empty()) return true;
  return is_striped(entry) ? entry.holders.roots() == entry.slices : entry.holders.anybody_writes();
}

void Directory::forget_version(Entry& entry) {
  entry.version = 0;
  entry.committed = entry.lost = entry.described = false;
  entry.slices = 0;
  entry.lost_why.clear();
  entry.plan.reset();
  entry.relays = {};
}

void Directory::describe(Entry& entry, std::uint64_t size, const std::string& meta) {
  entry.described = true;
  entry.size = size;
  entry.meta = meta;
}

void Directory::take_known(const ObjectId& id, Entry& entry) const {
  entry.version = known_.version_of(id);
  entry.lost_why = known_.at(id).why;
  entry.committed = true;
}

// Decides what is true of an entry whose holders changed (rules 2, 3, 4).
void Directory::resolve(Time now, const ObjectId& id, Entry& entry, Output& out) {
  if (entry.version == 0 || entry.lost || !recovery_.settled(id)) return;
  if (has_source(entry)) {
    ensure_primary(id, entry, out);
    return;
  }
  if (entry.reserved) return;  // the coordinator sees to it
  bool somebody_may_have_it = false;
  for (const auto& [node, holder] : entry.holders) {
    somebody_may_have_it = true;
    if (holder.told_to_reset) continue;
    entry.holders.told_to_reset(node);
    out.sends.push_back({holder.ref, Drop{id, entry.version, DropReason::kReset}});
  }
  if (somebody_may_have_it) return;
  const bool final = entry.committed;
  if (!final) forget_version(entry);
  // What nobody can finish may yet be known: a reduce whose coordinator died.
  if (!final && !known_.contains(id)) return;
  if (!final) take_known(id, entry);
  declare_lost(now, id, entry, out);
}

// Exactly one complete copy is primary; there may be two when one that was given up came back.
void Directory::ensure_primary(const ObjectId& id, Entry& entry, Output& out) {
  Holders& holders = entry.holders;
  if (holders.anybody_writes()) return;  // the writer's copy will be it
  const auto set = [&](NodeId node, bool primary) {
    holders.set_primary(node, primary);
    out.sends.push_back({holders.find(node)->ref, Pin{id, entry.version, primary}});
  };
  while (holders.primaries().size() > 1) {
    COVERAGE_MARK(second_primary_released);
    set(*holders.primaries().rbegin(), false);
  }
  if (!holders.primaries().empty()) return;
  CHECK(!holders.complete().empty(), id.to_string());
  set(*holders.complete().begin(), true);
}

void Directory::declare_lost(Time now, const ObjectId& id, Entry& entry, Output& out) {
  entry.lost = true;
  entry.plan.reset();
  entry.slices = 0;
  entry.lost_until = now + limits_.tombstone_life;
  lost_.emplace_back(entry.lost_until, id);
  out.log.push_back("object " + id.to_string() + " is lost: " +
                    (entry.lost_why.empty() ? "every complete copy was on nodes that died" : entry.lost_why));
  for (auto it = entry.waiters.begin(); it != entry.waiters.end();) {
    const Waiter& waiter = it->second;
    if (waiter.want.wait_if_lost) {
      ++it;
      continue;
    }
    out.sends.push_back({waiter.ref, WantFailed{waiter.want.request, id, entry.version, Code::kLost, entry.lost_why}});
    const NodeId node = waiter.ref.id;
    it = entry.waiters.erase(it);
    note_interest(id, entry, node);
  }
}

// --- puts ----------------------------------------------------------------------------------------------------------------

bool Directory::on_put(Time now, NodeRef from, const PutRequest& request, Output& out) {
  if (park_unless_settled(now, from, request.id, request, out)) return false;
  const auto reply = [&](Code code) { out.sends.push_back({from, PutReply{request.request, request.id, code}}); };
  if (tombstones_.contains(request.id)) {
    reply(Code::kDeleted);
    return false;
  }
  Entry& entry = entries_[request.id];
  if (entry.reserved) {
    reply(Code::kExists);
    return false;
  }
  if (entry.version != 0 && entry.version != request.version && !entry.lost) {
    // A version whose fate is open (rule 3) is neither taken nor refused: the sender asks again.
    if (has_source(entry)) reply(Code::kExists);
    return false;
  }
  if (entry.version == request.version && entry.described && entry.size != request.size) {
    reply(Code::kExists);  // not the same bytes, whatever it says
    return false;
  }
  if (entry.version != request.version || entry.lost) {
    forget_version(entry);
    entry.version = request.version;
  }
  describe(entry, request.size, request.meta);
  entry.committed = entry.committed || request.sealed;
  hold(request.id, entry,
       {.ref = from,
        .state = request.sealed ? CopyState::kComplete : CopyState::kWriting,
        .primary = true,
        .request = request.request});
  if (entry.plan) entry.plan->add_root(from.id);
  resolve(now, request.id, entry, out);
  reply(Code::kOk);
  return true;
}

void Directory::add_own_copy(const ObjectId& id, Version version) {
  const auto it = entries_.find(id);
  if (it == entries_.end() || it->second.version != version) return;
  if (!it->second.holders.contains(self_.id)) hold(id, it->second, {.ref = self_, .state = CopyState::kComplete});
}

void Directory::serve(Time now, const ObjectId& id, Output& out) {
  const auto it = entries_.find(id);
  if (it != entries_.end()) serve_waiters(now, id, it->second, out);
}

// --- wants ---------------------------------------------------------------------------------------------------------------

void Directory::on_want(Time now, NodeRef from, const Want& want, Output& out) {
  if (park_unless_settled(now, from, want.id, want, out)) return;
  if (tombstones_.contains(want.id)) {
    out.sends.push_back({from, WantFailed{want.request, want.id, 0, Code::kDeleted}});
    return;
  }
  Entry& entry = entries_[want.id];
  if (entry.version == 0 && !entry.reserved && known_.contains(want.id)) {
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
  if (serve_one(now, want.id, entry, {from, want}, out)) return;
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
  entry.waiters[{from.id, want.mode}] = {from, want};
  by_node_[from.id].insert(want.id);
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
  if (!entry.committed || !host_.can_inline(id, entry.version)) return assign(now, id, entry, waiter, out);
  send_bytes(now, id, entry, waiter, out);
  return true;
}

// From here, or by way of a node that has been sent them before: then the receiver is believed to have them when it says so.
void Directory::send_bytes(Time now, const ObjectId& id, Entry& entry, const Waiter& waiter, Output& out) {
  const std::uint64_t request = waiter.want.request;
  const Holder* before = entry.holders.find(waiter.ref.id);
  const bool failed_before = before != nullptr && !before->relay.is_nil();  // it asks again
  const NodeId sender = failed_before || waiter.ref == self_
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
  Assign answer{waiter.want.request, id, entry.version, entry.size, entry.meta, entry.committed, entry.slices, {}, ++assignments_};
  for (NodeId parent : parents) answer.parents.push_back(parent.is_nil() ? NodeRef{} : entry.holders.find(parent)->ref);
  const Holder* holder = entry.holders.find(waiter.ref.id);
  if (holder == nullptr || holder->roots == 0) hold(id, entry, {.ref = waiter.ref, .request = waiter.want.request});
  out.sends.push_back({waiter.ref, std::move(answer)});
  return true;
}

std::vector<Directory::Summary> Directory::summary() const {
  std::vector<Summary> all;
  for (const auto& [id, entry] : entries_) {
    Summary& s = all.emplace_back(Summary{id, entry.version, entry.committed, entry.lost, {}, entry.waiters.size()});
    for (const auto& [node, holder] : entry.holders) s.holders.push_back(holder);
  }
  return all;
}

}  // namespace hoplite
