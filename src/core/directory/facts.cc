// The directory's second half: what nodes tell about themselves, and deletes.
#include <algorithm>

#include "base/coverage.h"
#include "core/directory/directory.h"
#include "protocol/metadata.h"

namespace hoplite {

// --- facts ---------------------------------------------------------------------------------------------------------------

void Directory::on_announce(Time now, NodeRef from, const Announce& announce, Output& out, std::size_t left_out) {
  if (announce.round != 0)
    recovery_.count_facts(from, announce.round, announce.facts.size() + announce.tombstones.size() + left_out);
  if (announce.full_begin) begin_full(from, announce);
  // First: a receiver that has finished has no parent in the plan any more.
  if (announce.rate_kib != 0 && announce.facts.size() == 1) {
    const auto it = entries_.find(announce.facts.front().id);
    if (it != entries_.end() && it->second.plan)
      it->second.plan->measured(from.id, std::uint64_t{announce.rate_kib} * 1024);
  }
  const auto unconfirmed = unconfirmed_.find(from.id);
  for (const Tombstone& stone : announce.tombstones) take_tombstone(now, stone, out);
  for (const Fact& fact : announce.facts) {
    if (unconfirmed != unconfirmed_.end()) {
      unconfirmed->second.erase(fact.id);
      if (!knows(from, fact)) ++repairs_;
    }
    take_fact(now, from, fact, out);
  }
  if (announce.full_end && unconfirmed != unconfirmed_.end())
    withdraw_unconfirmed(now, from, announce.open_requests, out);
}

void Directory::begin_full(NodeRef from, const Announce& announce) {
  std::set<ObjectId>& unconfirmed = unconfirmed_[from.id];
  unconfirmed.clear();
  const auto held = by_node_.find(from.id);
  if (held == by_node_.end() || announce.first > announce.last) return;
  const auto end = held->second.upper_bound(Place{announce.last});
  for (auto it = held->second.lower_bound(Place{announce.first}); it != end; ++it) unconfirmed.insert(*it);
}

Compared Directory::on_compare(NodeRef from, const Compare& compare) {
  // What it still wants, it asks again.
  if (compare.first == 0) std::erase_if(parked_, [&](const auto& item) { return item.second.from == from; });
  Compared answer{compare.comparison, compare.first, compare.last, false};
  const auto ids = by_node_.find(from.id);
  if (ids == by_node_.end()) {
    answer.differs = compare.digest != 0;
    return answer;
  }
  std::uint64_t digest = 0;
  std::uint32_t looked_at = 0;
  const auto end = ids->second.upper_bound(Place{compare.last});
  for (auto it = ids->second.lower_bound(Place{compare.first}); it != end; ++it) {
    // It may wait for some of them, and have news of others under way; but not for so many.
    if (looked_at++ == 2 * limits_.compared_at_once) {
      answer.last = std::max(place_of(*it).value - 1, answer.first);
      answer.differs = true;
      return answer;
    }
    const Entry& entry = entries_.at(*it);
    const Holder* holder = entry.holders.find(from.id);
    if (holder != nullptr && holder->ref == from)
      digest += copy_digest(*it, entry.version, holder->state == CopyState::kComplete, holder->primary);
  }
  answer.differs = digest != compare.digest;
  return answer;
}

// Whether the books say that `from` has a copy of this version, or that it waits for a parent: then it may have some of it.
bool Directory::knows(NodeRef from, const Fact& fact) const {
  const auto it = entries_.find(fact.id);
  if (it == entries_.end()) return false;
  if (fact.state == CopyState::kGrowing && it->second.waiters.contains({from.id, WantMode::kFetch})) return true;
  const Holder* holder = it->second.holders.find(from.id);
  return holder != nullptr && holder->ref == from && it->second.version == fact.version;
}

// What a node holds by our books and not by its own: our news of it were lost.
void Directory::withdraw_unconfirmed(Time now, NodeRef from, std::uint64_t open_requests, Output& out) {
  const std::set<ObjectId> ids = std::move(unconfirmed_.at(from.id));
  unconfirmed_.erase(from.id);
  for (const ObjectId& id : ids) {
    const auto it = entries_.find(id);
    if (it == entries_.end() || !it->second.holders.contains(from.id)) continue;
    if (it->second.holders.find(from.id)->request >= open_requests) continue;
    COVERAGE_MARK(phantom_holder_withdrawn);
    ++repairs_;
    unhold(id, it->second, from.id);
    resolve(now, id, it->second, out);
    erase_if_empty(id);
  }
}

void Directory::take_tombstone(Time now, const Tombstone& stone, Output& out) {
  const Time until = now + std::min(Duration::s(stone.seconds_left), limits_.tombstone_life);
  const auto it = entries_.find(stone.id);
  if (!stone.id.is_named()) {
    // What is only known by hearsay may be an older version of what was deleted; what is newer was put again after a loss.
    const bool put_again = it != entries_.end() && !it->second.holders.empty() && stone.version != 0 &&
                           is_newer(it->second.version, stone.version);
    if (!put_again) bury(stone.id, stone.version, until, out);
    return;
  }
  if (stone.version == 0) return;
  tombstones_.bury(stone.id, stone.version, until, self_.id);
  if (it == entries_.end()) return;
  // Who waits for a name waits for what is put next.
  const Version made = it->second.reserved ? it->second.expected : it->second.version;
  if (made != 0 && tombstones_.covers(stone.id, made)) bury(stone.id, stone.version, until, out);
}

void Directory::take_fact(Time now, NodeRef from, const Fact& fact, Output& out) {
  if (tombstones_.covers(fact.id, fact.version)) {
    if (fact.state != CopyState::kKnows) out.sends.push_back({from, Drop{fact.id, fact.version, DropReason::kDeleted}});
    return;
  }
  Entry& entry = entries_[fact.id];
  if (entry.reserved && fact.state == CopyState::kKnows) return;  // what was before does not matter any more
  const bool news = entry.version == 0;
  if (!take_version(fact.id, entry, from, fact, out)) {
    erase_if_empty(fact.id);
    return;
  }
  if (fact.state == CopyState::kKnows && news) entry.lost_why = fact.lost_why;
  if (fact.committed || fact.state == CopyState::kComplete) set_committed(fact.id, entry, out);
  if (fact.state == CopyState::kComplete) entry.lost = false;
  if ((fact.state == CopyState::kGrowing || fact.roots > 0) && entry.slices == 0) entry.slices = fact.slices;
  if (fact.state != CopyState::kKnows) {
    const Holder* known = entry.holders.find(from.id);
    const bool was_primary = known != nullptr && known->primary;
    // A complete copy does not become one that is being written: that fact crossed the seal.
    const bool sealed = known != nullptr && known->state == CopyState::kComplete;
    const CopyState state = sealed && fact.state == CopyState::kWriting ? CopyState::kComplete : fact.state;
    hold(fact.id, entry,
         {.ref = from,
          .state = state,
          .primary = state == CopyState::kComplete && (fact.primary || was_primary),
          .roots = state == CopyState::kWriting ? fact.roots : 0});
    if (was_primary && !fact.primary && fact.state == CopyState::kComplete)
      out.sends.push_back({from, SetPrimary{fact.id, entry.version, true}});
    if (entry.plan && fact.state != CopyState::kGrowing) entry.plan->add_root(from.id);
  }
  if (!recovery_.settled(fact.id)) recovery_.demand(now, false);
  resolve(now, fact.id, entry, out);
  serve_waiters(now, fact.id, entry, out);
  erase_if_empty(fact.id);
}

// Makes `fact`'s version the entry's, or finds that it is, or has it dropped (rules 1 and 6). True if it is now.
bool Directory::take_version(const ObjectId& id, Entry& entry, NodeRef from, const Fact& fact, Output& out) {
  const bool theirs_final = fact.committed || fact.state == CopyState::kComplete;
  const bool has_bytes = fact.state != CopyState::kKnows;
  if (entry.version == fact.version) {
    if (has_bytes && entry.described && entry.size != fact.size) return false;  // not the same bytes, whatever it says
    if (has_bytes) describe(entry, fact.size, fact.meta);
    return true;
  }
  if (entry.reserved && !theirs_final && fact.version != entry.expected) {
    // An older attempt. Its root has a new order on the way; whoever copied it is to let go.
    if (fact.state == CopyState::kGrowing) out.sends.push_back({from, Drop{id, fact.version, DropReason::kReset}});
    return false;
  }
  // What is final and newer wins, also by hearsay: nobody is to read what it has replaced. Otherwise hearsay gives way to
  // bytes: whoever knows an older version may not have heard that it was lost and put again.
  const bool ours_newer = is_newer(entry.version, fact.version);
  const bool ours_final = entry.committed && ours_newer;
  const bool theirs_wins = entry.version == 0 || (theirs_final && is_newer(fact.version, entry.version)) ||
                           (has_bytes && entry.holders.empty() && !entry.lost && !ours_final) ||
                           (entry.lost && fact.state == CopyState::kComplete && !ours_newer) ||
                           (has_bytes && theirs_final && (!entry.committed || prevails(fact.version, entry.version)));
  if (!theirs_wins) {
    if (has_bytes) {
      const bool conflict = fact.state == CopyState::kComplete;
      if (conflict)
        out.log.push_back("conflict: object " + described(id, name_in_metadata(id, entry.meta)) +
                          " exists in two versions; the one on node " + from.id.to_string() + " is dropped");
      out.sends.push_back({from, Drop{id, fact.version, conflict ? DropReason::kConflict : DropReason::kReset}});
    }
    return false;
  }
  if (entry.version != 0 && !entry.lost) {
    if (entry.committed && !entry.holders.empty())
      out.log.push_back("conflict: object " + described(id, name_in_metadata(id, entry.meta)) +
                        " exists in two versions; the one on node " + from.id.to_string() + " is kept");
    const auto holders = entry.holders;
    for (const auto& [node, holder] : holders) {
      out.sends.push_back({holder.ref, Drop{id, entry.version, DropReason::kConflict}});
      unhold(id, entry, node);
    }
  }
  forget_version(entry);
  entry.version = fact.version;
  if (has_bytes) describe(entry, fact.size, fact.meta);
  return true;
}

void Directory::on_withdraw(Time now, NodeRef from, const Withdraw& withdraw, Output& out) {
  const auto parked = parked_.find({from.id, withdraw.id, kind_of(PutRequest{})});
  if (parked != parked_.end() && std::get<PutRequest>(parked->second.message).version == withdraw.version) {
    COVERAGE_MARK(parked_put_withdrawn);
    parked_.erase(parked);
  }
  dropped(now, withdraw.id, from, withdraw.version, out);
  const auto it = entries_.find(withdraw.id);
  if (it == entries_.end() || it->second.version != withdraw.version) return;
  unhold(withdraw.id, it->second, from.id);
  take_back(withdraw.id, it->second, from.id);
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
  } else if (it->second.described) {
    Entry& entry = it->second;
    // The request itself tells that there is a complete copy.
    if (!entry.holders.complete().contains(from.id))
      hold(request.id, entry, {.ref = from, .state = CopyState::kComplete});
    granted = entry.holders.complete().size() > 1;
    if (granted) unhold(request.id, entry, from.id);
    ensure_primary(request.id, entry, out);
  }
  out.sends.push_back({from, EvictReply{request.id, request.version, granted}});
}

