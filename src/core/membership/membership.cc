#include "core/membership/membership.h"

#include <algorithm>
#include <bit>

namespace hoplite {
namespace {

// A peer stays watched this long after the last use: longer than the refresh of a wait, so a waiting node never lets go.
constexpr Duration kWatchFor = Duration::s(5);
// Probes made for others are remembered in this number; older ones are forgotten, and the asker falls back on the rest.
constexpr std::size_t kMaxErrands = 1024;

// The order in which lives supersede each other.
std::pair<std::uint32_t, Life> rank(NodeRef ref, Life life) { return {ref.incarnation, life}; }

}  // namespace

Membership::Membership(MembershipOptions options, Time now)
    : self_(options.self),
      address_(std::move(options.address)),
      seeds_(std::move(options.seeds)),
      limits_(options.limits),
      random_(options.seed),
      next_ping_(now),
      next_gossip_(now + limits_.gossip_every),
      next_sync_(now + limits_.sync_every),
      next_knock_(now) {
  for (const MemberNews& news : options.initial_members) {
    if (news.ref.id == self_.id) continue;
    members_[news.ref.id] = Member{.ref = news.ref,
                                   .address = news.address,
                                   .life = news.life,
                                   .heard = now,
                                   .watched_until = now,
                                   .probe_sent = now,
                                   .probe_due = now};
    remember_alive(news.ref.id, news.life == Life::kAlive);
  }
}

Membership::Member* Membership::find(NodeId node) {
  const auto it = members_.find(node);
  return it == members_.end() ? nullptr : &it->second;
}

void Membership::remember_alive(NodeId node, bool alive) {
  const auto at = std::lower_bound(alive_.begin(), alive_.end(), node);
  const bool present = at != alive_.end() && *at == node;
  if (alive && !present) alive_.insert(at, node);
  if (!alive && present) alive_.erase(at);
}

// --- what is known -------------------------------------------------------------------------------------------------------

bool Membership::is_alive(NodeRef node) const {
  if (node.id == self_.id) return node == self_;
  const auto it = members_.find(node.id);
  return it != members_.end() && it->second.ref == node && it->second.life == Life::kAlive;
}

const Address* Membership::address_of(NodeId node) const {
  if (node == self_.id) return &address_;
  const auto it = members_.find(node);
  return it == members_.end() ? nullptr : &it->second.address;
}

NodeRef Membership::latest(NodeId node) const {
  if (node == self_.id) return self_;
  const auto it = members_.find(node);
  return it == members_.end() ? NodeRef{node, 0} : it->second.ref;
}

std::vector<NodeRef> Membership::alive() const {
  std::vector<NodeRef> refs{self_};
  for (NodeId id : alive_) refs.push_back(members_.at(id).ref);
  std::sort(refs.begin(), refs.end());
  return refs;
}

std::vector<MemberNews> Membership::all() const {
  std::vector<MemberNews> news{self_news()};
  for (const auto& [id, m] : members_) news.push_back({m.ref, m.address, m.life});
  return news;
}

std::uint64_t Membership::rtt_us(NodeId node) const {
  const auto it = members_.find(node);
  return it == members_.end() ? 0 : it->second.rtt_us;
}

NodeRef Membership::random_member(NodeId not_this) {
  for (int tries = 0; tries < 4 && !alive_.empty(); ++tries) {
    const NodeId id = alive_[random_.below(alive_.size())];
    if (id != not_this) return members_.at(id).ref;
  }
  return {};
}

// --- sending -------------------------------------------------------------------------------------------------------------

void Membership::send(NodeId to, Message message, Output& out) {
  const Member& member = members_.at(to);
  out.sends.push_back({member.ref, member.address, std::move(message)});
}

// Ourselves first: the other side may not have heard of us, and could not answer.
std::vector<MemberNews> Membership::hot_news() {
  std::vector<MemberNews> news{self_news()};
  for (auto it = hot_.begin(); it != hot_.end() && news.size() < limits_.max_gossip_updates;) {
    if (const Member* m = find(it->first)) news.push_back({m->ref, m->address, m->life});
    it = --it->second == 0 ? hot_.erase(it) : std::next(it);
  }
  return news;
}

void Membership::spread(const std::vector<MemberNews>& fresh, NodeId heard_from, Output& out) {
  if (fresh.empty()) return;
  const auto repeats = limits_.gossip_repeats * static_cast<std::uint32_t>(std::bit_width(alive_.size() + 1));
  for (const MemberNews& news : fresh) hot_[news.ref.id] = repeats;
  std::set<NodeId> told;
  for (std::uint32_t i = 0; i < limits_.gossip_fanout && !alive_.empty(); ++i) {
    const NodeId to = alive_[random_.below(alive_.size())];
    if (to != heard_from && told.insert(to).second) send(to, News{fresh}, out);
  }
}

// --- learning ------------------------------------------------------------------------------------------------------------

// Takes one piece of news; true if it was new.
bool Membership::merge(Time now, const MemberNews& news, Output& out) {
  if (news.ref.id.is_nil()) return false;
  if (news.ref.id == self_.id) {
    if (news.life == Life::kDead && news.ref.incarnation >= self_.incarnation && !leaving_)
      refute(news.ref.incarnation, out);
    return false;
  }
  Member* known = find(news.ref.id);
  if (known == nullptr) {
    // Whom we never knew need not be mourned; so what all have forgotten stays forgotten.
    if (news.life == Life::kDead) return false;
    if (members_.size() >= limits_.max_members && !forget_one_dead()) return false;
    known = &members_[news.ref.id];
    *known = Member{.ref = news.ref,
                    .address = news.address,
                    .life = news.life,
                    .heard = now,
                    .watched_until = now,
                    .probe_sent = now,
                    .probe_due = now};
    remember_alive(news.ref.id, news.life == Life::kAlive);
    if (news.life == Life::kAlive) out.changes.push_back({news.ref, news.address, Life::kAlive});
    return true;
  }
  if (rank(news.ref, news.life) <= rank(known->ref, known->life)) return false;
  // A life we held for alive ends here, also when all we hear is that the next one has begun.
  const bool next_life = news.ref.incarnation != known->ref.incarnation;
  if (known->life == Life::kAlive) out.changes.push_back({known->ref, known->address, Life::kDead});
  known->ref = news.ref;
  known->address = news.address;
  known->life = news.life;
  known->heard = now;
  known->probe = Probe::kNone;
  probing_.erase(news.ref.id);
  remember_alive(news.ref.id, news.life == Life::kAlive);
  if (next_life && news.life == Life::kAlive) out.changes.push_back({news.ref, news.address, Life::kAlive});
  return true;
}

void Membership::refute(std::uint32_t incarnation, Output& out) {
  self_.incarnation = incarnation + 1;
  out.refuted = true;
  probing_.clear();
  errands_.clear();
  for (auto& [id, member] : members_) member.probe = Probe::kNone;
  spread({self_news()}, NodeId{}, out);
}

void Membership::on_news(Time now, NodeRef from, const std::vector<MemberNews>& news, Output& out) {
  std::vector<MemberNews> fresh;
  for (const MemberNews& n : news)
    if (merge(now, n, out)) fresh.push_back(n);
  spread(fresh, from.id, out);
}

void Membership::on_sync(Time now, NodeRef from, const Sync& sync, Output& out) {
  on_news(now, from, sync.members, out);
  if (!sync.answer_wanted) return;
  const Address* address = address_of(from.id);
  if (address != nullptr) out.sends.push_back({latest(from.id), *address, Sync{false, all()}});
}

void Membership::on_heard(Time now, NodeRef from, Output& out) {
  Member* member = find(from.id);
  if (member == nullptr || from.incarnation > member->ref.incarnation) return;  // its Sync or News will introduce it
  if (member->ref == from && member->life == Life::kAlive) {
    member->heard = now;
    if (member->probe != Probe::kNone) {
      member->probe = Probe::kNone;
      probing_.erase(from.id);
    }
    return;
  }
  if (member->life == Life::kDead || from.incarnation < member->ref.incarnation)
    out.sends.push_back({from, member->address, News{{{member->ref, member->address, member->life}}}});
}

// --- probing -------------------------------------------------------------------------------------------------------------

void Membership::on_ping(Time now, NodeRef from, const Ping& ping, Output& out) {
  on_news(now, from, ping.news, out);
  const Address* address = address_of(from.id);
  if (address != nullptr) out.sends.push_back({from, *address, Ack{ping.seq, hot_news()}});
}

void Membership::on_ack(Time now, NodeRef from, const Ack& ack, Output& out) {
  on_news(now, from, ack.news, out);
  if (const auto errand = errands_.find(ack.seq); errand != errands_.end()) {
    if (is_alive(errand->second.asker)) send(errand->second.asker.id, Ack{errand->second.asker_seq, {}}, out);
    errands_.erase(errand);
    return;
  }
  for (NodeId id : probing_) {
    Member& member = members_.at(id);
    if (member.probe_seq != ack.seq) continue;
    member.probe = Probe::kNone;
    member.heard = now;
    if (from.id == id) member.rtt_us = static_cast<std::uint64_t>((now - member.probe_sent).ns / 1000);
    probing_.erase(id);
    return;
  }
  // on_heard has ended the probe already when the target itself answers; the round trip is still worth noting.
  if (Member* member = find(from.id); member != nullptr && member->probe_seq == ack.seq)
    member->rtt_us = static_cast<std::uint64_t>((now - member->probe_sent).ns / 1000);
}

void Membership::on_ping_request(Time now, NodeRef from, const PingRequest& request, Output& out) {
  on_news(now, from, request.news, out);
  if (!is_alive(request.target) || request.target == self_) return;
  if (errands_.size() >= kMaxErrands) errands_.erase(errands_.begin());
  const std::uint64_t seq = next_seq_++;
  errands_[seq] = {from, request.seq};
  send(request.target.id, Ping{seq, hot_news()}, out);
}

void Membership::start_probe(Time now, Member& member, Output& out) {
  if (member.probe != Probe::kNone) return;
  member.probe = Probe::kDirect;
  member.probe_seq = next_seq_++;
  member.probe_sent = now;
  member.probe_due = now + limits_.ping_timeout;
  probing_.insert(member.ref.id);
  send(member.ref.id, Ping{member.probe_seq, hot_news()}, out);
}

void Membership::ask_others(Time now, Member& member, Output& out) {
  member.probe = Probe::kIndirect;
  if (member.probe_seq == 0) member.probe_seq = next_seq_++;
  member.probe_due = now + limits_.indirect_timeout;
  probing_.insert(member.ref.id);
  std::set<NodeId> asked;
  for (std::uint32_t i = 0; i < limits_.indirect_probes; ++i) {
    const NodeRef helper = random_member(member.ref.id);
    if (!helper.id.is_nil() && asked.insert(helper.id).second)
      send(helper.id, PingRequest{member.probe_seq, member.ref, {self_news()}}, out);
  }
}

void Membership::declare_dead(Time now, Member& member, Output& out) {
  const MemberNews verdict{member.ref, member.address, Life::kDead};
  if (merge(now, verdict, out)) spread({verdict}, NodeId{}, out);
}

void Membership::on_peer_lost(Time now, NodeRef peer, Loss why, Output& out) {
  Member* member = find(peer.id);
  if (member == nullptr || member->ref != peer || member->life == Life::kDead) return;
  switch (why) {
    case Loss::kRefused:
    case Loss::kReplaced: declare_dead(now, *member, out); break;
    case Loss::kClosed: start_probe(now, *member, out); break;
    case Loss::kTimedOut:
    case Loss::kRejected:
      // Others may still reach it. A probe that is under way keeps its deadline.
      if (member->probe != Probe::kIndirect) {
        member->probe_seq = next_seq_++;
        ask_others(now, *member, out);
      }
      break;
  }
}

void Membership::touch(Time now, NodeId peer) {
  Member* member = find(peer);
  if (member == nullptr || member->life == Life::kDead) return;
  if (member->watched_until < now) member->heard = std::max(member->heard, now);  // a fresh watch starts with patience
  member->watched_until = now + kWatchFor;
  watched_.insert(peer);
}

void Membership::ping_due_members(Time now, Output& out) {
  for (auto it = watched_.begin(); it != watched_.end();) {
    Member* member = find(*it);
    if (member == nullptr || member->life == Life::kDead || member->watched_until < now) {
      it = watched_.erase(it);
      continue;
    }
    if (member->heard + limits_.ping_every <= now) start_probe(now, *member, out);
    ++it;
  }
}

// Seeds nobody alive listens at, and one dead member's address at a time.
void Membership::knock_on_closed_doors(Output& out) {
  std::set<Address> open{address_};
  for (NodeId id : alive_) open.insert(members_.at(id).address);
  std::set<Address> closed;
  for (const auto& [id, m] : members_)
    if (m.life == Life::kDead && !open.contains(m.address)) closed.insert(m.address);
  for (const Address& seed : seeds_)
    if (!open.contains(seed) && !closed.contains(seed)) out.dials.emplace_back(seed, Sync{true, all()});
  if (closed.empty()) return;
  auto door = closed.begin();
  std::advance(door, next_door_++ % closed.size());
  out.dials.emplace_back(*door, Sync{true, all()});
}

// The dead whose address somebody else has long taken over: nobody will ask for them any more.
void Membership::forget_superseded(Time now) {
  std::set<Address> taken;
  for (NodeId id : alive_) taken.insert(members_.at(id).address);
  std::erase_if(members_, [&](const auto& item) {
    const Member& member = item.second;
    return member.life == Life::kDead && member.heard + limits_.tombstone_life <= now && taken.contains(member.address);
  });
}

// Makes room for somebody alive. False: all are.
bool Membership::forget_one_dead() {
  const auto oldest = std::ranges::min_element(
      members_, {}, [](const auto& item) { return std::pair(item.second.life != Life::kDead, item.second.heard); });
  if (oldest == members_.end() || oldest->second.life != Life::kDead) return false;
  members_.erase(oldest);
  return true;
}

void Membership::tick(Time now, Output& out) {
  const std::set<NodeId> probing = probing_;
  for (NodeId id : probing) {
    Member& member = members_.at(id);
    if (member.probe == Probe::kNone || member.probe_due > now) continue;
    if (member.probe == Probe::kDirect) {
      ask_others(now, member, out);
    } else {
      declare_dead(now, member, out);
    }
  }
  if (next_ping_ <= now) {
    next_ping_ = now + limits_.ping_every / 2;
    ping_due_members(now, out);
  }
  if (next_gossip_ <= now) {
    next_gossip_ = now + limits_.gossip_every;
    if (const NodeRef to = random_member(NodeId{}); !to.id.is_nil()) start_probe(now, members_.at(to.id), out);
  }
  if (next_sync_ <= now) {
    next_sync_ = now + limits_.sync_every;
    forget_superseded(now);
    if (const NodeRef to = random_member(NodeId{}); !to.id.is_nil()) send(to.id, Sync{true, all()}, out);
  }
  if (next_knock_ <= now) {
    next_knock_ = now + limits_.rejoin_every;
    knock_on_closed_doors(out);
  }
}

void Membership::leave(Output& out) {
  leaving_ = true;
  const MemberNews farewell{self_, address_, Life::kDead};
  for (NodeId id : alive_) send(id, News{{farewell}}, out);
}

Time Membership::next_wakeup() const {
  Time next = std::min(next_gossip_, std::min(next_sync_, next_knock_));
  if (!watched_.empty()) next = std::min(next, next_ping_);
  for (NodeId id : probing_) next = std::min(next, members_.at(id).probe_due);
  return next;
}

}  // namespace hoplite
