#include "core/directory/directory.h"

#include <algorithm>

#include "base/check.h"
#include "base/coverage.h"
#include "core/directory/homes.h"

namespace hoplite {
namespace {

// Requests parked while we do not know what we should know; those beyond are asked again by their senders.
constexpr std::size_t kMaxParked = 100'000;
// Lost entries are remembered in this number: they answer "lost" instead of waiting.
constexpr std::size_t kMaxLost = 100'000;

std::string short_name(const ObjectId& id) { return id.to_string(); }

}  // namespace

Directory::Directory(NodeRef self, const Limits& limits, Host& host, Tombstones& tombstones)
    : self_(self), limits_(limits), host_(host), recovery_(self, limits), alive_{self}, tombstones_(tombstones) {}

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
  std::vector<ObjectId> moved;
  for (const auto& [id, entry] : entries_) {
    const std::uint64_t mine = home_score(id, self_.id);
    if (std::ranges::any_of(joined, [&, key = id](const NodeRef& n) { return home_score(key, n.id) > mine; }))
      moved.push_back(id);
  }
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
    const auto holder = entry.holders.find(node.id);
    if (holder != entry.holders.end() && holder->second.ref == node) unhold(id, entry, node.id);
    note_interest(id, entry, node.id);
    resolve(now, id, entry, out);
    erase_if_empty(id);
  }
}

// --- knowing what one knows (rule 5) -------------------------------------------------------------------------------------

bool Directory::park_unless_settled(Time now, NodeRef from, const ObjectId& id, const Message& message, Output& out) {
  if (recovery_.settled(id)) return false;
  if (parked_.size() < kMaxParked) parked_[{from.id, id, message.index()}] = {from, message};
  recovery_.demand(now, true);
  tick(now, out);
  // With nobody to ask, the round ended at once and the request has been replayed.
  return true;
}

