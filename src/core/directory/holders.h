// Who has how much of one object. What every request asks is counted along: it takes no longer when thousands have copies.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "core/directory/summary.h"

namespace hoplite {

class Holders {
 public:
  using Map = std::map<NodeId, DirectoryHolder>;

  Map::const_iterator begin() const { return all_.begin(); }
  Map::const_iterator end() const { return all_.end(); }
  bool empty() const { return all_.empty(); }
  bool contains(NodeId node) const { return all_.contains(node); }
  // nullptr if it has nothing.
  const DirectoryHolder* find(NodeId node) const {
    const auto it = all_.find(node);
    return it == all_.end() ? nullptr : &it->second;
  }

  bool anybody_writes() const { return writing_ > 0; }
  std::uint32_t roots() const { return roots_; }  // slices that come into being somewhere
  const std::set<NodeId>& complete() const { return complete_; }
  const std::set<NodeId>& primaries() const { return primaries_; }  // complete ones that are kept until delete

  // It is one of them from now on, or is like this now.
  void put(const DirectoryHolder& holder) {
    erase(holder.ref.id);
    all_.emplace(holder.ref.id, holder);
    writing_ += holder.state == CopyState::kWriting ? 1 : 0;
    roots_ += holder.roots;
    if (holder.state != CopyState::kComplete) return;
    complete_.insert(holder.ref.id);
    if (holder.primary) primaries_.insert(holder.ref.id);
  }
  // False if it had nothing.
  bool erase(NodeId node) {
    const auto it = all_.find(node);
    if (it == all_.end()) return false;
    writing_ -= it->second.state == CopyState::kWriting ? 1 : 0;
    roots_ -= it->second.roots;
    complete_.erase(node);
    primaries_.erase(node);
    all_.erase(it);
    return true;
  }
  // The complete copy of `node` is primary from now on, or is not.
  void set_primary(NodeId node, bool primary) {
    DirectoryHolder holder = all_.at(node);
    holder.primary = primary;
    put(holder);
  }
  void told_to_reset(NodeId node) { all_.at(node).told_to_reset = true; }

 private:
  Map all_;
  std::size_t writing_ = 0;
  std::uint32_t roots_ = 0;
  std::set<NodeId> complete_;
  std::set<NodeId> primaries_;
};

}  // namespace hoplite
