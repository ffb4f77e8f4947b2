#include "core/directory/recovery.h"

#include <algorithm>

#include "core/directory/homes.h"
#include "core/directory/view.h"

namespace hoplite {
void Recovery::set_view(Time now, const std::vector<NodeRef>& alive, const std::vector<NodeRef>& died) {
  alive_ = alive;
  if (alive.size() > 1) hold_until_ = Time{};  // whoever has joined may be left alone later
  for (const NodeRef& node : died)
    if (std::ranges::find(died_since_, node.id) == died_since_.end()) died_since_.push_back(node.id);
  if (died_since_.size() > limits_.max_deaths) {
    died_since_.clear();
    settled_once_ = own_ids_settled_ = false;
  }
  if (running_) start(now);
}

void Recovery::reset(NodeRef self) {
  self_ = self;
  settled_once_ = own_ids_settled_ = false;
  died_since_.clear();
  running_ = false;
  pending_.clear();
}

bool Recovery::settled(const ObjectId& id) const {
  const bool own = !id.is_named() && id.hi == self_.id.value;
  if (!settled_once_ && !(own && own_ids_settled_)) return false;
  const std::uint64_t mine = home_score(id, self_.id);
  return std::ranges::none_of(died_since_, [&](NodeId dead) { return home_score(id, dead) > mine; });
}

void Recovery::demand(Time now, bool urgent) {
  // What is not urgent waits until the view has calmed down.
  if (!running_) return start(urgent ? now : now + limits_.request_retry);
  if (!urgent) return;
  for (auto& [id, pending] : pending_)
    if (pending.round == 0) pending.ask_at = std::min(pending.ask_at, now);
}

void Recovery::start(Time ask_at) {
  running_ = true;
  pending_.clear();
  for (const NodeRef& node : alive_)
    if (node.id != self_.id) pending_[node.id] = Pending{node, 0, 0, ask_at};
}

void Recovery::count_facts(NodeRef from, std::uint64_t round, std::size_t facts) {
  const auto it = pending_.find(from.id);
  if (it != pending_.end() && it->second.round == round) it->second.facts += facts;
}

void Recovery::on_reply(Time now, NodeRef from, const RecoverReply& reply) {
  const auto it = pending_.find(from.id);
  if (it == pending_.end() || it->second.ref != from || it->second.round != reply.round) return;
  if (reply.view == view_digest(alive_) && reply.facts == it->second.facts) {
    pending_.erase(it);
  } else {
    it->second.round = 0;
    it->second.ask_at = now + limits_.retry_backoff;
  }
}

bool Recovery::advance(Time now, std::vector<Ask>& asks) {
  if (!running_ || holding(now)) return false;
  const std::uint64_t view = view_digest(alive_);
  for (auto& [id, pending] : pending_) {
    if (pending.ask_at > now) continue;
    pending.round = next_round_++;
    pending.facts = 0;
    pending.ask_at = now + limits_.request_retry;
    asks.push_back({pending.ref, {pending.round, view}});
  }
  if (!pending_.empty()) return false;
  running_ = false;
  settled_once_ = own_ids_settled_ = true;
  died_since_.clear();
  return true;
}

Time Recovery::next_wakeup() const {
  if (!running_) return Time::never();
  if (alive_.size() <= 1) return hold_until_;
  Time next = Time::never();
  for (const auto& [id, pending] : pending_) next = std::min(next, pending.ask_at);
  return next;
}

}  // namespace hoplite