void Directory::tick(Time now, Output& out) {
  tombstones_.expire(now);
  while (!lost_.empty() && (lost_.front().first <= now || lost_.size() > kMaxLost)) {
    const ObjectId id = lost_.front().second;
    lost_.pop_front();
    const auto it = entries_.find(id);
    if (it == entries_.end() || !it->second.lost) continue;
    forget_version(it->second);
    erase_if_empty(id);
  }
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

void Directory::hold(const ObjectId& id, Entry& entry, NodeRef node, CopyState state, bool primary,
                     std::uint64_t request) {
  entry.holders[node.id] = Holder{node, state, primary, false, request};
  by_node_[node.id].insert(id);
}

void Directory::unhold(const ObjectId& id, Entry& entry, NodeId node) {
  if (entry.holders.erase(node) == 0) return;
  if (entry.plan) entry.plan->remove(node);
  note_interest(id, entry, node);
}

void Directory::erase_if_empty(const ObjectId& id) {
  const auto it = entries_.find(id);
  if (it != entries_.end() && it->second.version == 0 && it->second.waiters.empty() && it->second.holders.empty())
    entries_.erase(it);
}

bool Directory::has_source(const Entry& entry) const {
  return std::ranges::any_of(entry.holders, [](const auto& item) {
    return item.second.state == CopyState::kComplete || item.second.state == CopyState::kWriting;
  });
}

void Directory::forget_version(Entry& entry) {
  entry.version = 0;
  entry.committed = entry.lost = false;
  entry.slices = 0;
  entry.plan.reset();
}

// Decides what is true of an entry whose holders changed (rules 2, 3, 4).
void Directory::resolve(Time now, const ObjectId& id, Entry& entry, Output& out) {
  if (entry.version == 0 || entry.lost || !recovery_.settled(id)) return;
  if (has_source(entry)) {
    ensure_primary(id, entry, out);
    return;
  }
  bool somebody_may_have_it = false;
  for (auto& [node, holder] : entry.holders) {
    somebody_may_have_it = true;
    if (holder.told_to_reset) continue;
    holder.told_to_reset = true;
    out.sends.push_back({holder.ref, Drop{id, entry.version, DropReason::kReset}});
  }
  if (somebody_may_have_it) return;
  if (entry.committed) {
    declare_lost(now, id, entry, out);
  } else {
    forget_version(entry);
  }
}

// Exactly one complete copy is primary; there may be two when one that was given up came back.
void Directory::ensure_primary(const ObjectId& id, Entry& entry, Output& out) {
  Holder* first_complete = nullptr;
  Holder* primary = nullptr;
  for (auto& [node, holder] : entry.holders) {
    if (holder.state == CopyState::kWriting) return;  // the writer's copy will be it
    if (holder.state != CopyState::kComplete) continue;
    if (first_complete == nullptr) first_complete = &holder;
    if (!holder.primary) continue;
    if (primary == nullptr) {
      primary = &holder;
    } else {
      COVERAGE_MARK(second_primary_released);
      holder.primary = false;
      out.sends.push_back({holder.ref, Pin{id, entry.version, false}});
    }
  }
  if (primary != nullptr) return;
  CHECK(first_complete != nullptr, id.to_string());
  first_complete->primary = true;
  out.sends.push_back({first_complete->ref, Pin{id, entry.version, true}});
}

void Directory::declare_lost(Time now, const ObjectId& id, Entry& entry, Output& out) {
  entry.lost = true;
  entry.plan.reset();
  entry.slices = 0;
  lost_.emplace_back(now + limits_.tombstone_life, id);
  out.log.push_back("object " + short_name(id) + " is lost: every complete copy was on nodes that died");
  for (auto it = entry.waiters.begin(); it != entry.waiters.end();) {
    const Waiter& waiter = it->second;
    if (waiter.want.wait_if_lost) {
      ++it;
      continue;
    }
    out.sends.push_back({waiter.ref, WantFailed{waiter.want.request, id, entry.version, Code::kLost}});
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
  if (entry.version != 0 && entry.version != request.version && !entry.lost) {
    // A version whose fate is open (rule 3) is neither taken nor refused: the sender asks again.
    if (has_source(entry)) reply(Code::kExists);
    return false;
  }
  if (entry.version != request.version || entry.lost) {
    forget_version(entry);
    entry.version = request.version;
    entry.size = request.size;
    entry.meta = request.meta;
  }
  entry.committed = entry.committed || request.sealed;
  hold(request.id, entry, from, request.sealed ? CopyState::kComplete : CopyState::kWriting, true, request.request);
  if (entry.plan) entry.plan->add_root(now, from.id);
  resolve(now, request.id, entry, out);
  reply(Code::kOk);
  return true;
}

void Directory::add_own_copy(const ObjectId& id, Version version) {
  const auto it = entries_.find(id);
  if (it == entries_.end() || it->second.version != version) return;
  if (!it->second.holders.contains(self_.id)) hold(id, it->second, self_, CopyState::kComplete, false);
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
  if (entry.lost && !want.wait_if_lost) {
    out.sends.push_back({from, WantFailed{want.request, want.id, entry.version, Code::kLost}});
    return;
  }
  if (want.mode == WantMode::kFetch) {
    const auto holder = entry.holders.find(from.id);
    if (holder != entry.holders.end() && holder->second.state != CopyState::kGrowing) {
      // It asks, so it does not have it, unless this is an old request that crossed its put.
      if (holder->second.primary) return;
      unhold(want.id, entry, from.id);
      resolve(now, want.id, entry, out);
    }
  }
  if (serve_one(now, want.id, entry, {from, want}, out)) return;
  // A partial copy stays with its owner; it is a holder only while it is attached or about to be.
  if (want.mode == WantMode::kFetch && entry.holders.contains(from.id)) {
    unhold(want.id, entry, from.id);
    resolve(now, want.id, entry, out);
  }
  if (entry.lost && !want.wait_if_lost) {
    out.sends.push_back({from, WantFailed{want.request, want.id, entry.version, Code::kLost}});
    return;
  }
  entry.waiters[{from.id, want.mode}] = {from, want};
  by_node_[from.id].insert(want.id);
  out.sends.push_back({from, Waiting{want.request, want.id, entry.lost ? 0 : entry.version}});
}

void Directory::on_unwant(NodeRef from, const Unwant& unwant) {
  parked_.erase({from.id, unwant.id, Message(Want{}).index()});
  const auto it = entries_.find(unwant.id);
  if (it == entries_.end()) return;
  it->second.waiters.erase({from.id, unwant.mode});
  note_interest(unwant.id, it->second, from.id);
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
    if (entry.committed) out.sends.push_back({waiter.ref, Found{want.request, id, entry.version, entry.size}});
    return entry.committed;
  }
  // A want that was overtaken by the node's own put: it has what it asked for.
  const auto holder = entry.holders.find(waiter.ref.id);
  if (holder != entry.holders.end() && holder->second.state != CopyState::kGrowing) return true;
  if (!entry.committed || !host_.can_inline(id, entry.version)) return assign(now, id, entry, waiter, out);
  hold(id, entry, waiter.ref, CopyState::kComplete, false, want.request);
  if (entry.plan) entry.plan->add_root(now, waiter.ref.id);
  out.sends.push_back({waiter.ref, InlineObject{want.request, id, entry.version, entry.meta}, true});
  return true;
}

bool Directory::assign(Time now, const ObjectId& id, Entry& entry, const Waiter& waiter, Output& out) {
  if (entry.slices == 0) {
    const bool cut = entry.committed && limits_.slice_bytes > 0 && entry.size > limits_.slice_bytes;
    const std::uint64_t wanted = cut ? (entry.size + limits_.slice_bytes - 1) / limits_.slice_bytes : 1;
    entry.slices = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(wanted, 1, limits_.max_slices));
  }
  if (!entry.plan) {
    entry.plan = host_.make_planner(entry.size, entry.slices);
    for (const auto& [node, holder] : entry.holders)
      if (holder.state != CopyState::kGrowing) entry.plan->add_root(now, node);
  }
  Want request = waiter.want;
  if (request.have_version != entry.version) request.slices.clear();
  const std::vector<NodeId> parents = entry.plan->choose(now, waiter.ref.id, request);
  if (std::ranges::all_of(parents, &NodeId::is_nil)) return false;
  Assign answer{waiter.want.request, id, entry.version, entry.size, entry.meta, entry.committed, entry.slices, {}};
  for (NodeId parent : parents) answer.parents.push_back(parent.is_nil() ? NodeRef{} : entry.holders.at(parent).ref);
  hold(id, entry, waiter.ref, CopyState::kGrowing, false, waiter.want.request);
  out.sends.push_back({waiter.ref, std::move(answer)});
  return true;
}