// --- deletes -------------------------------------------------------------------------------------------------------------

void Directory::on_delete(Time now, NodeRef from, const DeleteRequest& request, Output& out) {
  if (park_unless_settled(now, from, request.id, request, out)) return;
  if (answer_again(from, request, out)) return;
  const auto it = entries_.find(request.id);
  const bool existed = it != entries_.end() && (it->second.version != 0 || it->second.reserved);
  if (existed)
    for (const auto& [node, holder] : it->second.holders)
      deleting_[request.id].holders[holder.ref] = it->second.version;
  const bool pending = deleting_.contains(request.id);
  if (pending) deleting_[request.id].askers.insert({from, request.request});
  // An id that another node mints may be in use on that node before we have heard of it.
  const bool others_may_know = !request.id.is_named() && request.id.hi != self_.id.value;
  Version version = it == entries_.end() ? 0 : it->second.version;
  if (it != entries_.end() && it->second.expected != 0) version = it->second.expected;  // as old as what there is of it
  if (it != entries_.end() || others_may_know) bury(request.id, version, now + limits_.tombstone_life, out);
  if (pending) tombstones_.hold(request.id);
  else answer_delete(now, request.id, from, request.request, existed, out);
}

// The same delete: perhaps a Drop was lost, or the answer.
bool Directory::answer_again(NodeRef from, const DeleteRequest& request, Output& out) {
  const auto answered = answered_.find({from.id, request.request});
  if (answered != answered_.end()) {
    out.sends.push_back({from, DeleteReply{request.request, request.id, answered->second}});
    return true;
  }
  const auto pending = deleting_.find(request.id);
  if (pending == deleting_.end() || !pending->second.askers.contains({from, request.request})) return false;
  for (const auto& [holder, version] : pending->second.holders)
    out.sends.push_back({holder, Drop{request.id, version, DropReason::kDeleted}});
  return true;
}

