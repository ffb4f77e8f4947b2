// Membership, homes, lost connections.
#include <algorithm>

#include "base/coverage.h"
#include "core/agent/impl.h"
#include "core/directory/homes.h"
#include "core/directory/view.h"

namespace hoplite {

NodeRef Agent::Impl::home(const ObjectId& id) const { return home_of(id, alive_); }

bool Agent::Impl::is_detoured(NodeId node) const {
  const auto detour = unreachable_.find(node);
  return detour != unreachable_.end() && detour->second > now_;
}

// --- sending -------------------------------------------------------------------------------------------------------------

void Agent::Impl::send(NodeRef to, Message message, effect::Payload payload, Extent extent) {
  if (to.id == self().id) {
    local_.push_back(std::move(message));
    return;
  }
  const Address* address = membership_.address_of(to.id);
  if (address == nullptr) return;
  membership_.touch(now_, to.id);
  if (is_detoured(to.id) && payload == effect::Payload::kNone) {
    const NodeRef helper = membership_.random_member(to.id);
    if (!helper.id.is_nil() && !unreachable_.contains(helper.id)) {
      COVERAGE_MARK(message_relayed);
      Relay relay{self(), to, {}};
      encode_message(message, relay.message);
      send(helper, std::move(relay));
      return;
    }
  }
  if (introduced_.insert(to).second)
    emit(effect::Send{to, *address, News{{{self(), options_.address, Life::kAlive}}}, effect::Payload::kNone, {}});
  emit(effect::Send{to, *address, std::move(message), payload, extent});
}

void Agent::Impl::on(NodeRef from, const Relay& m) {
  if (m.to == self()) {
    const auto inner = decode_message(as_bytes(m.message));
    // Only messages without bytes are relayed, and never a relay.
    if (!inner || std::holds_alternative<Relay>(inner->message)) return;
    deliver(m.from, inner->message, 0);
  } else if (m.from == from && membership_.is_alive(m.to)) {
    send(m.to, m);
  }
}

// --- membership ----------------------------------------------------------------------------------------------------------

void Agent::Impl::on(NodeRef from, const Ping& m) {
  Membership::Output out;
  membership_.on_ping(now_, from, m, out);
  apply(out);
}
void Agent::Impl::on(NodeRef from, const Ack& m) {
  Membership::Output out;
  membership_.on_ack(now_, from, m, out);
  apply(out);
}
void Agent::Impl::on(NodeRef from, const PingRequest& m) {
  Membership::Output out;
  membership_.on_ping_request(now_, from, m, out);
  apply(out);
}
void Agent::Impl::on(NodeRef from, const News& m) {
  Membership::Output out;
  membership_.on_news(now_, from, m.news, out);
  apply(out);
}
void Agent::Impl::on(NodeRef from, const Sync& m) {
  Membership::Output out;
  membership_.on_sync(now_, from, m, out);
  apply(out);
}

void Agent::Impl::on(const event::PeerLost& e) {
  introduced_.erase(e.peer);
  Membership::Output out;
  membership_.on_peer_lost(now_, e.peer, e.why, out);
  apply(out);
  if (!membership_.is_alive(e.peer)) return;
  if (e.why == Loss::kTimedOut) unreachable_[e.peer.id] = now_ + limits_.relay_for;
  resync_at(e.peer.id, now_ + limits_.retry_backoff);
}

void Agent::Impl::apply(Membership::Output& out) {
  for (const Membership::Change& change : out.changes) {
    if (change.life != Life::kDead) continue;
    emit(effect::Disconnect{change.node.id});
    introduced_.erase(change.node);
    unreachable_.erase(change.node.id);
  }
  if (out.refuted) {
    COVERAGE_MARK(came_back_from_the_dead);
    emit(effect::Log{"this node was given up by others and comes back as " + self().to_string()});
    introduced_.clear();
    directory_.reset(self());
    coordinator_.forget_all();
    slots_.drop_all();
  }
  if (out.refuted || !out.changes.empty()) update_view(out.changes, out.refuted);
  for (Membership::Outgoing& send : out.sends)
    emit(effect::Send{send.to, std::move(send.address), std::move(send.message), effect::Payload::kNone, {}});
  for (auto& [address, message] : out.dials) emit(effect::SendToAddress{std::move(address), std::move(message)});
}

// The set of live nodes changed: some ids have a new home. With `all`, every home has to be told everything again.
void Agent::Impl::update_view(const std::vector<Membership::Change>& changes, bool all) {
  alive_ = membership_.alive();
  Directory::Output out;
  directory_.set_view(now_, alive_, out);
  flush(out);

  std::vector<NodeId> joined;
  std::vector<NodeId> died;
  for (const Membership::Change& change : changes)
    (change.life == Life::kAlive ? joined : died).push_back(change.node.id);
  tombstones_.set_view(alive_, joined, died);
  known_.set_view(alive_, joined, died);
  for (const Membership::Change& change : changes)
    if (change.life == Life::kDead) {
      drop_slots_of(change.node);
      lose_started(change.node);
    }

  std::set<ObjectId> moved;
  for (const auto& [node, ids] : by_home_) {
    const bool home_changed =
        all || std::ranges::any_of(changes, [&, home = node](const auto& c) { return c.node.id == home; });
    for (const ObjectId& id : ids)
      if (home_changed || moves_home(id, node, joined)) moved.insert(id);
  }
  std::map<NodeRef, std::set<ObjectId>> by_new_home;
  for (const ObjectId& id : moved) {
    Record& r = records_.at(id);
    const NodeRef before = r.home;
    const bool alive = std::ranges::binary_search(alive_, before);
    if (r.told_reducing && !alive) remember_lost(id, 0, coordinator_gone(before));
    r.told_reducing = false;
    move_home(r, home(id));
    if (r.home != before || all) by_new_home[r.home].insert(id);
  }
  for (const auto& [new_home, ids] : by_new_home) {
    announce(ids, new_home);
    for (const ObjectId& id : ids)
      if (Record* r = find(id)) ask_again(*r);
  }
  for (const Membership::Change& change : changes)
    if (change.life == Life::kAlive && membership_.is_alive(change.node)) announce_tombstones(change.node);
  for (const std::uint64_t key : errands_.all())
    if (const Errands::Errand& errand = *errands_.find(key); errand.home != home(errand.id)) send_errand(key);
  for (const Membership::Change& change : changes)
    if (change.life == Life::kDead) coordinator_.on_death(change.node);
  coordinator_.give_up_moved();
}

void Agent::Impl::move_home(Record& record, NodeRef home) {
  if (record.home == home) return;
  const auto ids = by_home_.find(record.home.id);
  ids->second.erase(record.id);
  if (ids->second.empty()) by_home_.erase(ids);
  record.home = home;
  by_home_[home.id].insert(record.id);
}

// What this record waits for from its home, again: the home is new, or messages were lost.
void Agent::Impl::ask_again(Record& record) {
  if (Copy* copy = current_copy(record)) copy->evict_asked = false;
  if (record.put && record.put->request != 0) send_claim(record);
  if (record.fetch == Fetch::kAsking) send_want(record);
  if (record.wants_notice()) send_notify(record);
}

void Agent::Impl::on(NodeRef from, const NotHome& m) {
  COVERAGE_MARK(asked_the_wrong_home);
  Record* r = find(m.id);
  if (r == nullptr || r->home != from) return;
  // One of us lags behind; the Sync that follows, or the next gossip, settles it. Then we ask again.
  const Time soon = now_ + limits_.settle_after();
  if (r->copy != 0) resync_at(from.id, soon);
  if (r->fetch == Fetch::kAsking) timers_.set(r->want_timer, soon, timer::Want{m.id});
  if (r->wants_notice()) timers_.set(r->notify_timer, soon, timer::Notify{m.id});
  if (r->put) timers_.set(r->put->retry, soon, timer::Claim{m.id});
}

}  // namespace hoplite
