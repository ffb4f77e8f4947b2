// What this node tells the homes of what it has: as it changes, when a home is new or asks, and once more as a routine.
#include <algorithm>

#include "base/coverage.h"
#include "core/agent/impl.h"
#include "core/directory/view.h"

namespace hoplite {

// --- facts ---------------------------------------------------------------------------------------------------------------

// What this node can tell a home about an object. False: nothing.
bool Agent::Impl::fact_of(const Record& record, Fact& fact) const {
  const Copy* copy = current_copy(record);
  if (copy == nullptr) return false;
  // A put that no home has accepted is not a fact yet: the claim itself is repeated.
  if (record.put && !record.put->claimed) return false;
  fact = {record.id,       copy->version, copy->extent.size,   copy->meta, copy->state(),
          copy->committed, copy->primary, copy->slice_count(), 0};
  if (copy->life() == CopyLife::kCombining && copy->slices.size() > 1)
    fact.roots = static_cast<std::uint32_t>(std::ranges::count(copy->slices, true, &CopySlice::combined));
  return true;
}

void Agent::Impl::announce(const Record& record, std::uint32_t rate_kib) {
  Announce message;
  if (!fact_of(record, message.facts.emplace_back())) return;
  message.rate_kib = rate_kib;
  send(record.home, std::move(message));
}

// Facts and tombstones for one home, in messages of bounded size.
class Agent::Impl::Announcing {
 public:
  Announcing(Impl& agent, NodeRef to) : agent_(agent), to_(to) {
    next_.open_requests = agent.open_requests_.empty() ? agent.next_request_ : *agent.open_requests_.begin();
  }
  // As the answer to a recovery query.
  void answer(std::uint64_t round) { next_.round = round; }
  // This is all there is for that home.
  void begin_full() { next_.full_begin = true; }
  void end_full() {
    next_.full_end = true;
    send();
  }

  void tell(const std::set<ObjectId>& ids) {
    for (const ObjectId& id : ids)
      if (Fact fact; agent_.fact_of(agent_.records_.at(id), fact)) add(std::move(fact));
  }
  void tell_known() {
    for (const ObjectId& id : agent_.known_.of_home(to_.id)) {
      const Record* r = agent_.find(id);
      const Copy* copy = r == nullptr ? nullptr : std::as_const(agent_).current_copy(*r);
      if (copy != nullptr && copy->committed) continue;  // that fact says it all
      const VersionMemory::Item& known = agent_.known_.at(id);
      add({id, known.version, 0, known.why, CopyState::kKnows, true, false, 1, 0});
    }
  }
  void tell_tombstones() {
    for (const ObjectId& id : agent_.tombstones_.of_home(to_.id)) {
      const VersionMemory::Item& stone = agent_.tombstones_.at(id);
      const std::int64_t left_s = std::max<std::int64_t>((stone.until - agent_.now_).ns / 1'000'000'000, 1);
      next_.tombstones.push_back({id, stone.version, static_cast<std::uint32_t>(left_s)});
      ++count_;
      if (next_.tombstones.size() >= agent_.limits_.facts_per_message) send();
    }
  }

  // What has not been sent yet. Returns how many facts and tombstones there were.
  std::uint32_t finish() {
    if (!next_.facts.empty() || !next_.tombstones.empty()) send();
    return count_;
  }

 private:
  void add(Fact fact) {
    next_.facts.push_back(std::move(fact));
    ++count_;
    if (next_.facts.size() >= agent_.limits_.facts_per_message) send();
  }
  void send() {
    agent_.send(to_, next_);
    next_.facts.clear();
    next_.tombstones.clear();
    next_.full_begin = false;
  }

  Impl& agent_;
  NodeRef to_;
  Announce next_;
  std::uint32_t count_ = 0;
};

// This home is new to these ids.
void Agent::Impl::announce(const std::set<ObjectId>& ids, NodeRef to) {
  Announcing facts(*this, to);
  facts.tell(ids);
  facts.finish();
}

// A newcomer does not ask for what was deleted of its own ids.
void Agent::Impl::announce_tombstones(NodeRef newcomer) {
  Announcing stones(*this, newcomer);
  stones.tell_tombstones();
  stones.finish();
}

std::set<ObjectId> Agent::Impl::ids_of_home(NodeId node) const {
  const auto it = by_home_.find(node);
  return it == by_home_.end() ? std::set<ObjectId>{} : it->second;
}

void Agent::Impl::on(NodeRef from, const RecoverQuery& m) {
  if (m.view != view_digest(alive_)) {
    COVERAGE_MARK(recovery_views_differ);
    send(from, Sync{true, membership_.all()});
    send(from, RecoverReply{m.round, view_digest(alive_), 0});
    return;
  }
  Announcing answer(*this, from);
  answer.answer(m.round);
  answer.tell(ids_of_home(from.id));
  answer.tell_known();
  answer.tell_tombstones();
  send(from, RecoverReply{m.round, view_digest(alive_), answer.finish()});
}

void Agent::Impl::remember(const ObjectId& id, Version version, const std::string& why) {
  if (known_.version_of(id) != version) known_.add(id, version, now_ + limits_.tombstone_life, home(id).id, why);
}

void Agent::Impl::resync_at(NodeId peer, Time when) {
  auto& timer = resyncs_[peer];
  if (!timer || when < timer->first) timers_.set(timer, when, timer::Resync{peer});
}

// Whoever relayed for us may have dropped what it took: it need not know the peer, nor the peer us. So all is said again
// when the detour ends.
void Agent::Impl::end_detour(NodeId peer) {
  if (unreachable_.erase(peer) > 0) resync_at(peer, now_ + limits_.retry_backoff);
}

void Agent::Impl::on(const timer::Resync& t) {
  resyncs_.erase(t.peer);
  const NodeRef peer = membership_.latest(t.peer);
  if (!membership_.is_alive(peer)) return;
  if (is_detoured(t.peer)) resync_at(t.peer, unreachable_.at(t.peer));
  resync(peer);
  send(peer, Resync{});
}

// Messages between us and `peer` may have been lost with a connection: everything once more.
void Agent::Impl::resync(NodeRef peer) {
  const std::set<ObjectId> ids = ids_of_home(peer.id);
  // By way of others it might come late, and deny what was told since.
  const bool full = !is_detoured(peer.id);
  Announcing all(*this, peer);
  if (full) all.begin_full();
  all.tell(ids);
  all.tell_tombstones();
  if (full) all.end_full();
  else all.finish();
  for (const ObjectId& id : ids)
    if (Record* r = find(id)) ask_again(*r);
  for (const std::uint64_t key : errands_.sent_to(peer)) send_errand(key);
  slots_.report_to(peer);
  coordinator_.ask_again(peer);
}

// One home after the other, so that each hears of us once in announce_every.
void Agent::Impl::refresh_next_home() {
  timers_.set(refresh_timer_, now_ + limits_.announce_every / static_cast<std::int64_t>(alive_.size()),
              timer::Refresh{});
  known_.expire(now_);
  const auto next = std::ranges::upper_bound(alive_, refreshed_last_, {}, &NodeRef::id);
  const NodeRef home = next == alive_.end() ? alive_.front() : *next;
  refreshed_last_ = home.id;
  resync(home);
}

void Agent::Impl::on(NodeRef from, const Resync&) { resync(from); }

}  // namespace hoplite
