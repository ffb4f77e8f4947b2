#include "core/reduce/cost.h"

#include <algorithm>

namespace hoplite {
namespace {

// An order, what is asked for because of it, and everybody asks where the other slices come into being.
constexpr double kRingSetUpHops = 4;

struct Tree {
  std::uint32_t width;
  double bytes;
  const LinkCost& link;

  struct Output {  // when its first grain and its last byte can leave the node that makes it
    double first = 0;
    double last = 0;
  };

  // Of the subtree of `nodes` nodes whose root is told at `told`. Its branches differ by one node at most, so that there are
  // two kinds of them; bytes of those that come first use the link while the others are awaited.
  Output output(std::uint32_t nodes, double told) const {
    if (nodes == 1) return {};
    const std::uint32_t branches = std::min(width, nodes - 1);
    const std::uint32_t larger = (nodes - 1) % branches;
    const std::uint32_t size = (nodes - 1) / branches;
    const double grain_s = std::min(bytes, link.grain_bytes) / link.bytes_per_s;
    const double bytes_s = bytes / link.bytes_per_s;
    const auto begin = [&](const Output& branch) { return std::max(told + link.hop_s, branch.first) + link.hop_s; };
    const auto end = [&](const Output& branch, std::uint32_t alike) {
      return std::max(begin(branch) + alike * bytes_s, branch.last + link.hop_s + alike * grain_s);
    };
    const Output small = output(size, link.hop_s);
    const Output small_end{begin(small) + branches * grain_s, end(small, branches - larger)};
    if (larger == 0) return small_end;
    const Output large = output(size + 1, link.hop_s);
    const bool small_are_over = end(small, branches - larger) <= begin(large);
    return {begin(large) + (small_are_over ? larger : branches) * grain_s,
            std::max({small_end.last, end(large, larger), begin(small) + branches * bytes_s})};
  }
};

// Fills `children` for the subtree of nodes [first, first + count), whose root is the last of them.
void build(std::uint32_t first, std::uint32_t count, std::uint32_t width,
           std::vector<std::vector<std::uint32_t>>& children) {
  const std::uint32_t root = first + count - 1;
  std::uint32_t left = count - 1;
  for (std::uint32_t branches = std::min(width, left); branches > 0; --branches) {
    const std::uint32_t size = (left + branches - 1) / branches;
    build(first, size, width, children);
    first += size;
    left -= size;
    children[root].push_back(first - 1);
  }
}

}  // namespace

std::uint32_t tree_depth(std::uint32_t nodes, std::uint32_t width) {
  std::uint32_t depth = 0;
  for (std::uint64_t level = 1, total = 1; total < nodes; ++depth) {
    level *= width;
    total += level;
  }
  return depth;
}

double reduce_seconds(std::uint32_t nodes, std::uint32_t width, double bytes, const LinkCost& link) {
  return nodes <= 1 ? 0 : Tree{width, bytes, link}.output(nodes, 0).last;
}

std::uint32_t best_width(std::uint32_t nodes, double bytes, const LinkCost& link) {
  std::uint32_t best = 1;
  double least = reduce_seconds(nodes, best, bytes, link);
  const auto consider = [&](std::uint32_t width) {
    const double seconds = reduce_seconds(nodes, width, bytes, link);
    if (seconds < least) best = width, least = seconds;
  };
  for (std::uint32_t width = 2; width + 1 < nodes; width += std::max(1U, width / 8)) consider(width);
  if (nodes > 2) consider(nodes - 1);
  return best;
}

std::uint64_t star_bytes(std::uint32_t nodes, const LinkCost& link, double tree_work_s, std::uint64_t at_most) {
  const auto star_wins = [&](std::uint64_t bytes) {
    const double size = static_cast<double>(bytes);
    const double tree = tree_work_s + reduce_seconds(nodes, best_width(nodes, size, link), size, link);
    return nodes <= 1 || (nodes - 1) * size / link.bytes_per_s <= tree;
  };
  std::uint64_t low = 0;
  std::uint64_t high = at_most;
  while (low < high) {
    const std::uint64_t middle = low + (high - low + 1) / 2;
    if (star_wins(middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}

double allreduce_whole_seconds(std::uint32_t nodes, double bytes, const LinkCost& link) {
  if (nodes <= 1) return 0;
  const std::uint32_t width = best_width(nodes, bytes, link);
  // Of two nodes each link carries it once each way. Otherwise a node that is not at an end gets it once more than it has
  // inputs, and passes it on as often as it has inputs.
  const double again = nodes > 2 ? bytes / link.bytes_per_s : 0;
  return reduce_seconds(nodes, width, bytes, link) + tree_depth(nodes, width) * link.hop_s + again;
}

double allreduce_slices_seconds(std::uint32_t nodes, std::uint32_t slices, double bytes, const LinkCost& link) {
  if (nodes <= 1 || slices == 0) return 0;
  // A node is the root of its share of the slices, which it need not send up, and the end of as many. While one slice is on
  // its way around, the links carry the others.
  const double share = 1.0 / std::max(nodes, slices);
  const double around =
      2.0 * (nodes - 1) * (link.hop_s + std::min(link.grain_bytes, bytes / slices) / link.bytes_per_s);
  return kRingSetUpHops * link.hop_s + std::max(around, 2.0 * (1 - share) * bytes / link.bytes_per_s);
}

std::vector<std::vector<std::uint32_t>> tree_children(std::uint32_t nodes, std::uint32_t width) {
  std::vector<std::vector<std::uint32_t>> children(nodes);
  if (nodes > 0) build(0, nodes, width, children);
  return children;
}

}  // namespace hoplite