// --- facts ---------------------------------------------------------------------------------------------------------------

void Directory::on_announce(Time now, NodeRef from, const Announce& announce, Output& out) {
  if (announce.round != 0)
    recovery_.count_facts(from, announce.round, announce.facts.size() + announce.tombstones.size());
  if (announce.full_begin) {
    const auto held = by_node_.find(from.id);
    unconfirmed_[from.id] = held == by_node_.end() ? std::set<ObjectId>{} : held->second;
    // What it still wants, it asks again.
    std::erase_if(parked_, [&](const auto& item) { return item.second.from == from; });
  }
  const auto unconfirmed = unconfirmed_.find(from.id);
  for (const Tombstone& stone : announce.tombstones) take_tombstone(now, stone, out);
  for (const Fact& fact : announce.facts) {
    if (unconfirmed != unconfirmed_.end()) unconfirmed->second.erase(fact.id);
    take_fact(now, from, fact, out);
  }
  if (announce.full_end && unconfirmed != unconfirmed_.end())
    withdraw_unconfirmed(now, from, announce.open_requests, out);
  if (announce.rate_kib != 0 && announce.facts.size() == 1) {
    const auto it = entries_.find(announce.facts.front().id);
    if (it != entries_.end() && it->second.plan)
      it->second.plan->measured(from.id, std::uint64_t{announce.rate_kib} * 1024);
  }
}

