#include "core/directory/directory.h"

#include <algorithm>

#include "base/check.h"
#include "base/coverage.h"
#include "core/directory/homes.h"
#include "protocol/metadata.h"

namespace hoplite {
std::size_t Directory::kind_of(const Message& message) {
  const auto* want = std::get_if<Want>(&message);
  const bool notify = want != nullptr && want->mode == WantMode::kNotify;
  return 2 * message.index() + (notify ? 1 : 0);
}

Directory::Directory(NodeRef self, const Limits& limits, Host& host, Tombstones& tombstones, const VersionMemory& known)
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
  for (const auto& [id, pending] : deleting_) tombstones_.let_go(id);
  deleting_.clear();
}

void Directory::node_died(Time now, NodeRef node, Output& out) {
  unconfirmed_.erase(node.id);
  std::vector<ObjectId> deletes;
  for (const auto& [id, pending] : deleting_) deletes.push_back(id);
  for (const ObjectId& id : deletes) dropped(now, id, node, ~Version{0}, out);
  const auto it = by_node_.find(node.id);
  if (it == by_node_.end()) return;
  const PlacedIds ids = it->second;
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
  for (; !answered_order_.empty() && answered_order_.front().until <= now; answered_order_.pop_front())
    answered_.erase(answered_order_.front().request);
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
  if (it != entries_.end() && is_empty(it->second)) entries_.erase(it);
}

