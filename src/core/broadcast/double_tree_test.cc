#include "core/broadcast/double_tree.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace hoplite {
namespace {

constexpr Duration kPatience = Duration::ms(50);
constexpr Time kNow{1'000'000};

class DoubleTreeTest : public testing::Test {
 protected:
  // Everybody asks for both halves, in order; those who were told to wait ask again until all have both.
  void all_ask(std::uint64_t first, std::uint64_t last) {
    std::vector<DoubleTree::Receiver> waiting;
    for (std::uint64_t n = first; n <= last; ++n)
      for (std::uint32_t slice = 0; slice < DoubleTree::kSlices; ++slice)
        if (!tree_.choose(kNow, {NodeId{n}, slice, false, {}})) waiting.push_back({NodeId{n}, slice, false, {}});
    for (const Duration waited : {kPatience, kPatience * 4})
      std::erase_if(waiting, [&](const auto& receiver) { return tree_.choose(kNow + waited, receiver).has_value(); });
    ASSERT_TRUE(waiting.empty());
  }
  // Hops to a root; the depths along the way must fall.
  std::uint32_t hops(NodeId at, std::uint32_t slice) {
    std::uint32_t count = 0;
    for (NodeId up = tree_.parent_of(at, slice); !up.is_nil(); at = up, up = tree_.parent_of(at, slice), ++count)
      EXPECT_LT(tree_.depth_of(up, slice), tree_.depth_of(at, slice));
    return count;
  }

  DoubleTree tree_{kPatience};
};

TEST_F(DoubleTreeTest, NobodySendsMoreThanItReceivesAndAllAreNear) {
  constexpr std::uint64_t kNodes = 10'000;
  tree_.add_root(NodeId{1});
  all_ask(2, kNodes);
  std::uint32_t overloaded = 0;
  std::uint32_t deepest = 0;
  for (std::uint64_t n = 1; n <= kNodes; ++n) {
    overloaded += tree_.children_of(NodeId{n}) > DoubleTree::kSlices;
    for (std::uint32_t slice = 0; slice < DoubleTree::kSlices; ++slice)
      deepest = std::max(deepest, hops(NodeId{n}, slice));
  }
  EXPECT_EQ(overloaded, 0u);
  EXPECT_LE(deepest, 16u);
}

TEST_F(DoubleTreeTest, TheOnlyReceiverGetsBothHalvesFromTheSource) {
  tree_.add_root(NodeId{1});
  all_ask(2, 2);
  EXPECT_EQ(tree_.parent_of(NodeId{2}, 0), NodeId{1});
  EXPECT_EQ(tree_.parent_of(NodeId{2}, 1), NodeId{1});
}

TEST_F(DoubleTreeTest, AnOrphanIsAttachedAboveItself) {
  tree_.add_root(NodeId{1});
  all_ask(2, 40);
  // The one with most below it.
  NodeId dead = NodeId{2};
  for (std::uint64_t n = 2; n <= 40; ++n)
    if (tree_.children_of(NodeId{n}) > tree_.children_of(dead)) dead = NodeId{n};
  std::vector<std::pair<NodeId, std::uint32_t>> orphans;
  for (std::uint64_t n = 2; n <= 40; ++n)
    for (std::uint32_t slice = 0; slice < DoubleTree::kSlices; ++slice)
      if (tree_.parent_of(NodeId{n}, slice) == dead) orphans.emplace_back(NodeId{n}, slice);
  ASSERT_FALSE(orphans.empty());
  tree_.remove(dead);
  for (const auto& [orphan, slice] : orphans) {
    EXPECT_TRUE(tree_.parent_of(orphan, slice).is_nil());
    ASSERT_TRUE(tree_.choose(kNow, {orphan, slice, true, {dead}}));
    EXPECT_NE(tree_.parent_of(orphan, slice), dead);
    hops(orphan, slice);
  }
}

TEST_F(DoubleTreeTest, TheAvoidedAreNotProposedAndTheSuspectComeLast) {
  tree_.add_root(NodeId{1});
  EXPECT_FALSE(tree_.choose(kNow, {NodeId{2}, 0, false, {NodeId{1}}}));
  tree_.add_root(NodeId{3});
  EXPECT_EQ(tree_.choose(kNow, {NodeId{4}, 1, false, {}}), NodeId{3}) << "nobody has complained about it";
}

TEST_F(DoubleTreeTest, WhoeverHasFinishedServesBothHalves) {
  tree_.add_root(NodeId{1});
  all_ask(2, 3);
  tree_.add_root(NodeId{2});
  tree_.remove(NodeId{1});
  all_ask(3, 3);
  EXPECT_EQ(tree_.parent_of(NodeId{3}, 0), NodeId{2});
  EXPECT_EQ(tree_.parent_of(NodeId{3}, 1), NodeId{2});
}

TEST_F(DoubleTreeTest, RemovingEveryReceiverLeavesTheRootIdle) {
  tree_.add_root(NodeId{1});
  all_ask(2, 50);
  for (std::uint64_t n = 2; n <= 50; ++n) tree_.remove(NodeId{n});
  EXPECT_EQ(tree_.size(), 1u);
  EXPECT_EQ(tree_.children_of(NodeId{1}), 0u);
}

}  // namespace
}  // namespace hoplite
