#include "core/reduce/cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace hoplite {
namespace {

TEST(ReduceCost, DepthOfTrees) {
  EXPECT_EQ(tree_depth(1, 1), 0u);
  EXPECT_EQ(tree_depth(8, 1), 7u);
  EXPECT_EQ(tree_depth(8, 7), 1u);
  EXPECT_EQ(tree_depth(7, 2), 2u);
  EXPECT_EQ(tree_depth(8, 2), 3u);
}

TEST(ReduceCost, LargeObjectsGoThroughChainsAndSmallOnesToStars) {
  const LinkCost link{200e-6, 62.5e6};  // 500 Mbit/s
  EXPECT_EQ(best_width(8, 32 << 20, link), 1u);
  EXPECT_EQ(best_width(8, 1 << 20, link), 1u);
  EXPECT_EQ(best_width(8, 1 << 10, link), 7u);
  EXPECT_EQ(best_width(1, 1 << 20, link), 1u);
  const std::uint32_t between = best_width(64, 16 << 10, link);
  EXPECT_GT(between, 1u);
  EXPECT_LT(between, 63u);
}

// The formulas of cost.h, for trees that are full.
TEST(ReduceCost, Formulas) {
  const double hop = 1e-3, rate = 1e6, bytes = 1e5, grain = 1e3;
  const LinkCost link{hop, rate, grain};
  EXPECT_EQ(reduce_seconds(1, 1, bytes, link), 0);
  EXPECT_NEAR(reduce_seconds(2, 1, bytes, link), 2 * hop + bytes / rate, 1e-9);
  EXPECT_NEAR(reduce_seconds(8, 1, bytes, link), 2 * hop + 7 * (hop + grain / rate) + (bytes - grain) / rate, 1e-9);
  EXPECT_NEAR(reduce_seconds(15, 2, bytes, link), 2 * hop + 3 * (hop + 2 * grain / rate) + 2 * (bytes - grain) / rate,
              1e-9);
  EXPECT_NEAR(reduce_seconds(8, 7, bytes, link), 2 * hop + 7 * bytes / rate, 1e-9);
  // One grain is not cut.
  EXPECT_NEAR(reduce_seconds(15, 2, grain / 2, link), 2 * hop + 3 * (hop + grain / rate), 1e-9);
}

// Of the root's two branches one is a single node, whose bytes come while the other node waits for those below it.
TEST(ReduceCost, BranchesThatAreLessDeepComeEarlier) {
  const double hop = 1e-3, rate = 1e6, bytes = 500;
  EXPECT_NEAR(reduce_seconds(4, 2, bytes, {hop, rate, bytes}), 4 * hop + 2 * bytes / rate, 1e-9);
}

TEST(ReduceCost, UpToStarBytesSourcesAreSentAlong) {
  const LinkCost link{200e-6, 62.5e6};
  EXPECT_EQ(star_bytes(1, link, 0, 1 << 20), 1u << 20);
  EXPECT_EQ(star_bytes(2, link, 0, 1 << 20), 1u << 20);
  for (const std::uint32_t nodes : {3u, 8u, 64u}) {
    const auto gain = [&](std::uint64_t size) {
      const auto bytes = static_cast<double>(size);
      const double tree = reduce_seconds(nodes, best_width(nodes, bytes, link), bytes, link);
      return tree - (nodes - 1) * bytes / link.bytes_per_s;
    };
    const std::uint64_t edge = star_bytes(nodes, link, 0, 1 << 20);
    EXPECT_GE(gain(edge), 0) << nodes;
    EXPECT_LT(gain(edge + 1), 0) << nodes;
    const std::uint64_t with_work = star_bytes(nodes, link, 1e-3, 1 << 20);
    EXPECT_GE(gain(with_work), -1e-3) << nodes;
    EXPECT_LT(gain(with_work + 1), -1e-3) << nodes;
    EXPECT_EQ(star_bytes(nodes, link, 0, edge / 2), edge / 2) << nodes;
  }
}

// With thousands of nodes not all widths are tried.
TEST(ReduceCost, TheBestWidthIsNearlyTheBestOfAll) {
  const LinkCost link{200e-6, 62.5e6};
  for (const std::uint32_t nodes : {9u, 64u, 500u}) {
    for (const double bytes : {100.0, 1e3, 1e4, 1e5}) {
      double least = reduce_seconds(nodes, 1, bytes, link);
      for (std::uint32_t width = 2; width < nodes; ++width)
        least = std::min(least, reduce_seconds(nodes, width, bytes, link));
      EXPECT_LE(reduce_seconds(nodes, best_width(nodes, bytes, link), bytes, link), 1.02 * least)
          << nodes << " " << bytes;
    }
  }
}

TEST(ReduceCost, SlicesReachTheRingsBound) {
  const LinkCost link{0, 1e6, 0};
  EXPECT_NEAR(allreduce_slices_seconds(8, 8, 8e6, link), 2 * 8.0 * 7 / 8, 1e-9);
  EXPECT_NEAR(allreduce_whole_seconds(8, 8e6, link), 16.0, 1e-9);
}

// As hoplite-sim --scale --collective allreduce shows for --method whole and slices, at 500 Mbit/s.
TEST(ReduceCost, SlicesAreForLargeObjects) {
  const auto slices_are_faster = [](std::uint32_t nodes, double bytes, double hop_s) {
    const LinkCost link{hop_s, 62.5e6};
    return allreduce_slices_seconds(nodes, nodes, bytes, link) < allreduce_whole_seconds(nodes, bytes, link);
  };
  EXPECT_FALSE(slices_are_faster(8, 16 << 10, 200e-6));
  EXPECT_TRUE(slices_are_faster(8, 256 << 10, 200e-6));
  EXPECT_FALSE(slices_are_faster(8, 256 << 10, 2e-3));
  EXPECT_TRUE(slices_are_faster(8, 1 << 20, 2e-3));
  EXPECT_FALSE(slices_are_faster(32, 64 << 10, 200e-6));
  EXPECT_TRUE(slices_are_faster(32, 1 << 20, 200e-6));
  EXPECT_FALSE(slices_are_faster(32, 1 << 20, 2e-3));
  EXPECT_TRUE(slices_are_faster(32, 4 << 20, 2e-3));
}

// Children before parents, everybody in it once, nobody wider or deeper than said.
TEST(ReduceCost, TreesAreTrees) {
  for (std::uint32_t nodes = 1; nodes <= 40; ++nodes) {
    for (std::uint32_t width = 1; width < 10; ++width) {
      const auto children = tree_children(nodes, width);
      std::set<std::uint32_t> seen;
      std::vector<std::uint32_t> height(nodes, 0);
      for (std::uint32_t node = 0; node < nodes; ++node) {
        EXPECT_LE(children[node].size(), width);
        for (const std::uint32_t child : children[node]) {
          EXPECT_LT(child, node);
          EXPECT_TRUE(seen.insert(child).second);
          height[node] = std::max(height[node], height[child] + 1);
        }
      }
      EXPECT_EQ(seen.size(), nodes - 1);
      EXPECT_EQ(height[nodes - 1], tree_depth(nodes, width)) << nodes << " " << width;
    }
  }
}

}  // namespace
}  // namespace hoplite
