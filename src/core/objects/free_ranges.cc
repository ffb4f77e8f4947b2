#include "core/objects/free_ranges.h"

#include <algorithm>

#include "base/check.h"
#include "base/random.h"

namespace hoplite {

Extent FreeRanges::insert(Extent range, Extent within) {
  const Index next = after(range.offset);
  const Index previous = before(range.offset);
  CHECK(next == 0 || range.end() <= nodes_[next].offset, "freed twice:", range.offset, range.size);
  CHECK(previous == 0 || range_of(previous).end() <= range.offset, "freed twice:", range.offset, range.size);
  Extent merged = range;
  if (next != 0 && nodes_[next].offset == range.end() && range.end() < within.end()) {
    const Extent neighbour = range_of(next);
    erase(neighbour);
    merged.size += neighbour.size;
  }
  if (previous != 0 && range_of(previous).end() == range.offset && range.offset > within.offset) {
    const Extent neighbour = range_of(previous);
    erase(neighbour);
    merged = {neighbour.offset, merged.size + neighbour.size};
  }
  add(merged);
  return merged;
}

std::optional<std::uint64_t> FreeRanges::take_lowest(std::uint64_t size) {
  if (largest() < size) return std::nullopt;
  Index at = root_;
  while (nodes_[nodes_[at].left].largest >= size || nodes_[at].size < size) {
    at = nodes_[nodes_[at].left].largest >= size ? nodes_[at].left : nodes_[at].right;
  }
  const Extent range = range_of(at);
  erase(range);
  if (range.size > size) add({range.offset + size, range.size - size});
  return range.offset;
}

std::optional<std::uint64_t> FreeRanges::take_highest(std::uint64_t size) {
  if (largest() < size) return std::nullopt;
  Index at = root_;
  while (nodes_[nodes_[at].right].largest >= size || nodes_[at].size < size) {
    at = nodes_[nodes_[at].right].largest >= size ? nodes_[at].right : nodes_[at].left;
  }
  const Extent range = range_of(at);
  if (range.size == size) {
    erase(range);
    return range.offset;
  }
  erase(range);
  add({range.offset, range.size - size});
  return range.end() - size;
}

void FreeRanges::erase(Extent range) {
  const Index found = after(range.offset);
  CHECK(found != 0 && range_of(found) == range, "not a free range:", range.offset, range.size);
  root_ = erase_from(root_, range.offset);
  unused_.push_back(found);
}

FreeRanges::Index FreeRanges::make(Extent range) {
  Index index = 0;
  if (unused_.empty()) {
    index = static_cast<Index>(nodes_.size());
    nodes_.emplace_back();
  } else {
    index = unused_.back();
    unused_.pop_back();
  }
  nodes_[index] = Node{range.offset, range.size, range.size, 0, 0};
  return index;
}

void FreeRanges::add(Extent range) {
  const Index node = make(range);
  Index left = 0;
  Index right = 0;
  split(root_, range.offset, left, right);
  root_ = merge(merge(left, node), right);
}

void FreeRanges::update(Index index) {
  Node& node = nodes_[index];
  node.largest = std::max({node.size, nodes_[node.left].largest, nodes_[node.right].largest});
}

void FreeRanges::split(Index tree, std::uint64_t offset, Index& left, Index& right) {
  if (tree == 0) {
    left = right = 0;
    return;
  }
  if (nodes_[tree].offset < offset) {
    split(nodes_[tree].right, offset, nodes_[tree].right, right);
    left = tree;
  } else {
    split(nodes_[tree].left, offset, left, nodes_[tree].left);
    right = tree;
  }
  update(tree);
}

FreeRanges::Index FreeRanges::merge(Index left, Index right) {
  if (left == 0) return right;
  if (right == 0) return left;
  if (mix64(nodes_[left].offset) < mix64(nodes_[right].offset)) {
    nodes_[left].right = merge(nodes_[left].right, right);
    update(left);
    return left;
  }
  nodes_[right].left = merge(left, nodes_[right].left);
  update(right);
  return right;
}

FreeRanges::Index FreeRanges::erase_from(Index tree, std::uint64_t offset) {
  if (nodes_[tree].offset == offset) return merge(nodes_[tree].left, nodes_[tree].right);
  Index& child = offset < nodes_[tree].offset ? nodes_[tree].left : nodes_[tree].right;
  child = erase_from(child, offset);
  update(tree);
  return tree;
}

FreeRanges::Index FreeRanges::before(std::uint64_t offset) const {
  Index best = 0;
  for (Index at = root_; at != 0;) {
    const bool below = nodes_[at].offset < offset;
    if (below) best = at;
    at = below ? nodes_[at].right : nodes_[at].left;
  }
  return best;
}

FreeRanges::Index FreeRanges::after(std::uint64_t offset) const {
  Index best = 0;
  for (Index at = root_; at != 0;) {
    const bool below = nodes_[at].offset < offset;
    if (!below) best = at;
    at = below ? nodes_[at].right : nodes_[at].left;
  }
  return best;
}

}  // namespace hoplite
