// Membership, homes, lost connections.
#include <algorithm>

#include "base/coverage.h"
#include "core/agent/impl.h"
#include "core/directory/homes.h"
#include "core/directory/view.h"

namespace hoplite {

void Agent::Impl::on(NodeRef from, const Relay& m) {
  if (m.to == self()) {
    const auto inner = decode_message(as_bytes(m.message));
    // Never a relay. Bytes come with those messages only that have some.
    if (!inner || !inner->payload.empty() || std::holds_alternative<Relay>(inner->message)) return;
    const bool has_bytes =
        std::holds_alternative<PutRequest>(inner->message) || std::holds_alternative<InlineObject>(inner->message);
    deliver(m.from, inner->message, has_bytes ? payload_bytes_ : 0);
  } else if (m.from == from && membership_.is_alive(m.to)) {
    if (!out_.pass_on(m.to, m)) out_.send(from, Unreached{0, m.to, membership_.paths().way_to(m.to.id)});
  }
}

// --- membership ----------------------------------------------------------------------------------------------------------

void Agent::Impl::on(NodeRef from, const Ping& m) {
  Membership::Output out;
  membership_.on_ping(out_.now(), from, m, out);
  apply(out);
}
void Agent::Impl::on(NodeRef from, const Ack& m) {
  Membership::Output out;
  membership_.on_ack(out_.now(), from, m, out);
  apply(out);
}
void Agent::Impl::on(NodeRef from, const PingRequest& m) {
  Membership::Output out;
  membership_.on_ping_request(out_.now(), from, m, out);
  apply(out);
}
void Agent::Impl::on(NodeRef from, const Unreached& m) {
  Membership::Output out;
  membership_.on_unreached(out_.now(), from, m, out);
  apply(out);
}
void Agent::Impl::on(NodeRef from, const News& m) {
  Membership::Output out;
  membership_.on_news(out_.now(), from, m.news, out);
  apply(out);
}
void Agent::Impl::on(NodeRef from, const Sync& m) {
  Membership::Output out;
  membership_.on_sync(out_.now(), from, m, out);
  apply(out);
}

void Agent::Impl::on(const event::PeerLost& e) {
  out_.forget(e.peer);
  announcer_.stop_comparing(e.peer);
  // On a path that is known to be blocked there was only a ping.
  const bool expected = membership_.paths().is_blocked(e.peer.id) && e.why != Loss::kClosed;
  Membership::Output out;
  membership_.on_peer_lost(out_.now(), e.peer, e.why, out);
  apply(out);
  if (membership_.is_alive(e.peer) && !expected) resync_at(e.peer.id, out_.now() + limits_.retry_backoff);
}

void Agent::Impl::apply(Membership::Output& out) {
  for (const Membership::Change& change : out.changes) {
    const bool alive = change.life == Life::kAlive;
    out_.emit(effect::Log{"node " + change.node.to_string() + " at " + change.address.to_string() +
                              (alive         ? " has joined"
                               : change.left ? " has left"
                                             : " is dead, or has left"),
                          effect::Log::Kind::kFact});
    if (change.life != Life::kDead) continue;
    out_.emit(effect::Disconnect{change.node.id});
    out_.forget(change.node);
    out_.drop_questions(change.node);
    announcer_.stop_comparing(change.node);
  }
  if (out.refuted) {
    COVERAGE_MARK(came_back_from_the_dead);
    out_.emit(effect::Log{"this node was declared dead by others and rejoins as " + self().to_string()});
    out_.forget_all();
    announcer_.stop_comparing();
    directory_.reset(self());
    coordinator_.forget_all();
    slots_.drop_all();
    deputies_.forget_all();
  }
  if (out.refuted || !out.changes.empty()) update_view(out.changes, out.refuted);
  for (const NodeId peer : out.rerouted) resync_at(peer, out_.now() + limits_.retry_backoff);
  for (Membership::Outgoing& send : out.sends)
    out_.emit(effect::Send{send.to, std::move(send.address), std::move(send.message), effect::Payload::kNone, {}});
  for (auto& [address, message] : out.dials) out_.emit(effect::SendToAddress{std::move(address), std::move(message)});
}

// The set of live nodes changed: some ids have a new home. With `all`, every home has to be told everything again.
void Agent::Impl::update_view(const std::vector<Membership::Change>& changes, bool all) {
  const std::vector<NodeRef> alive_before = records_.alive();
  records_.set_alive(membership_.alive());
  Directory::Output out;
  directory_.set_view(out_.now(), records_.alive(), out);
  flush(out);

  std::vector<NodeId> joined;
  std::vector<NodeId> died;
  for (const Membership::Change& change : changes)
    (change.life == Life::kAlive ? joined : died).push_back(change.node.id);
  note_absences(changes);
  tombstones_.set_view(records_.alive(), joined, died);
  known_.set_view(records_.alive(), joined, died);
  for (const Membership::Change& change : changes)
    if (change.life == Life::kDead) {
      drop_slots_of(change.node);
      lose_started(change.node);
    }

  std::set<ObjectId> moved;
  for (const auto& [node, ids] : records_.by_home()) {
    const bool home_changed =
        all || std::ranges::any_of(changes, [&, home = node](const auto& c) { return c.node.id == home; });
    for (const ObjectId& id : ids)
      if (home_changed || moves_home(id, node, joined)) moved.insert(id);
  }
  std::map<NodeRef, std::set<ObjectId>> by_new_home;
  for (const ObjectId& id : moved) {
    Record& r = records_.at(id);
    const NodeRef before = r.home;
    const bool alive = std::ranges::binary_search(records_.alive(), before);
    if (fetches_.take_told_reducing(id) && !alive) announcer_.remember(id, kNeverMade, coordinator_gone(before));
    records_.move(r, records_.home(id));
    if (r.home != before || all) by_new_home[r.home].insert(id);
  }
  for (const auto& [new_home, ids] : by_new_home) {
    announcer_.tell(new_home, ids);
    for (const ObjectId& id : ids) ask_again(id);
  }
  for (const Membership::Change& change : changes)
    if (change.life == Life::kAlive && membership_.is_alive(change.node)) announcer_.tell_tombstones(change.node);
  tell_departures(changes);
  choose_deputies(all ? std::vector{self()} : alive_before);
  if (!joined.empty()) give_up_deputyships();
  for (const std::uint64_t key : errands_.all())
    if (const Errands::Errand& errand = *errands_.find(key); errand.home != records_.home(errand.id)) send_errand(key);
  for (const Membership::Change& change : changes)
    if (change.life == Life::kDead) coordinator_.on_death(change.node);
  coordinator_.give_up_moved();
}

// What is waited for from its home, again: the home is new, or messages were lost.
void Agent::Impl::ask_again(const ObjectId& id) {
  if (evictions_.erase(id) > 0)
    if (Copy* copy = records_.copy_of(id)) copy->evict_asked = false;
  if (puts_.contains(id)) puts_.claim(id);
  if (fetches_.is_asking(id)) fetches_.ask(want_of(records_.at(id)));
  if (notices_.contains(id)) notices_.ask(id);
}

void Agent::Impl::on(NodeRef from, const NotHome& m) {
  COVERAGE_MARK(asked_the_wrong_home);
  const Record* r = records_.find(m.id);
  if (r == nullptr || r->home != from) return;
  // One of us lags behind; the Sync that follows, or the next gossip, settles it. Then we ask again.
  if (r->copy != 0) resync_at(from.id, out_.now() + limits_.settle_after());
  if (fetches_.is_asking(m.id)) fetches_.ask_later(m.id, limits_.settle_after());
  if (notices_.contains(m.id)) notices_.ask_at(m.id, out_.now() + limits_.settle_after());
  if (puts_.contains(m.id)) puts_.claim_at(m.id, out_.now() + limits_.settle_after());
}

// --- saying everything again -----------------------------------------------------------------------------------------------

void Agent::Impl::resync_at(NodeId peer, Time when) {
  auto& timer = resyncs_[peer];
  if (!timer || when < timer->first) timers_.set(timer, when, timer::Resync{peer});
}

void Agent::Impl::on(const timer::Resync& t) {
  resyncs_.erase(t.peer);
  const NodeRef peer = membership_.latest(t.peer);
  if (!membership_.is_alive(peer)) return;
  resync(peer);
  out_.send(peer, Resync{});
}

// Messages between us and `peer` may have been lost with a connection.
void Agent::Impl::resync(NodeRef peer) {
  if (out_.is_detour(peer.id)) announcer_.tell_all(peer);
  else announcer_.compare(peer);
  announcer_.tell_tombstones(peer);
  ask_everything_again(peer);
  for (const std::uint64_t key : errands_.sent_to(peer)) send_errand(key);
  slots_.report_to(peer);
  coordinator_.ask_again(peer);
  tell_deputy_anew(peer);
}

void Agent::Impl::ask_everything_again(NodeRef home) {
  std::set<ObjectId> open = evictions_;
  puts_.add_ids(open);
  fetches_.add_ids(open);
  notices_.add_ids(open);
  for (const ObjectId& id : open) {
    const Record* record = records_.find(id);
    if (record == nullptr) evictions_.erase(id);
    else if (record->home == home) ask_again(id);
  }
}

void Agent::Impl::on(NodeRef from, const Resync&) { resync(from); }

// One home after the other, so that each hears of us once in announce_every. We need not tell ourselves.
void Agent::Impl::on(const timer::Refresh&) {
  const std::vector<NodeRef>& alive = records_.alive();
  timers_.set(refresh_timer_, out_.now() + limits_.announce_every / static_cast<std::int64_t>(alive.size()),
              timer::Refresh{});
  known_.expire(out_.now());
  expire_absences();
  const auto next = std::ranges::upper_bound(alive, refreshed_last_, {}, &NodeRef::id);
  const NodeRef home = next == alive.end() ? alive.front() : *next;
  refreshed_last_ = home.id;
  if (home != self() && !announcer_.goes_on(home)) resync(home);
}

void Agent::Impl::on(NodeRef from, const RecoverQuery& m) {
  const std::uint64_t view = view_digest(records_.alive());
  if (m.view == view) return announcer_.answer(from, m);
  COVERAGE_MARK(recovery_views_differ);
  out_.send(from, Sync{true, membership_.all()});
  out_.send(from, RecoverReply{m.round, view, 0});
}

}  // namespace hoplite
