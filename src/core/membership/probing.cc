// Finding out who is alive: pings, the help of others, verdicts, and the paths that turn out to be blocked.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "core/membership/membership.h"

namespace hoplite {

void Membership::on_ping(Time now, NodeRef from, const Ping& ping, Output& out) {
  on_news(now, from, ping.news, out);
  const Address* address = address_of(from.id);
  if (address != nullptr) out.sends.push_back({from, *address, Ack{ping.seq, hot_news()}});
}

void Membership::on_ack(Time now, NodeRef from, const Ack& ack, Output& out) {
  on_news(now, from, ack.news, out);
  if (const auto errand = errands_.find(ack.seq); errand != errands_.end()) {
    if (from == errand->second.target) open_path(from.id, out);
    if (is_alive(errand->second.asker)) send(errand->second.asker.id, Ack{errand->second.asker_seq, {}}, out);
    errands_.erase(errand);
    return;
  }
  const auto it = std::ranges::find(probes_, ack.seq, [](const auto& probe) { return probe.second.seq; });
  if (it == probes_.end()) return;
  const auto [id, probe] = *it;
  if (from.id == id) {
    note_rtt(id, now - probe.sent);
    open_path(id, out);
  } else {
    // It lives, but not for us.
    block_path(now, id, out);
    if (paths_.reached(now, id, from.id)) out.rerouted.push_back(id);
  }
  find(id)->heard = now;
  probes_.erase(it);
}

void Membership::on_ping_request(Time now, NodeRef from, const PingRequest& request, Output& out) {
  on_news(now, from, request.news, out);
  if (!is_alive(from) || request.target == self_) return;
  if (!is_alive(request.target)) return send(from.id, Unreached{request.seq, request.target, {}}, out);
  // We need not try what we know: but somebody else may have the answer.
  if (paths_.is_blocked(request.target.id))
    return send(from.id, Unreached{request.seq, request.target, paths_.way_to(request.target.id)}, out);
  if (errands_.size() >= limits_.max_probes_for_others) errands_.erase(errands_.begin());
  const std::uint64_t seq = next_seq_++;
  errands_[seq] = {from, request.seq, request.target};
  send(request.target.id, Ping{seq, hot_news()}, out);
}

void Membership::on_unreached(Time now, NodeRef from, const Unreached& answer, Output& out) {
  const NodeId target = answer.target.id;
  paths_.failed(target, from.id);
  const auto probe = probes_.find(target);
  if (probe == probes_.end() || probe->second.seq != answer.seq || !probe->second.waiting.contains(from.id)) return;
  if (is_alive(latest(answer.instead)) && answer.instead != target) ask_one(now, latest(target), answer.instead, out);
  no_answer_from(now, target, from.id, out);
}

// `helper` could not reach it either. If we were refused, and nobody else is asked, that is a verdict.
void Membership::no_answer_from(Time now, NodeId target, NodeId helper, Output& out) {
  const auto it = probes_.find(target);
  if (it == probes_.end() || it->second.direct || it->second.waiting.erase(helper) == 0) return;
  if (!it->second.refused || it->second.answered || !it->second.waiting.empty()) return;
  if (const Member* member = find(target)) declare_dead(now, *member, out);
}

bool Membership::is_probed(NodeId node) const {
  const auto it = probes_.find(node);
  return it != probes_.end() && !it->second.answered;
}

void Membership::start_probe(Time now, NodeRef node, Output& out) {
  if (is_probed(node.id)) return;
  const std::uint64_t seq = next_seq_++;
  probes_[node.id] = {.seq = seq, .sent = now, .due = now + limits_.ping_timeout};
  send(node.id, Ping{seq, hot_news()}, out);
}

// First whoever has reached it lately; then others, at random.
void Membership::ask_others(Time now, NodeRef node, Output& out) {
  Probe& probe = probes_[node.id];
  if (probe.seq == 0 || probe.answered) probe = {.seq = next_seq_++, .sent = now};
  probe.direct = probe.answered = false;
  probe.due = now + limits_.indirect_timeout;
  if (const NodeRef known = latest(paths_.way_to(node.id)); is_alive(known)) ask_one(now, node, known.id, out);
  for (std::uint32_t i = 0; i < limits_.indirect_probes * 2 && probe.asked.size() < limits_.indirect_probes; ++i)
    if (const NodeRef helper = random_member(node.id); !helper.id.is_nil()) ask_one(now, node, helper.id, out);
}

void Membership::ask_one(Time now, NodeRef node, NodeId helper, Output& out) {
  Probe& probe = probes_.at(node.id);
  // What we cannot send is no question; unless it is the only one we know.
  const bool pointless = paths_.is_blocked(helper) && alive_.size() > 2;
  if (pointless || helper == self_.id || !probe.asked.insert(helper).second) return;
  probe.waiting.insert(helper);
  probe.due = now + limits_.indirect_timeout;
  send(helper, PingRequest{probe.seq, node, {self_news()}}, out);
}

void Membership::declare_dead(Time now, const Member& member, Output& out) {
  const MemberNews verdict{member.latest.ref, member.latest.address, Life::kDead};
  if (!merge(now, verdict, out)) return;
  spread({verdict}, NodeId{}, out);
  give_up_helper(now, verdict.ref.id, out);
}

// Nobody who is asked about others answers there.
void Membership::give_up_helper(Time now, NodeId helper, Output& out) {
  std::vector<NodeId> targets;
  for (const auto& [target, probe] : probes_)
    if (probe.waiting.contains(helper)) targets.push_back(target);
  for (const NodeId target : targets) no_answer_from(now, target, helper, out);
}

// --- paths ---------------------------------------------------------------------------------------------------------------

void Membership::block_path(Time now, NodeId peer, Output& out) {
  if (paths_.block(now, peer)) out.rerouted.push_back(peer);
}

void Membership::open_path(NodeId peer, Output& out) {
  if (paths_.open(peer)) out.rerouted.push_back(peer);
}

// Those who asked us to try are told that it refused.
void Membership::refuse_errands(NodeRef target, Output& out) {
  std::erase_if(errands_, [&](const auto& item) {
    const Errand& errand = item.second;
    if (errand.target != target) return false;
    if (is_alive(errand.asker))
      send(errand.asker.id, Unreached{errand.asker_seq, target, paths_.way_to(target.id)}, out);
    return true;
  });
}

void Membership::on_refused(Time now, NodeRef peer, Output& out) {
  refuse_errands(peer, out);
  give_up_helper(now, peer.id, out);
  if (!is_alive(peer)) return;  // whom we asked about it refused, too
  if (alive_.size() == 1) {
    if (probes_.contains(peer.id) && probes_.at(peer.id).refused) return declare_dead(now, *find(peer.id), out);
    probes_.erase(peer.id);
    start_probe(now, peer, out);
    probes_.at(peer.id).refused = true;
    return;
  }
  block_path(now, peer.id, out);
  if (!is_probed(peer.id) || probes_.at(peer.id).direct) ask_others(now, peer, out);
  probes_.at(peer.id).refused = true;
}

void Membership::on_peer_lost(Time now, NodeRef peer, Loss why, Output& out) {
  if (peer == self_ || !is_alive(peer)) return;
  switch (why) {
    case Loss::kRefused: on_refused(now, peer, out); break;
    case Loss::kReplaced:
      refuse_errands(peer, out);
      declare_dead(now, *find(peer.id), out);
      break;
    case Loss::kClosed:
      // The ping that is under way may have gone with this connection.
      if (is_probed(peer.id) && probes_.at(peer.id).direct)
        send(peer.id, Ping{probes_.at(peer.id).seq, hot_news()}, out);
      else start_probe(now, peer, out);
      break;
    case Loss::kTimedOut:
    case Loss::kRejected:
      // Others may still reach it. If they are trying, that has its deadline.
      if (alive_.size() > 1) block_path(now, peer.id, out);
      if (!is_probed(peer.id) || probes_.at(peer.id).direct) ask_others(now, peer, out);
      break;
  }
}

void Membership::touch(Time now, NodeId peer) {
  Member* member = find(peer);
  if (member == nullptr || member->latest.life == Life::kDead) return;
  const auto [watch, fresh] = watched_.try_emplace(peer, now);
  if (fresh || watch->second < now) member->heard = now;  // a fresh watch starts with patience
  watch->second = now + limits_.watch_for;
}

void Membership::ping_due_members(Time now, Output& out) {
  std::erase_if(watched_, [&](const auto& watch) {
    const Member* member = find(watch.first);
    return member == nullptr || member->latest.life == Life::kDead || watch.second < now;
  });
  for (const auto& [id, until] : watched_)
    if (const Member* member = find(id); member->heard + limits_.ping_every <= now) {
      if (!paths_.is_blocked(id)) start_probe(now, member->latest.ref, out);
      else if (!is_probed(id)) ask_others(now, member->latest.ref, out);
    }
}

}  // namespace hoplite
