// The free parts of an address range, kept coalesced, searchable by address and size together.
//
// A treap ordered by offset in which every node knows the largest range below it: "the lowest range of at least n
// bytes" and "the highest" are one walk down, O(log n). Priorities are a hash of the offset, so that the shape depends
// on the contents only.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/extent.h"

namespace hoplite {

class FreeRanges {
 public:
  // Makes `range` free. It must not overlap what is free already. The free neighbours inside `within` are merged with
  // it; returns the merged range.
  Extent insert(Extent range, Extent within);

  // Takes `size` > 0 bytes from the front of the lowest range that has them, or from the back of the highest.
  std::optional<std::uint64_t> take_lowest(std::uint64_t size);
  std::optional<std::uint64_t> take_highest(std::uint64_t size);

  // Takes exactly this range, which is one of ours.
  void erase(Extent range);

  std::uint64_t largest() const { return nodes_[root_].largest; }
  std::size_t count() const { return nodes_.size() - 1 - unused_.size(); }

 private:
  using Index = std::uint32_t;  // into nodes_; 0 is the empty tree

  struct Node {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    std::uint64_t largest = 0;  // size of the largest range in this subtree
    Index left = 0;
    Index right = 0;
  };

  Index make(Extent range);
  void add(Extent range);
  void update(Index index);
  // Everything below `offset` goes to `left`, the rest to `right`.
  void split(Index tree, std::uint64_t offset, Index& left, Index& right);
  Index merge(Index left, Index right);
  Index erase_from(Index tree, std::uint64_t offset);
  Extent range_of(Index index) const { return {nodes_[index].offset, nodes_[index].size}; }
  Index before(std::uint64_t offset) const;  // the last range that starts below `offset`, or 0
  Index after(std::uint64_t offset) const;   // the first range that starts at or above it, or 0

  std::vector<Node> nodes_{Node{}};
  std::vector<Index> unused_;
  Index root_ = 0;
};

}  // namespace hoplite
