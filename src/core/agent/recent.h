// The last so many entries of a table: a new one may push out the oldest.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <utility>

#include "hoplite/object_id.h"

namespace hoplite {

template <typename Value> class Recent {
 public:
  explicit Recent(std::size_t most) : most_(most) {}

  // nullptr if there is none, or not any more.
  const Value* find(const ObjectId& id) const {
    const auto it = all_.find(id);
    return it == all_.end() ? nullptr : &it->second;
  }
  // One that is there already keeps its age.
  void put(const ObjectId& id, Value value) {
    if (all_.insert_or_assign(id, std::move(value)).second) order_.push_back(id);
    while (order_.size() > most_) {
      all_.erase(order_.front());
      order_.pop_front();
    }
  }
  void erase(const ObjectId& id) {
    if (all_.erase(id) > 0) std::erase(order_, id);
  }
  // By id.
  const std::map<ObjectId, Value>& all() const { return all_; }

 private:
  std::size_t most_;
  std::map<ObjectId, Value> all_;
  std::deque<ObjectId> order_;  // the oldest first
};

}  // namespace hoplite
