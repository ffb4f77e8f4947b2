// Versions of objects that a node has no bytes of and yet must not forget: known to have existed, so that "lost" can be told
// from "nobody has put it". Kept for a while, in bounded number; told to the ids' homes, so they are kept by home.
#pragma once

#include <cstdint>
#include <deque>
#include <iterator>
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

  // At most so many that expire, and so many that do not.
  explicit VersionMemory(std::size_t max, std::size_t max_lasting = 0) : max_(max), max_lasting_(max_lasting) {}

  // Of two versions of an id the newer one is remembered, and of one version the later expiry.
  void add(const ObjectId& id, Version version, Time until, NodeId home, const std::string& why = {}) {
    const bool lasts = until == Time::never();
    if (lasts && lasting_ >= max_lasting_ && !items_.contains(id)) return;
    const auto [it, fresh] = items_.try_emplace(id, Item{version, until, home, why});
    if (fresh) {
      by_home_[home].insert(id);
      lasting_ += lasts ? 1 : 0;
    } else if (lasts || it->second.until == Time::never()) {
      Item& item = it->second;
      if (is_newer(item.version, version)) return;
      lasting_ += item.until == Time::never() ? 0 : 1;
      item.until = Time::never();
      item.version = version;
      if (!why.empty()) item.why = why;
      return;
    } else if (it->second.until < until) {
      if (is_newer(it->second.version, version)) return;  // older news
      it->second.version = version;
      it->second.until = until;
      it->second.why = why;
    } else {
      return;
    }
    if (lasts) return;
    order_.push_back({until, id});
    while (items_.size() - lasting_ > max_ || order_.size() > 2 * max_) drop_oldest();
  }

  // This version is deleted, and older ones are.
  void forget(const ObjectId& id, Version version) {
    const auto it = items_.find(id);
    if (it != items_.end() && !is_newer(it->second.version, version)) erase(it);
  }
  // Those that do not expire, of which `is_over` says so.
  template <typename Predicate> void forget_lasting(Predicate is_over) {
    for (auto it = items_.begin(); it != items_.end();) {
      const auto next = std::next(it);
      if (it->second.until == Time::never() && is_over(it->first, it->second)) erase(it);
      it = next;
    }
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

  void erase(std::map<ObjectId, Item>::iterator it) {
    lasting_ -= it->second.until == Time::never() ? 1 : 0;
    forget_home(it->first, it->second.home);
    items_.erase(it);
  }

  // An expiry that was superseded is passed over.
  void drop_oldest() {
    if (order_.empty()) return;
    const Expiry oldest = order_.front();
    order_.pop_front();
    const auto it = items_.find(oldest.id);
    if (it == items_.end() || it->second.until > oldest.until) return;
    erase(it);
  }

  std::size_t max_;
  std::size_t max_lasting_;
  std::size_t lasting_ = 0;  // those that do not expire
  std::map<ObjectId, Item> items_;
  std::map<NodeId, std::set<ObjectId>> by_home_;
  std::deque<Expiry> order_;  // roughly by time: expiries are added with the same life
};

}  // namespace hoplite