void Directory::answer_delete(Time now, const ObjectId& id, NodeRef asker, std::uint64_t request, bool existed,
                              Output& out) {
  out.sends.push_back({asker, DeleteReply{request, id, existed}});
  if (!answered_.try_emplace({asker.id, request}, existed).second) return;
  answered_order_.push_back({now + limits_.late_word, {asker.id, request}});
  for (; answered_order_.size() > limits_.max_tombstones; answered_order_.pop_front())
    answered_.erase(answered_order_.front().request);
}

// --- reduces -------------------------------------------------------------------------------------------------------------

// The bytes themselves, if they are welcome and here; otherwise where they are.
void Directory::answer_notify(const ObjectId& id, Entry& entry, const Waiter& waiter, Output& out) {
  const Want& want = waiter.want;
  if (want.inline_bytes > 0 && entry.size <= want.inline_bytes && waiter.ref != self_ &&
      host_.can_inline(id, entry.version, waiter.ref)) {
    hold(id, entry, {.ref = waiter.ref, .state = CopyState::kComplete, .request = want.request});
    if (entry.plan) entry.plan->add_root(waiter.ref.id);
    out.sends.push_back({waiter.ref, InlineObject{want.request, id, entry.version, entry.meta}, true});
    return;
  }
  Found found{want.request, id, entry.version, entry.size, entry.meta, {}};
  const auto& primaries = entry.holders.primaries();
  const auto& some = primaries.empty() ? entry.holders.complete() : primaries;
  if (!some.empty()) found.holder = entry.holders.find(*some.begin())->ref;
  out.sends.push_back({waiter.ref, std::move(found)});
}

