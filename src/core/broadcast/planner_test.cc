#include "core/broadcast/planner.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/bytes.h"
#include "core/broadcast/ring_planner.h"
#include "core/broadcast/slice_planner.h"
#include "core/broadcast/two_trees_planner.h"

namespace hoplite {
namespace {

constexpr LinkCost kLink{.hop_s = 200e-6, .bytes_per_s = 125e6};
constexpr Time kPlanned{1'000'000};

class PlannerTest : public testing::Test {
 protected:
  Plan plan(const Demand& demand, std::size_t nodes) {
    std::vector<NodeRef> alive;
    for (std::uint64_t n = 1; n <= nodes; ++n) alive.push_back({NodeId{n}, 0});
    return make_plan(demand, {alive, same_for_all(kLink), limits_});
  }
  template <typename Planner> static bool is(const Plan& plan) {
    return dynamic_cast<const Planner*>(plan.planner.get()) != nullptr;
  }

  Limits limits_;
};

TEST_F(PlannerTest, AFewNodesShareAnObjectInOneSlice) {
  const Plan few = plan({.bytes = kGiB}, 8);
  EXPECT_EQ(few.slices, 1u);
  EXPECT_TRUE(is<SlicePlanner>(few));
}

TEST_F(PlannerTest, ACrowdGetsTwoTreesIfHopsMatter) {
  const Plan crowd = plan({.bytes = kMiB}, 1000);
  EXPECT_EQ(crowd.slices, 2u);
  EXPECT_TRUE(is<TwoTreesPlanner>(crowd));
  EXPECT_TRUE(is<SlicePlanner>(plan({.bytes = 1000 * kGiB}, 1000)));
  limits_.max_slices = 1;
  EXPECT_TRUE(is<SlicePlanner>(plan({.bytes = kMiB}, 1000)));
}

TEST_F(PlannerTest, TwoSlicesAreNotTwoTreesByAccident) {
  const Plan cut = plan({.bytes = kMiB, .slices = 2}, 8);
  EXPECT_EQ(cut.slices, 2u);
  EXPECT_TRUE(is<SlicePlanner>(cut));
  limits_.slice_bytes = kMiB / 2;
  const Plan by_size = plan({.bytes = kMiB}, 8);
  EXPECT_EQ(by_size.slices, 2u);
  EXPECT_TRUE(is<SlicePlanner>(by_size));
}

TEST_F(PlannerTest, CopiesThatAreCutStayCut) {
  EXPECT_TRUE(is<TwoTreesPlanner>(plan({.bytes = kMiB, .slices = 2}, 1000))) << "a home of before chose two trees";
  const Plan whole = plan({.bytes = kMiB, .slices = 1}, 1000);
  EXPECT_EQ(whole.slices, 1u);
  EXPECT_TRUE(is<SlicePlanner>(whole));
}

TEST_F(PlannerTest, SlicesThatComeIntoBeingApartFormARing) {
  const Plan ring = plan({.bytes = kMiB, .slices = 8, .striped = true}, 8);
  EXPECT_EQ(ring.slices, 8u);
  EXPECT_TRUE(is<RingPlanner>(ring));
}

TEST_F(PlannerTest, LimitsBoundTheNumberOfSlices) {
  limits_.slice_bytes = 1000;
  EXPECT_EQ(plan({.bytes = 2500}, 8).slices, 3u);
  EXPECT_EQ(plan({.bytes = kGiB}, 8).slices, limits_.max_slices);
  EXPECT_EQ(plan({.bytes = 0}, 8).slices, 1u);
}

// --- the planners themselves ---------------------------------------------------------------------------------------------

TEST(SlicePlanner, EverySliceHasAPlanOfItsOwn) {
  SlicePlanner planner(2, {64 * kMiB, same_for_all(kLink), 8});
  planner.add_root(NodeId{1});
  EXPECT_EQ(planner.choose(kPlanned, NodeId{2}, {}), std::vector<NodeId>(2, NodeId{1}));
  Want second;
  second.slices = {{1, 0, false}, {7, 0, false}};
  EXPECT_EQ(planner.choose(kPlanned, NodeId{3}, second), (std::vector<NodeId>{{}, NodeId{2}}));
  planner.remove(NodeId{1});
  planner.remove(NodeId{2});
  EXPECT_EQ(planner.choose(kPlanned, NodeId{4}, {}), std::vector<NodeId>(2));
}

TEST(SlicePlanner, AReceiverIsSentWhereItsLinkIsFast) {
  const auto far_from_one = [](NodeId from, NodeId) {
    return LinkCost{.hop_s = from == NodeId{1} ? 50e-3 : 50e-6, .bytes_per_s = 125e6};
  };
  SlicePlanner planner(1, {kMiB, far_from_one, 8});
  planner.add_root(NodeId{2});
  ASSERT_EQ(planner.choose(kPlanned, NodeId{3}, {}), std::vector<NodeId>{NodeId{2}});
  planner.add_root(NodeId{1});
  EXPECT_NE(planner.choose(kPlanned, NodeId{4}, {}), std::vector<NodeId>{NodeId{1}}) << "idle, but far";
}

TEST(TwoTreesPlanner, AnInnerNodeOfOneTreeIsALeafOfTheOther) {
  TwoTreesPlanner planner(Duration::ms(10));
  planner.add_root(NodeId{1});
  const std::vector<NodeId> first = planner.choose(kPlanned, NodeId{2}, {});
  ASSERT_EQ(first.size(), DoubleTree::kSlices);
  EXPECT_EQ(std::ranges::count(first, NodeId{1}), 1);
  EXPECT_EQ(std::ranges::count(first, NodeId{}), 1) << "a leaf is told to ask again";
  planner.remove(NodeId{1});
  EXPECT_EQ(planner.choose(kPlanned, NodeId{1}, {}).size(), DoubleTree::kSlices);
}

}  // namespace
}  // namespace hoplite
