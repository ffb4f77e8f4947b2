#include "core/broadcast/ring_planner.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace hoplite {
namespace {

NodeId member(std::uint64_t n) { return NodeId{n}; }

Want want_of(std::vector<std::uint32_t> slices, std::vector<NodeId> avoid = {}) {
  Want want;
  for (const std::uint32_t slice : slices) want.slices.push_back({slice, 0, false});
  want.avoid = std::move(avoid);
  return want;
}

class RingPlannerTest : public testing::Test {
 protected:
  RingPlannerTest() {
    for (const std::uint64_t n : {3, 1, 2, 4}) planner_.add_root(member(n));
  }
  std::vector<NodeId> ask(std::uint64_t receiver, const Want& want = {}) {
    return planner_.choose(Time{}, member(receiver), want);
  }

  RingPlanner planner_{4};
};

TEST_F(RingPlannerTest, EveryNodeOfTheRingGetsAllSlicesFromTheOneBeforeIt) {
  EXPECT_EQ(ask(3), std::vector<NodeId>(4, member(2)));
  EXPECT_EQ(ask(1), std::vector<NodeId>(4, member(4)));
}

TEST_F(RingPlannerTest, OnlySlicesThatAreAskedForHaveParents) {
  EXPECT_EQ(ask(2, want_of({1, 3})), (std::vector<NodeId>{{}, member(1), {}, member(1)}));
}

TEST_F(RingPlannerTest, ANodeThatIsAvoidedOrGoneIsLeftOut) {
  EXPECT_EQ(ask(3, want_of({0}, {member(2)}))[0], member(1));
  planner_.remove(member(2));
  EXPECT_EQ(ask(3, want_of({0}))[0], member(1));
  EXPECT_EQ(ask(3, want_of({0}, {member(1), member(4)}))[0], NodeId{});
}

TEST_F(RingPlannerTest, NodesWithoutASliceFormAChainThatTheRingFeeds) {
  const std::vector<NodeId> first = ask(9);
  EXPECT_TRUE(std::ranges::all_of(first, [](NodeId parent) { return parent >= member(1) && parent <= member(4); }));
  EXPECT_GT(std::ranges::count_if(first, [&](NodeId parent) { return parent != first[0]; }), 0) << "the ring shares it";
  EXPECT_EQ(ask(7), std::vector<NodeId>(4, member(9)));
  EXPECT_EQ(ask(8), std::vector<NodeId>(4, member(7)));
  EXPECT_EQ(ask(9), first) << "asking again changes nothing";
}

TEST_F(RingPlannerTest, AChainClosesWhereANodeLeavesIt) {
  for (const std::uint64_t n : {9, 7, 8}) ask(n);
  planner_.remove(member(7));
  EXPECT_EQ(ask(8), std::vector<NodeId>(4, member(9)));
  EXPECT_LE(ask(8, want_of({0}, {member(9)}))[0], member(4)) << "or the ring helps";
}

TEST_F(RingPlannerTest, ANodeThatFindsNoParentIsNobodysParent) {
  EXPECT_EQ(ask(9, want_of({0}, {member(1), member(2), member(3), member(4)}))[0], NodeId{});
  EXPECT_LE(ask(7, want_of({0}))[0], member(4));
}

TEST(RingPlanner, WithoutRootsNobodyHasAParent) {
  RingPlanner planner(2);
  EXPECT_EQ(planner.choose(Time{}, member(1), {}), std::vector<NodeId>(2));
}

}  // namespace
}  // namespace hoplite