// What a node holds by our books and not by its own: our news of it were lost.
void Directory::withdraw_unconfirmed(Time now, NodeRef from, std::uint64_t open_requests, Output& out) {
  const std::set<ObjectId> ids = std::move(unconfirmed_.at(from.id));
  unconfirmed_.erase(from.id);
  for (const ObjectId& id : ids) {
    const auto it = entries_.find(id);
    if (it == entries_.end() || !it->second.holders.contains(from.id)) continue;
    if (it->second.holders.at(from.id).request >= open_requests) continue;
    COVERAGE_MARK(phantom_holder_withdrawn);
    unhold(id, it->second, from.id);
    resolve(now, id, it->second, out);
    erase_if_empty(id);
  }
}

void Directory::take_tombstone(Time now, const Tombstone& stone, Output& out) {
  const Time until = now + std::min(Duration::s(stone.seconds_left), limits_.tombstone_life);
  const auto it = entries_.find(stone.id);
  if (it == entries_.end() || it->second.version == 0 || it->second.version == stone.version)
    bury(stone.id, stone.version, until, out);
}

void Directory::take_fact(Time now, NodeRef from, const Fact& fact, Output& out) {
  if (tombstones_.contains(fact.id)) {
    if (fact.state != CopyState::kKnows) out.sends.push_back({from, Drop{fact.id, fact.version, DropReason::kDeleted}});
    return;
  }
  Entry& entry = entries_[fact.id];
  if (!take_version(fact.id, entry, from, fact, out)) {
    erase_if_empty(fact.id);
    return;
  }
  if (fact.committed || fact.state == CopyState::kComplete) entry.committed = true;
  if (fact.state == CopyState::kComplete) entry.lost = false;
  if (fact.state == CopyState::kGrowing && entry.slices == 0) entry.slices = fact.slices;
  if (fact.state != CopyState::kKnows) {
    const auto known = entry.holders.find(from.id);
    const bool was_primary = known != entry.holders.end() && known->second.primary;
    // A complete copy does not become one that is being written: that fact crossed the seal.
    const bool sealed = known != entry.holders.end() && known->second.state == CopyState::kComplete;
    const CopyState state = sealed && fact.state == CopyState::kWriting ? CopyState::kComplete : fact.state;
    hold(fact.id, entry, from, state, state == CopyState::kComplete && (fact.primary || was_primary));
    if (was_primary && !fact.primary && fact.state == CopyState::kComplete)
      out.sends.push_back({from, Pin{fact.id, entry.version, true}});
    if (entry.plan && fact.state != CopyState::kGrowing) entry.plan->add_root(now, from.id);
  }
  if (!recovery_.settled(fact.id)) recovery_.demand(now, false);
  resolve(now, fact.id, entry, out);
  serve_waiters(now, fact.id, entry, out);
  erase_if_empty(fact.id);
}

// Makes `fact`'s version the entry's, or finds that it is, or has it dropped (rules 1 and 6). True if it is now.
bool Directory::take_version(const ObjectId& id, Entry& entry, NodeRef from, const Fact& fact, Output& out) {
  if (entry.version == fact.version) return true;
  const bool theirs_final = fact.committed || fact.state == CopyState::kComplete;
  const bool theirs_wins = entry.version == 0 || (entry.lost && fact.state == CopyState::kComplete) ||
                           (theirs_final && (!entry.committed || fact.version < entry.version));
  if (!theirs_wins) {
    if (fact.state != CopyState::kKnows) {
      const bool conflict = fact.state == CopyState::kComplete;
      if (conflict)
        out.log.push_back("conflict: object " + short_name(id) + " exists in two versions; the one on node " +
                          from.id.to_string() + " is dropped");
      out.sends.push_back({from, Drop{id, fact.version, conflict ? DropReason::kConflict : DropReason::kReset}});
    }
    return false;
  }
  if (entry.version != 0 && !entry.lost) {
    if (entry.committed)
      out.log.push_back("conflict: object " + short_name(id) + " exists in two versions; the one on node " +
                        from.id.to_string() + " is kept");
    const auto holders = entry.holders;
    for (const auto& [node, holder] : holders) {
      out.sends.push_back({holder.ref, Drop{id, entry.version, DropReason::kConflict}});
      unhold(id, entry, node);
    }
  }
  forget_version(entry);
  entry.version = fact.version;
  entry.size = fact.size;
  entry.meta = fact.meta;
  return true;
}