bool Directory::is_empty(const Entry& entry) {
  return entry.version == 0 && entry.waiters.empty() && entry.holders.empty() && !entry.reserved;
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

void Directory::set_committed(const ObjectId& id, Entry& entry, Output& out) {
  if (!entry.committed) out.heard.push_back({id, entry.version, false});
  entry.committed = true;
}

void Directory::take_known(const ObjectId& id, Entry& entry) const {
  entry.version = known_.version_of(id);
  entry.lost_why = known_.at(id).why;
  entry.committed = true;
}

// Decides what is true of an entry whose holders changed (rules 2, 3, 4).
void Directory::resolve(Time now, const ObjectId& id, Entry& entry, Output& out) {
  if (entry.version == 0 || entry.lost) return;
  if (!recovery_.settled(id)) return recovery_.demand(now, false);  // what others know may be all that there is
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
  if (!final && (!known_.contains(id) || tombstones_.covers(id, known_.version_of(id)))) return;
  if (!final) take_known(id, entry);
  declare_lost(now, id, entry, out);
}

// Exactly one complete copy is primary; there may be two when one that was given up came back.
void Directory::ensure_primary(const ObjectId& id, Entry& entry, Output& out) {
  Holders& holders = entry.holders;
  if (holders.anybody_writes()) return;  // the writer's copy will be it
  const auto set = [&](NodeId node, bool primary) {
    holders.set_primary(node, primary);
    out.sends.push_back({holders.find(node)->ref, SetPrimary{id, entry.version, primary}});
  };
  while (holders.primaries().size() > 1) {
    COVERAGE_MARK(second_primary_released);
    set(*holders.primaries().rbegin(), false);
  }
  if (!holders.primaries().empty()) return;
  CHECK(!holders.complete().empty(), id);
  set(*holders.complete().begin(), true);
}

void Directory::declare_lost(Time now, const ObjectId& id, Entry& entry, Output& out) {
  entry.lost = true;
  entry.plan.reset();
  entry.slices = 0;
  entry.lost_until = now + limits_.tombstone_life;
  lost_.emplace_back(entry.lost_until, id);
  out.lost.push_back({id, name_in_metadata(id, entry.meta),
                      entry.lost_why.empty() ? "every complete copy was on nodes that died" : entry.lost_why});
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
  if (refuse_deleted(from, request, out)) return false;
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
  // A complete copy does not become one that is being written: this request took a detour, and the seal came first.
  const bool sealed = request.sealed || entry.holders.complete().contains(from.id);
  if (sealed) set_committed(request.id, entry, out);
  hold(request.id, entry,
       {.ref = from,
        .state = sealed ? CopyState::kComplete : CopyState::kWriting,
        .primary = true,
        .request = request.request});
  if (entry.plan) entry.plan->add_root(from.id);
  resolve(now, request.id, entry, out);
  reply(Code::kOk);
  return true;
}

// What was deleted stays deleted, and what is put must be newer than what is over (rules 6 and 7).
bool Directory::refuse_deleted(NodeRef from, const PutRequest& request, Output& out) const {
  const auto it = entries_.find(request.id);
  const bool taken = it != entries_.end() && it->second.version != 0 && !it->second.lost;
  const bool minted = !request.id.is_named() && tombstones_.contains(request.id);
  const Version gone = newest_gone(request.id);
  if (!minted && (taken || gone == 0 || is_newer(request.version, gone))) return false;
  const bool came_back = gone == request.version && !tombstones_.covers(request.id, gone);
  if (!minted && came_back) return false;  // what was taken for lost
  // The very put that was deleted is not made again.
  const bool buried = minted || tombstones_.version_of(request.id) == request.version;
  COVERAGE_MARK(put_of_an_old_version);
  out.sends.push_back({from, PutReply{request.request, request.id, Code::kDeleted, buried ? 0 : gone}});
  return true;
}

Version Directory::newest_gone(const ObjectId& id) const {
  Version newest = tombstones_.version_of(id);
  const auto consider = [&](Version version) {
    if (version != 0 && (newest == 0 || is_newer(version, newest))) newest = version;
  };
  const auto it = entries_.find(id);
  if (it != entries_.end() && it->second.lost) consider(it->second.version);
  consider(known_.version_of(id));
  return newest;
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

std::vector<Directory::Summary> Directory::summary() const {
  std::vector<Summary> all;
  for (const auto& [id, entry] : entries_) {
    Summary& s = all.emplace_back(Summary{id, entry.version, entry.committed, entry.lost, {}, entry.waiters.size()});
    for (const auto& [node, holder] : entry.holders) s.holders.push_back(holder);
  }
  return all;
}

void Directory::check_invariants() const {
  CHECK(parked_.size() <= limits_.max_parked_requests, parked_.size());
  CHECK(std::ranges::is_sorted(untold_, {}, &Untold::when), untold_.size());
  for (const auto& [id, entry] : entries_) check_entry(id, entry);
  for (const auto& [node, ids] : by_node_)
    for (const ObjectId& id : ids) {
      const Entry& entry = entries_.at(id);
      CHECK(entry.holders.contains(node) || entry.waiters.contains({node, WantMode::kFetch}) ||
                entry.waiters.contains({node, WantMode::kNotify}),
            id.to_string(), node);
    }
  for (const auto& [id, pending] : deleting_)
    CHECK(tombstones_.at(id).held && !pending.holders.empty() && !pending.askers.empty(), id, pending.holders.size());
  CHECK(answered_.size() == answered_order_.size(), answered_.size(), answered_order_.size());
}

void Directory::check_entry(const ObjectId& id, const Entry& entry) const {
  CHECK(!is_empty(entry) && home_of(id, alive_) == self_, id);
  CHECK(entry.version != 0 || (entry.holders.empty() && !entry.committed && !entry.lost && !entry.plan), id);
  CHECK(!entry.lost || (entry.committed && entry.holders.complete().empty() && !entry.plan), id, entry.version);
  CHECK(entry.slices <= limits_.max_slices, id, entry.slices);
  CHECK(!entry.plan || entry.slices > 0, id, entry.slices);
  CHECK(entry.expected == 0 || entry.reserved, id, entry.expected);
  CHECK(entry.holders.roots() <= std::max(entry.slices, limits_.max_slices), id, entry.holders.roots());
  for (const auto& [node, holder] : entry.holders) {
    CHECK(by_node_.at(node).contains(id), id, node);
    CHECK(holder.state != CopyState::kKnows && holder.roots <= limits_.max_slices, id, node);
    CHECK(holder.state != CopyState::kComplete || entry.committed, id, node);
  }
  for (const auto& [key, waiter] : entry.waiters) {
    CHECK(waiter.ref.id == key.first && waiter.want.mode == key.second, id, waiter.ref);
    CHECK(by_node_.at(key.first).contains(id), id, waiter.ref);
  }
  if (entry.plan) entry.plan->check_invariants();
}

}  // namespace hoplite
