// Versions of objects that a node has no bytes of and yet must not forget: kept for a while, in bounded number.
//
// Tombstones are the ones that were deleted, so that a holder who was away does not bring back what is gone. The others are
// known to have existed, so that "lost" can be told from "nobody has put it".
#pragma once

#include <cstdint>
#include <deque>
#include <map>

#include "base/node_id.h"
#include "base/time.h"
#include "hoplite/object_id.h"

namespace hoplite {

class VersionMemory {
 public:
  struct Item {
    Version version = 0;
    Time until;
  };

  explicit VersionMemory(std::size_t max) : max_(max) {}

  // Keeps the later expiry if there is one already.
  void add(const ObjectId& id, Version version, Time until) {
    const auto [it, fresh] = items_.try_emplace(id, Item{version, until});
    if (!fresh && it->second.until < until) it->second = {version, until};
    if (fresh || it->second.until == until) order_.push_back({until, id});
    while (items_.size() > max_) drop_oldest();
  }

  bool contains(const ObjectId& id) const { return items_.contains(id); }
  // 0 if there is none.
  Version version_of(const ObjectId& id) const {
    const auto it = items_.find(id);
    return it == items_.end() ? 0 : it->second.version;
  }

  void expire(Time now) {
    while (!order_.empty() && order_.front().until <= now) drop_oldest();
  }

  const std::map<ObjectId, Item>& all() const { return items_; }
  void clear() {
    items_.clear();
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
    const auto it = items_.find(oldest.id);
    if (it != items_.end() && it->second.until <= oldest.until) items_.erase(it);
  }

  std::size_t max_;
  std::map<ObjectId, Item> items_;
  std::deque<Expiry> order_;  // roughly by time: expiries are added with the same life
};

}  // namespace hoplite
