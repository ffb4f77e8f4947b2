// Versions of objects that a node has no bytes of and yet must not forget: kept for a while, in bounded number.
//
// Tombstones are the ones that were deleted, so that a holder who was away does not bring back what is gone. The others are
// known to have existed, so that "lost" can be told from "nobody has put it". Both are told to the ids' homes, so they are
// kept by home.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/node_id.h"
#include "base/time.h"
#include "core/directory/homes.h"
#include "hoplite/object_id.h"

namespace hoplite {

class VersionMemory {
 public:
  struct Item {
    Version version = 0;
    Time until;
    NodeId home;
    std::string why = {};  // known, and gone: in words, if there is more to say than that
  };

  explicit VersionMemory(std::size_t max) : max_(max) {}

  // Keeps the later expiry if there is one already, and does not forget which version it was.
  void add(const ObjectId& id, Version version, Time until, NodeId home, const std::string& why = {}) {
    const auto [it, fresh] = items_.try_emplace(id, Item{version, until, home, why});
    if (fresh) {
      by_home_[home].insert(id);
    } else if (it->second.until < until) {
      if (version != 0) it->second.version = version;
      it->second.until = until;
      it->second.why = why;
    } else {
      return;
    }
    order_.push_back({until, id});
    while (items_.size() > max_ || order_.size() > 2 * max_) drop_oldest();
  }

  bool contains(const ObjectId& id) const { return items_.contains(id); }
  // 0 if there is none.
  Version version_of(const ObjectId& id) const {
    const auto it = items_.find(id);
    return it == items_.end() ? 0 : it->second.version;
  }
  const Item& at(const ObjectId& id) const { return items_.at(id); }
  std::set<ObjectId> of_home(NodeId home) const {
    const auto it = by_home_.find(home);
    return it == by_home_.end() ? std::set<ObjectId>{} : it->second;
  }
  std::size_t size() const { return items_.size(); }

  void expire(Time now) {
    while (!order_.empty() && order_.front().until <= now) drop_oldest();
  }

  // The live members are `alive` now; of them, `joined` were not before. `died` were.
  void set_view(const std::vector<NodeRef>& alive, const std::vector<NodeId>& joined, const std::vector<NodeId>& died) {
    std::vector<ObjectId> moved;
    for (NodeId node : died)
      for (const ObjectId& id : of_home(node)) moved.push_back(id);
    for (const auto& [home, ids] : by_home_)
      for (const ObjectId& id : ids)
        if (moves_home(id, home, joined)) moved.push_back(id);
    for (const ObjectId& id : moved) {
      Item& item = items_.at(id);
      forget_home(id, item.home);
      item.home = home_of(id, alive).id;
      by_home_[item.home].insert(id);
    }
  }

 private:
  struct Expiry {
    Time until;
    ObjectId id;
  };

  void forget_home(const ObjectId& id, NodeId home) {
    const auto it = by_home_.find(home);
    if (it == by_home_.end()) return;
    it->second.erase(id);
    if (it->second.empty()) by_home_.erase(it);
  }

  // An expiry that was superseded is passed over.
  void drop_oldest() {
    if (order_.empty()) return;
    const Expiry oldest = order_.front();
    order_.pop_front();
    const auto it = items_.find(oldest.id);
    if (it == items_.end() || it->second.until > oldest.until) return;
    forget_home(oldest.id, it->second.home);
    items_.erase(it);
  }

  std::size_t max_;
  std::map<ObjectId, Item> items_;
  std::map<NodeId, std::set<ObjectId>> by_home_;
  std::deque<Expiry> order_;  // roughly by time: expiries are added with the same life
};

}  // namespace hoplite
