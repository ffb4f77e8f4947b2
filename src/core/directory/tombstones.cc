#include "core/directory/tombstones.h"

#include <algorithm>

#include "base/check.h"
#include "core/directory/homes.h"

namespace hoplite {

void Tombstones::bury(const ObjectId& id, Version version, Time until, NodeId home) {
  CHECK(version != 0 || !id.is_named(), id);
  const auto [it, fresh] = stones_.try_emplace(id, Stone{version, until, home});
  Stone& stone = it->second;
  if (fresh) {
    by_home_[home].insert(id);
  } else {
    unkeep(id, stone);
    if (stone.version == 0 || (version != 0 && is_newer(version, stone.version))) stone.version = version;
    stone.until = std::max(stone.until, until);
  }
  order_.push_back({stone.until, id});
  while (order_.size() > max_) drop_oldest();
}

bool Tombstones::covers(const ObjectId& id, Version version) const {
  const auto it = stones_.find(id);
  if (it == stones_.end()) return false;
  return it->second.version == 0 || !is_newer(version, it->second.version);
}

Version Tombstones::version_of(const ObjectId& id) const {
  const auto it = stones_.find(id);
  return it == stones_.end() ? 0 : it->second.version;
}

std::set<ObjectId> Tombstones::of_home(NodeId home) const {
  const auto it = by_home_.find(home);
  return it == by_home_.end() ? std::set<ObjectId>{} : it->second;
}

void Tombstones::hold(const ObjectId& id) { stones_.at(id).held = true; }

void Tombstones::let_go(const ObjectId& id) {
  const auto it = stones_.find(id);
  if (it == stones_.end()) return;
  it->second.held = false;
  if (!it->second.kept) return;
  unkeep(id, it->second);
  keep_if_needed(it);
}

void Tombstones::set_horizon(std::uint64_t generation) {
  const bool fewer = generation < horizon_;
  horizon_ = generation;
  if (!fewer) return;
  // By generation: those that are newer than the horizon are at the end.
  std::vector<ObjectId> over;
  for (auto it = kept_.lower_bound({generation + 1, ObjectId{}}); it != kept_.end(); ++it) over.push_back(it->second);
  if (generation == 0)
    for (const auto& [of, id] : kept_)
      if (of == 0) over.push_back(id);
  for (const ObjectId& id : over) {
    const auto it = stones_.find(id);
    unkeep(id, it->second);
    keep_if_needed(it);
  }
}

void Tombstones::expire(Time now) {
  while (!order_.empty() && order_.front().until <= now) drop_oldest();
}

// What was deleted before anybody knew its version may be as old as can be.
bool Tombstones::is_needed(const Stone& stone) const {
  return stone.held || (horizon_ != 0 && generation(stone.version) <= horizon_);
}

// An expiry that was superseded is passed over.
void Tombstones::drop_oldest() {
  if (order_.empty()) return;
  const Expiry oldest = order_.front();
  order_.pop_front();
  const auto it = stones_.find(oldest.id);
  if (it == stones_.end() || it->second.kept || it->second.until > oldest.until) return;
  keep_if_needed(it);
}

void Tombstones::keep_if_needed(Stones::iterator it) {
  if (is_needed(it->second)) {
    it->second.kept = true;
    kept_.emplace(generation(it->second.version), it->first);
    return;
  }
  forget_home(it->first, it->second.home);
  stones_.erase(it);
}

void Tombstones::unkeep(const ObjectId& id, Stone& stone) {
  if (std::exchange(stone.kept, false)) kept_.erase({generation(stone.version), id});
}

void Tombstones::forget_home(const ObjectId& id, NodeId home) {
  const auto it = by_home_.find(home);
  if (it == by_home_.end()) return;
  it->second.erase(id);
  if (it->second.empty()) by_home_.erase(it);
}

void Tombstones::set_view(const std::vector<NodeRef>& alive, const std::vector<NodeId>& joined,
                          const std::vector<NodeId>& died) {
  std::vector<ObjectId> moved;
  for (NodeId node : died)
    for (const ObjectId& id : of_home(node)) moved.push_back(id);
  for (const auto& [home, ids] : by_home_)
    for (const ObjectId& id : ids)
      if (moves_home(id, home, joined)) moved.push_back(id);
  for (const ObjectId& id : moved) {
    Stone& stone = stones_.at(id);
    forget_home(id, stone.home);
    stone.home = home_of(id, alive).id;
    by_home_[stone.home].insert(id);
  }
}

void Tombstones::check_invariants() const {
  CHECK(order_.size() <= max_, order_.size());
  CHECK(stones_.size() <= order_.size() + kept_.size(), stones_.size(), order_.size(), kept_.size());
  for (const auto& [of, id] : kept_) {
    const Stone& stone = stones_.at(id);
    CHECK(stone.kept && generation(stone.version) == of && is_needed(stone), id, of, horizon_);
  }
}

}  // namespace hoplite
