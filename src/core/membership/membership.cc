#include "core/membership/membership.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"

namespace hoplite {
namespace {

// The order in which lives supersede each other.
std::pair<std::uint32_t, Life> rank(const MemberNews& news) { return {news.ref.incarnation, news.life}; }

constexpr auto id_of = [](const auto& member) { return member.latest.ref.id; };

}  // namespace

Membership::Membership(MembershipOptions options, Time now)
    : self_(options.self),
      address_(std::move(options.address)),
      seeds_(std::move(options.seeds)),
      limits_(options.limits),
      random_(options.seed),
      paths_(limits_.relay_for),
      next_ping_(now),
      next_gossip_(now + limits_.gossip_every),
      next_sync_(now + limits_.sync_every),
      next_knock_(now) {
  members_.reserve(options.initial_members.size());
  alive_.reserve(options.initial_members.size());
  for (const MemberNews& news : options.initial_members) {
    if (news.ref.id == self_.id) continue;
    members_.push_back({news, now});
    if (news.life == Life::kAlive) alive_.push_back(news.ref.id);
  }
  std::ranges::sort(members_, {}, id_of);
  std::ranges::sort(alive_);
}

const Membership::Member* Membership::find(NodeId node) const {
  const auto at = std::ranges::lower_bound(members_, node, {}, id_of);
  return at == members_.end() || id_of(*at) != node ? nullptr : &*at;
}

Membership::Member* Membership::find(NodeId node) { return const_cast<Member*>(std::as_const(*this).find(node)); }

void Membership::remember_alive(NodeId node, bool alive) {
  const auto at = std::lower_bound(alive_.begin(), alive_.end(), node);
  const bool present = at != alive_.end() && *at == node;
  if (alive && !present) alive_.insert(at, node);
  if (!alive && present) alive_.erase(at);
}

// --- what is known -------------------------------------------------------------------------------------------------------

bool Membership::is_alive(NodeRef node) const {
  if (node.id == self_.id) return node == self_;
  const Member* member = find(node.id);
  return member != nullptr && member->latest.ref == node && member->latest.life == Life::kAlive;
}

const Address* Membership::address_of(NodeId node) const {
  if (node == self_.id) return &address_;
  const Member* member = find(node);
  return member == nullptr ? nullptr : &member->latest.address;
}

NodeRef Membership::latest(NodeId node) const {
  if (node == self_.id) return self_;
  const Member* member = find(node);
  return member == nullptr ? NodeRef{node, 0} : member->latest.ref;
}

std::vector<NodeRef> Membership::alive() const {
  std::vector<NodeRef> refs{self_};
  for (NodeId id : alive_) refs.push_back(find(id)->latest.ref);
  std::sort(refs.begin(), refs.end());
  return refs;
}

std::vector<MemberNews> Membership::all() const {
  std::vector<MemberNews> news{self_news()};
  for (const Member& member : members_) news.push_back(member.latest);
  return news;
}

std::uint64_t Membership::rtt_us(NodeId node) const {
  const auto it = rtt_us_.find(node);
  return it == rtt_us_.end() ? 0 : it->second;
}

void Membership::note_rtt(NodeId node, Duration rtt) {
  rtt_us_[node] = static_cast<std::uint64_t>(rtt.ns / 1000);
  // Every plan asks for the median, so it is kept; with each of thousands of members it changes little.
  if (++rtts_since_median_ * 8 < rtt_us_.size()) return;
  rtts_since_median_ = 0;
  std::vector<std::uint64_t> all;
  for (const auto& [member, us] : rtt_us_) all.push_back(us);
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::ranges::nth_element(all, middle);
  typical_rtt_us_ = *middle;
}

NodeRef Membership::random_member(NodeId not_this) {
  const auto excluded = std::ranges::equal_range(alive_, not_this);
  const std::size_t others = alive_.size() - excluded.size();
  if (others == 0) return {};
  std::size_t pick = random_.below(others);
  if (!excluded.empty() && pick >= static_cast<std::size_t>(excluded.begin() - alive_.begin())) ++pick;
  return find(alive_[pick])->latest.ref;
}

NodeRef Membership::helper_for(NodeId peer) {
  const NodeRef known = latest(paths_.way_to(peer));
  if (is_alive(known) && !paths_.is_blocked(known.id)) return known;
  for (int tries = 0; tries < 4; ++tries)
    if (const NodeRef somebody = random_member(peer); !paths_.is_blocked(somebody.id)) return somebody;
  return {};
}

// --- sending -------------------------------------------------------------------------------------------------------------

void Membership::send(NodeId to, Message message, Output& out) {
  const MemberNews& member = find(to)->latest;
  out.sends.push_back({member.ref, member.address, std::move(message)});
}

// Ourselves first: the other side may not have heard of us, and could not answer.
std::vector<MemberNews> Membership::hot_news() {
  std::vector<MemberNews> news{self_news()};
  for (auto it = hot_.begin(); it != hot_.end() && news.size() < limits_.max_gossip_updates;) {
    if (const Member* member = find(it->first)) news.push_back(member->latest);
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
  if (news.ref.id.is_nil() || news.ref.incarnation > limits_.max_incarnation) return false;
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
    members_.insert(std::ranges::lower_bound(members_, news.ref.id, {}, id_of), {news, now});
    remember_alive(news.ref.id, true);
    out.changes.push_back({news.ref, news.address, Life::kAlive});
    return true;
  }
  if (rank(news) <= rank(known->latest)) return false;
  // A life we held for alive ends here, also when all we hear is that the next one has begun.
  const MemberNews before = std::exchange(known->latest, news);
  // Where it is to be told of its own death: only its own word moves that.
  if (news.life == Life::kDead) known->latest.address = before.address;
  if (before.life == Life::kAlive) out.changes.push_back({before.ref, before.address, Life::kDead});
  known->heard = now;
  probes_.erase(news.ref.id);
  rtt_us_.erase(news.ref.id);
  paths_.forget(news.ref.id);
  remember_alive(news.ref.id, news.life == Life::kAlive);
  if (news.ref != before.ref && news.life == Life::kAlive)
    out.changes.push_back({news.ref, news.address, Life::kAlive});
  return true;
}

void Membership::refute(std::uint32_t incarnation, Output& out) {
  self_.incarnation = incarnation + 1;
  out.refuted = true;
  probes_.clear();
  errands_.clear();
  paths_.clear();
  spread({self_news()}, NodeId{}, out);
}

void Membership::on_news(Time now, NodeRef from, const std::vector<MemberNews>& news, Output& out) {
  std::vector<MemberNews> fresh;
  for (const MemberNews& n : news) {
    if (!merge(now, n, out)) continue;
    fresh.push_back(n);
    if (n.ref == from && n.life == Life::kDead && !out.changes.empty()) out.changes.back().left = true;
  }
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
  // Of a life that we have not heard of: its Sync or News will introduce it.
  if (member == nullptr || from.incarnation > member->latest.ref.incarnation) return;
  const MemberNews& latest = member->latest;
  if (latest.ref == from && latest.life == Life::kAlive) {
    member->heard = now;
    if (const auto probe = probes_.find(from.id); probe != probes_.end()) probe->second.answered = true;
    return;
  }
  out.sends.push_back({from, latest.address, News{{latest}}});
}

// --- now and then -------------------------------------------------------------------------------------------------------

// Seeds nobody alive listens at, and one dead member's address at a time.
void Membership::knock_on_closed_doors(Output& out) {
  const std::set<Address> open = open_addresses();
  std::set<Address> closed;
  for (const Member& member : members_)
    if (!open.contains(member.latest.address)) closed.insert(member.latest.address);
  for (const Address& seed : seeds_)
    if (!open.contains(seed) && !closed.contains(seed)) out.dials.emplace_back(seed, Sync{true, all()});
  if (closed.empty()) return;
  auto door = closed.begin();
  std::advance(door, next_door_++ % closed.size());
  out.dials.emplace_back(*door, Sync{true, all()});
}

std::set<Address> Membership::open_addresses() const {
  std::set<Address> open{address_};
  for (const Member& member : members_)
    if (member.latest.life == Life::kAlive) open.insert(member.latest.address);
  return open;
}

// The dead whose address somebody else has long taken over: nobody will ask for them any more.
void Membership::forget_superseded(Time now) {
  const std::set<Address> open = open_addresses();
  std::erase_if(members_, [&](const Member& member) {
    return member.latest.life == Life::kDead && member.heard + limits_.tombstone_life <= now &&
           open.contains(member.latest.address);
  });
}

// Makes room for somebody alive. False: all are.
bool Membership::forget_one_dead() {
  const auto oldest = std::ranges::min_element(
      members_, {}, [](const Member& member) { return std::pair(member.latest.life != Life::kDead, member.heard); });
  if (oldest == members_.end() || oldest->latest.life != Life::kDead) return false;
  members_.erase(oldest);
  return true;
}

void Membership::tick(Time now, Output& out) {
  std::erase_if(probes_, [](const auto& probe) { return probe.second.answered; });
  for (const auto& [id, probe] : std::map(probes_)) {
    if (probe.due > now || !probes_.contains(id)) continue;  // one verdict may bring others
    const Member& member = *find(id);
    if (probe.direct) ask_others(now, member.latest.ref, out);
    else declare_dead(now, member, out);
  }
  for (const NodeId peer : paths_.take_due(now)) start_probe(now, latest(peer), out);
  if (next_ping_ <= now) {
    next_ping_ = now + limits_.ping_every / 2;
    ping_due_members(now, out);
  }
  if (next_gossip_ <= now) {
    next_gossip_ = now + limits_.gossip_every;
    if (const NodeRef to = random_member(NodeId{}); !to.id.is_nil()) start_probe(now, to, out);
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
  for (const auto& [id, probe] : probes_)
    if (!probe.answered) next = std::min(next, probe.due);
  return std::min(next, paths_.next_due());
}

void Membership::check_invariants() const {
  CHECK(std::ranges::is_sorted(members_, {}, id_of) && std::ranges::is_sorted(alive_), members_.size());
  CHECK(members_.size() <= limits_.max_members, members_.size());
  CHECK(errands_.size() <= limits_.max_probes_for_others, errands_.size());
  CHECK(self_.incarnation <= limits_.max_incarnation, self_.incarnation);
  std::size_t alive = 0;
  for (const Member& member : members_) {
    CHECK(member.latest.ref.id != self_.id, self_);
    alive += member.latest.life == Life::kAlive ? 1 : 0;
  }
  CHECK(alive == alive_.size(), alive, alive_.size());
  for (const NodeId node : alive_) CHECK(find(node)->latest.life == Life::kAlive, node);
  for (const auto& [node, probe] : probes_) CHECK(find(node) != nullptr, node, probe.seq);
}

}  // namespace hoplite
