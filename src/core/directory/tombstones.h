// Ids that were deleted: kept for a while, in bounded number, so that a holder who was away does not bring back what is
// gone.
#pragma once

#include <cstdint>
#include <deque>
#include <map>

#include "base/node_id.h"
#include "base/time.h"
#include "hoplite/object_id.h"

namespace hoplite {

class Tombstones {
 public:
  struct Stone {
    Version version = 0;
    Time until;
  };

  explicit Tombstones(std::size_t max) : max_(max) {}

  // Keeps the later expiry if there is one already.
  void add(const ObjectId& id, Version version, Time until) {
    const auto [it, fresh] = stones_.try_emplace(id, Stone{version, until});
    if (!fresh && it->second.until < until) it->second = {version, until};
    if (fresh || it->second.until == until) order_.push_back({until, id});
    while (stones_.size() > max_) drop_oldest();
  }

  bool contains(const ObjectId& id) const { return stones_.contains(id); }

  void expire(Time now) {
    while (!order_.empty() && order_.front().until <= now) drop_oldest();
  }

  const std::map<ObjectId, Stone>& all() const { return stones_; }
  void clear() {
    stones_.clear();
    order_.clear();
  }

 private:
  struct Expiry {
    Time until;
    ObjectId id;
  };

  // An expiry that was superseded is passed over.
  void drop_oldest() {
    if (order_.empty()) return;
    const Expiry oldest = order_.front();
    order_.pop_front();
    const auto it = stones_.find(oldest.id);
    if (it != stones_.end() && it->second.until <= oldest.until) stones_.erase(it);
  }

  std::size_t max_;
  std::map<ObjectId, Stone> stones_;
  std::deque<Expiry> order_;  // roughly by time: expiries are added with the same life
};

}  // namespace hoplite