bool Directory::knows(Time now, const ObjectId& id, Output& out) {
  if (recovery_.settled(id)) return true;
  recovery_.demand(now, true);
  tick(now, out);
  return recovery_.settled(id);
}

Code Directory::reserve(Time now, const ObjectId& id, Output& out) {
  if (!knows(now, id, out)) return Code::kUnavailable;
  if (tombstones_.contains(id) && !id.is_named()) return Code::kDeleted;
  Entry& entry = entries_[id];
  if (entry.reserved) return Code::kExists;
  resolve(now, id, entry, out);  // what is only hearsay is lost, and may be made anew
  if (entry.version != 0 && !entry.lost) return has_source(entry) ? Code::kExists : Code::kUnavailable;
  forget_version(entry);
  entry.reserved = true;
  return Code::kOk;
}

void Directory::expect(const ObjectId& id, Version version, Output& out) {
  const auto it = entries_.find(id);
  if (it == entries_.end() || !it->second.reserved || it->second.expected == version) return;
  Entry& entry = it->second;
  entry.expected = version;
  if (entry.version == 0 || entry.committed) return;
  const auto holders = entry.holders;
  for (const auto& [node, holder] : holders) {
    out.sends.push_back({holder.ref, Drop{id, entry.version, DropReason::kReset}});
    unhold(id, entry, node);
  }
  forget_version(entry);
}

