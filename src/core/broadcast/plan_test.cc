#include "core/broadcast/plan.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace hoplite {
namespace {

NodeId node(std::uint64_t n) { return NodeId{n}; }

BroadcastPlan plan_of(std::uint64_t bytes) {
  return BroadcastPlan({.bytes = bytes, .rate = 125'000'000, .hop = Duration::us(200), .max_children = 8});
}

int depth_of(const BroadcastPlan& plan, NodeId receiver) {
  int depth = 0;
  for (NodeId at = receiver; !plan.parent_of(at).is_nil(); at = plan.parent_of(at)) ++depth;
  return depth;
}

TEST(BroadcastPlan, SimultaneousReceiversOfALargeObjectFormAChain) {
  BroadcastPlan plan = plan_of(128 << 20);
  plan.add_root(node(1));
  for (std::uint64_t n = 2; n <= 16; ++n) {
    const auto parent = plan.choose(Time{1000}, {node(n), 0, false, {}});
    ASSERT_TRUE(parent.has_value());
    EXPECT_EQ(*parent, node(n - 1));
  }
}

TEST(BroadcastPlan, ATinyObjectIsSentThroughAShallowTree) {
  BroadcastPlan plan = plan_of(1000);
  plan.add_root(node(1));
  for (std::uint64_t n = 2; n <= 64; ++n) ASSERT_TRUE(plan.choose(Time{1000}, {node(n), 0, false, {}}));
  int deepest = 0;
  for (std::uint64_t n = 2; n <= 64; ++n) deepest = std::max(deepest, depth_of(plan, node(n)));
  EXPECT_LE(deepest, 4);
}

TEST(BroadcastPlan, ALateReceiverTakesAnIdleCompleteHolder) {
  BroadcastPlan plan = plan_of(128 << 20);
  plan.add_root(node(1));
  ASSERT_EQ(plan.choose(Time{1}, {node(2), 0, false, {}}), node(1));
  plan.add_root(node(2));  // has finished: both are idle
  const auto third = plan.choose(Time{Duration::s(3).ns}, {node(3), 0, false, {}});
  const auto fourth = plan.choose(Time{Duration::s(3).ns}, {node(4), 0, false, {}});
  ASSERT_TRUE(third && fourth);
  EXPECT_NE(*third, *fourth);
}

TEST(BroadcastPlan, WhoGoesOnWithAPartialCopyIsSentToSomebodyAhead) {
  BroadcastPlan plan = plan_of(128 << 20);
  plan.add_root(node(1));
  for (std::uint64_t n = 2; n <= 5; ++n) plan.choose(Time{1000}, {node(n), 0, false, {}});
  // 3 loses its parent 2 and has 4 below it: only 1 and 2 are ahead, and 2 is avoided.
  plan.remove(node(2));
  EXPECT_EQ(plan.choose(Time{2000}, {node(3), 1000, true, {node(2)}}), node(1));
}

TEST(BroadcastPlan, TheOrphanOfARelayThatMayBeDeadTakesItsPlace) {
  BroadcastPlan plan = plan_of(128 << 20);
  plan.add_root(node(1));
  for (std::uint64_t n = 2; n <= 6; ++n) plan.choose(Time{1000}, {node(n), 0, false, {}});
  // 4 cannot get bytes from 3 any more; whether 3 is dead, nobody has told. 1 has a child that it serves, 2 has none.
  EXPECT_EQ(plan.choose(Time{2000}, {node(4), 1000, true, {node(3)}}), node(2));
  EXPECT_EQ(plan.children_of(node(2)), 1u);
  plan.remove(node(3));
  EXPECT_EQ(plan.children_of(node(2)), 1u);
}

TEST(BroadcastPlan, WhoHasFinishedCanHelpWhoeverIsBehind) {
  BroadcastPlan plan = plan_of(128 << 20);
  plan.add_root(node(1));
  for (std::uint64_t n = 2; n <= 5; ++n) plan.choose(Time{1000}, {node(n), 0, false, {}});
  plan.add_root(node(5));  // the last one got it from elsewhere
  plan.remove(node(1));
  EXPECT_EQ(plan.choose(Time{2000}, {node(2), 1000, true, {}}), node(5));
}

TEST(BroadcastPlan, NobodyIsItsOwnParentAndTheAvoidedAreNotProposed) {
  BroadcastPlan plan = plan_of(1 << 20);
  plan.add_root(node(1));
  EXPECT_FALSE(plan.choose(Time{1}, {node(2), 0, false, {node(1)}}).has_value());
  EXPECT_FALSE(plan.choose(Time{1}, {node(1), 0, false, {}}).has_value());
}

TEST(BroadcastPlan, AHolderThatFellSilentIsTheLastResort) {
  BroadcastPlan plan = plan_of(128 << 20);
  plan.add_root(node(1));
  plan.add_root(node(2));
  ASSERT_TRUE(plan.choose(Time{2}, {node(3), 0, false, {node(1)}}));
  EXPECT_EQ(plan.parent_of(node(3)), node(2));
  EXPECT_NE(plan.choose(Time{3}, {node(4), 0, false, {}}), node(1));
}

TEST(BroadcastPlan, ASlowSenderGetsFewerChildren) {
  BroadcastPlan plan = plan_of(128 << 20);
  plan.add_root(node(1));
  plan.add_root(node(2));
  plan.choose(Time{1}, {node(3), 0, false, {}});
  const NodeId slow = plan.parent_of(node(3));
  plan.measured(slow, 10'000'000);
  plan.add_root(node(3));
  EXPECT_NE(plan.choose(Time{6}, {node(4), 0, false, {}}), slow);
}

TEST(BroadcastPlan, RemovingEveryReceiverLeavesTheRootIdle) {
  BroadcastPlan plan = plan_of(1 << 20);
  plan.add_root(node(1));
  for (std::uint64_t n = 2; n <= 20; ++n) plan.choose(Time{1}, {node(n), 0, false, {}});
  for (std::uint64_t n = 2; n <= 20; ++n) plan.remove(node(n));
  EXPECT_EQ(plan.size(), 1u);
  EXPECT_EQ(plan.children_of(node(1)), 0u);
}

TEST(BroadcastPlan, TwoThatAreEquallyFarAreNoParentsForEachOther) {
  BroadcastPlan plan = plan_of(128 << 20);
  plan.add_root(node(1));
  plan.add_root(node(2));
  const auto first = plan.choose(Time{1}, {node(3), 0, false, {}});
  const auto second = plan.choose(Time{1}, {node(4), 0, false, {}});
  ASSERT_TRUE(first && second);
  ASSERT_NE(*first, *second);
  EXPECT_EQ(plan.choose(Time{1}, {node(3), 1000, false, {node(1), node(2)}}), std::nullopt);
}

}  // namespace
}  // namespace hoplite
