// How long a reduce takes in a tree of some width, and which width is best.
//
// n nodes with S bytes each; every link carries B bytes per second each way; a hop takes L. What flows is combined and passed
// on in grains of g bytes (S, if that is less). A node with d children has the first grain of its output when it has d
// grains, and each further one after d more: the first grain passes through all levels, and the others follow it. Before that
// the coordinator, which is the root, tells the other nodes, and everybody asks for its inputs:
//
//   width 1 (a chain)        2 L + (n - 1) (L + g / B) + (S - g) / B
//   width d (a d-ary tree)   2 L + depth (L + d g / B) + d (S - g) / B
//   width n - 1 (a star)     2 L + (n - 1) S / B                          nobody has to be told first
//
// A tree is seldom full: the branches that are less deep come earlier and use a link that would be idle, so what is computed
// is when each branch comes. All of it counts from the moment when the coordinator knows where the sources are. If they are
// small, they can be sent along with that answer instead: a star that takes (n - 1) S / B from then on.
//
// A tree of chains (f chains into one root) has as many bytes coming into its root as the f-ary tree and more hops, so it is
// never better and not tried.
#pragma once

#include <cstdint>
#include <vector>

#include "base/link_cost.h"

namespace hoplite {

// Hops from the deepest leaf to the root of a d-ary tree with n nodes, filled as evenly as possible. depth(1, d) = 0.
std::uint32_t tree_depth(std::uint32_t nodes, std::uint32_t width);

// From the orders until the root has combined all.
double reduce_seconds(std::uint32_t nodes, std::uint32_t width, double bytes, const LinkCost& link);

// The width (1 to nodes - 1) with the least cost; of equals the smaller one. 1 for a single node. From 16 on only one in each
// eighth is tried: between them it matters little, and there may be thousands.
std::uint32_t best_width(std::uint32_t nodes, double bytes, const LinkCost& link);

// Up to this size, having every source sent along with the answer is at least as good as any tree, which takes `tree_work_s`
// until it is set up.
std::uint64_t star_bytes(std::uint32_t nodes, const LinkCost& link, double tree_work_s, std::uint64_t at_most);

// Until all n nodes have the result. Reduced whole in the best tree of width d, and broadcast in one alike while it grows:
// that adds depth L + S / B. And in slices at as many roots, each going around twice, to its root and from there to all:
//   4 L + the greater of 2 (n - 1) (L + g / B) for the way around and 2 (n - 1) / n S / B for the bytes
double allreduce_whole_seconds(std::uint32_t nodes, double bytes, const LinkCost& link);
double allreduce_slices_seconds(std::uint32_t nodes, std::uint32_t slices, double bytes, const LinkCost& link);

// The tree itself, numbered so that children come before their parent and the last node is the root: a source that arrives
// early is deep in the tree, and whatever is below it arrived before. children[i] are those of node i.
std::vector<std::vector<std::uint32_t>> tree_children(std::uint32_t nodes, std::uint32_t width);

}  // namespace hoplite
