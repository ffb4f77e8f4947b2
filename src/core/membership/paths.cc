#include "core/membership/paths.h"

#include <algorithm>
#include <utility>

namespace hoplite {

bool Paths::block(Time now, NodeId peer) {
  const auto [path, fresh] = blocked_.try_emplace(peer);
  if (fresh) path->second.due = now + try_every_;
  return fresh;
}

// The way that is known is kept as long as it is confirmed: one order of messages is better than two.
bool Paths::reached(Time now, NodeId peer, NodeId helper) {
  const auto it = blocked_.find(peer);
  if (it == blocked_.end() || is_blocked(helper)) return false;
  Path& path = it->second;
  const bool known = !path.helper.is_nil() && path.confirmed + try_every_ * 2 > now;
  if (known && path.helper != helper) return false;
  path.confirmed = now;
  return std::exchange(path.helper, helper) != helper;
}

void Paths::failed(NodeId peer, NodeId helper) {
  const auto it = blocked_.find(peer);
  if (it != blocked_.end() && it->second.helper == helper) it->second.helper = NodeId{};
}

void Paths::forget(NodeId node) {
  blocked_.erase(node);
  for (auto& [peer, path] : blocked_)
    if (path.helper == node) path.helper = NodeId{};
}

NodeId Paths::way_to(NodeId peer) const {
  const auto it = blocked_.find(peer);
  return it == blocked_.end() ? NodeId{} : it->second.helper;
}

std::vector<Paths::Blocked> Paths::blocked(std::size_t most) const {
  std::vector<Blocked> all;
  for (const auto& [peer, path] : blocked_) {
    if (all.size() == most) break;
    all.push_back({peer, path.helper});
  }
  return all;
}

std::vector<NodeId> Paths::take_due(Time now) {
  std::vector<NodeId> due;
  for (auto& [peer, path] : blocked_) {
    if (path.due > now) continue;
    path.due = now + try_every_;
    due.push_back(peer);
  }
  return due;
}

Time Paths::next_due() const {
  Time next = Time::never();
  for (const auto& [peer, path] : blocked_) next = std::min(next, path.due);
  return next;
}

}  // namespace hoplite