void Directory::on_withdraw(Time now, NodeRef from, const Withdraw& withdraw, Output& out) {
  const auto parked = parked_.find({from.id, withdraw.id, Message(PutRequest{}).index()});
  if (parked != parked_.end() && std::get<PutRequest>(parked->second.message).version == withdraw.version) {
    COVERAGE_MARK(parked_put_withdrawn);
    parked_.erase(parked);
  }
  dropped(withdraw.id, from, out);
  const auto it = entries_.find(withdraw.id);
  if (it == entries_.end() || it->second.version != withdraw.version) return;
  unhold(withdraw.id, it->second, from.id);
  resolve(now, withdraw.id, it->second, out);
  serve_waiters(now, withdraw.id, it->second, out);
  erase_if_empty(withdraw.id);
}

void Directory::on_evict(Time now, NodeRef from, const EvictRequest& request, Output& out) {
  bool granted = false;
  const auto it = entries_.find(request.id);
  if (!recovery_.settled(request.id)) {
    recovery_.demand(now, true);
    tick(now, out);
  } else if (it == entries_.end() || it->second.version != request.version) {
    granted = true;
  } else {
    Entry& entry = it->second;
    // The request itself tells that there is a complete copy.
    const auto known = entry.holders.find(from.id);
    if (known == entry.holders.end() || known->second.state != CopyState::kComplete)
      hold(request.id, entry, from, CopyState::kComplete, false);
    granted = std::ranges::any_of(entry.holders, [&](const auto& item) {
      return item.first != from.id && item.second.state == CopyState::kComplete;
    });
    if (granted) unhold(request.id, entry, from.id);
    ensure_primary(request.id, entry, out);
  }
  out.sends.push_back({from, EvictReply{request.id, request.version, granted}});
}

// --- deletes -------------------------------------------------------------------------------------------------------------

void Directory::on_delete(Time now, NodeRef from, const DeleteRequest& request, Output& out) {
  if (park_unless_settled(now, from, request.id, request, out)) return;
  const auto pending = deleting_.find(request.id);
  if (pending != deleting_.end()) {  // asked again: perhaps a Drop was lost
    pending->second.askers[from] = request.request;
    for (const NodeRef& holder : pending->second.holders)
      out.sends.push_back({holder, Drop{request.id, pending->second.version, DropReason::kDeleted}});
    return;
  }
  const auto it = entries_.find(request.id);
  const bool existed = it != entries_.end() && it->second.version != 0;
  std::set<NodeRef> holders;
  if (existed) {
    for (const auto& [node, holder] : it->second.holders) holders.insert(holder.ref);
    if (!holders.empty()) deleting_[request.id] = {it->second.version, holders, {{from, request.request}}};
  }
  if (it != entries_.end()) bury(request.id, it->second.version, now + limits_.tombstone_life, out);
  if (holders.empty()) out.sends.push_back({from, DeleteReply{request.request, request.id, existed}});
}

// `holder` has no copy of `id` any more. The last one's word ends the delete.
void Directory::dropped(const ObjectId& id, NodeRef holder, Output& out) {
  const auto pending = deleting_.find(id);
  if (pending == deleting_.end()) return;
  pending->second.holders.erase(holder);
  if (!pending->second.holders.empty()) return;
  for (const auto& [asker, request] : pending->second.askers)
    out.sends.push_back({asker, DeleteReply{request, id, true}});
  deleting_.erase(pending);
}

void Directory::bury(const ObjectId& id, Version version, Time until, Output& out) {
  tombstones_.add(id, version, until);
  const auto it = entries_.find(id);
  if (it == entries_.end()) return;
  Entry& entry = it->second;
  for (const auto& [node, holder] : entry.holders) {
    out.sends.push_back({holder.ref, Drop{id, entry.version, DropReason::kDeleted}});
    by_node_[node].erase(id);
  }
  for (const auto& [key, waiter] : entry.waiters) {
    out.sends.push_back({waiter.ref, WantFailed{waiter.want.request, id, entry.version, Code::kDeleted}});
    by_node_[key.first].erase(id);
  }
  entries_.erase(it);
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