std::string Directory::why_lost(const ObjectId& id) const {
  const auto it = entries_.find(id);
  return it != entries_.end() && it->second.lost ? it->second.lost_why : "";
}

void Directory::release(Time now, const ObjectId& id, Output& out) {
  const auto it = entries_.find(id);
  if (it == entries_.end()) return;
  it->second.reserved = false;
  it->second.expected = 0;
  resolve(now, id, it->second, out);
  erase_if_empty(id);
}

void Directory::commit(const ObjectId& id, Version version, Output& out) {
  const auto it = entries_.find(id);
  if (it != entries_.end() && it->second.version == version) set_committed(id, it->second, out);
}

void Directory::fail_waiters(const ObjectId& id, Code code, const std::string& why, Output& out) {
  const auto it = entries_.find(id);
  if (it == entries_.end()) return;
  Entry& entry = it->second;
  std::vector<NodeId> told;
  std::erase_if(entry.waiters, [&](const auto& item) {
    const Waiter& waiter = item.second;
    if (code == Code::kLost && waiter.want.wait_if_lost) return false;
    out.sends.push_back({waiter.ref, WantFailed{waiter.want.request, id, 0, code, why}});
    told.push_back(waiter.ref.id);
    return true;
  });
  for (const NodeId node : told) note_interest(id, entry, node);  // it may wait in another way still
  erase_if_empty(id);
}

bool Directory::is_taken(const ObjectId& id) const {
  const auto it = entries_.find(id);
  return it != entries_.end() && (it->second.reserved || (it->second.version != 0 && !it->second.lost));
}

bool Directory::is_deleted(const ObjectId& id) const {
  if (!tombstones_.contains(id)) return false;
  if (!id.is_named()) return true;
  const auto it = entries_.find(id);
  const bool put_since = it != entries_.end() && (it->second.version != 0 || it->second.reserved);
  return !put_since && tombstones_.covers(id, known_.version_of(id));
}

// `holder` has no copy of this version of `id` any more, nor of older ones. The last one's word ends the delete.
void Directory::dropped(Time now, const ObjectId& id, NodeRef holder, Version version, Output& out) {
  const auto pending = deleting_.find(id);
  if (pending == deleting_.end()) return;
  const auto it = pending->second.holders.find(holder);
  if (it == pending->second.holders.end() || (it->second != version && !is_newer(version, it->second))) return;
  pending->second.holders.erase(it);
  if (pending->second.holders.empty()) end_delete(now, id, out);
}

void Directory::end_delete(Time now, const ObjectId& id, Output& out) {
  for (const auto& [asker, request] : deleting_.at(id).askers) answer_delete(now, id, asker, request, true, out);
  deleting_.erase(id);
  tombstones_.let_go(id);
}

void Directory::bury(const ObjectId& id, Version version, Time until, Output& out) {
  if (version != 0 || !id.is_named()) {
    tombstones_.bury(id, version, until, self_.id);
    out.heard.push_back({id, version, true});
  }
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

}  // namespace hoplite
