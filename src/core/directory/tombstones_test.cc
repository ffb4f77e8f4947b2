#include "core/directory/tombstones.h"

#include <gtest/gtest.h>

#include "core/directory/absences.h"
#include "core/directory/homes.h"
#include "core/directory/test_names.h"

namespace hoplite {
namespace {

constexpr Time kLater{1'000'000};

TEST(Tombstones, CoverTheVersionAndOlderOnes) {
  Tombstones stones(10);
  EXPECT_FALSE(stones.covers(named(1), make_version(5, 7)));
  stones.bury(named(1), make_version(5, 7), kLater, kOne.id);
  EXPECT_TRUE(stones.covers(named(1), make_version(5, 7)));
  EXPECT_TRUE(stones.covers(named(1), make_version(5, 99))) << "of the same generation: it came too late";
  EXPECT_TRUE(stones.covers(named(1), make_version(4, 1)));
  EXPECT_FALSE(stones.covers(named(1), make_version(6, 1)));
  stones.bury(named(1), make_version(3, 1), kLater, kOne.id);
  EXPECT_TRUE(stones.covers(named(1), make_version(5, 7))) << "older news change nothing";
  const ObjectId minted{7, 1};
  stones.bury(minted, 0, kLater, kOne.id);
  EXPECT_TRUE(stones.covers(minted, make_version(1'000, 1)));
}

TEST(Tombstones, ThoseThatNobodyNeedsAreFewAndGoInTime) {
  Tombstones stones(10);
  for (int i = 0; i < 25; ++i) stones.bury(named(i), make_version(i + 1, 1), Time{100 + i}, kOne.id);
  EXPECT_EQ(stones.size(), 10u);
  EXPECT_FALSE(stones.contains(named(14)));
  EXPECT_TRUE(stones.contains(named(15)));
  // The same one again and again does not grow anything, and lives on.
  for (int i = 0; i < 1000; ++i) stones.bury(named(24), make_version(100 + i, 1), Time{200 + i}, kOne.id);
  stones.check_invariants();
  EXPECT_EQ(stones.size(), 1u);
  stones.expire(Time{1'198});
  EXPECT_TRUE(stones.contains(named(24)));
  stones.expire(Time{1'199});
  EXPECT_EQ(stones.size(), 0u);
  EXPECT_TRUE(stones.of_home(kOne.id).empty());
}

TEST(Tombstones, WhatAnAbsentMemberMayHaveIsKeptUntilItIsBack) {
  Tombstones stones(10);
  stones.set_horizon(20);
  for (int i = 0; i < 100; ++i) stones.bury(named(i), make_version(i + 1, 1), Time{100}, kOne.id);
  stones.expire(Time{200});
  EXPECT_EQ(stones.size(), 20u) << "it left at 20, and has nothing that was put later";
  EXPECT_TRUE(stones.contains(named(19)));
  EXPECT_FALSE(stones.contains(named(20)));
  stones.check_invariants();
  stones.set_horizon(5);
  EXPECT_EQ(stones.size(), 5u);
  stones.bury(named(2), make_version(30, 1), Time{300}, kOne.id);  // put again, and deleted again
  stones.expire(Time{300});
  EXPECT_FALSE(stones.contains(named(2)));
  stones.set_horizon(0);
  EXPECT_EQ(stones.size(), 0u);
}

TEST(Tombstones, WhatWasNotConfirmedIsKept) {
  Tombstones stones(2);
  stones.bury(named(0), make_version(1, 1), Time{100}, kOne.id);
  stones.hold(named(0));
  for (int i = 1; i < 10; ++i) stones.bury(named(i), make_version(2, 1), Time{100}, kOne.id);
  EXPECT_TRUE(stones.contains(named(0)));
  stones.check_invariants();
  stones.let_go(named(0));
  EXPECT_FALSE(stones.contains(named(0)));
  EXPECT_EQ(stones.size(), 2u);
}

// 5,000 puts and deletes in a second for ten minutes, one node away for five of them; one in 100 of that, here.
TEST(Tombstones, MemoryIsFlatWhileAMemberIsAway) {
  Limits limits;
  limits.max_tombstones = 1'000;
  Tombstones stones(limits.max_tombstones);
  Absences absences(limits);
  std::size_t most = 0;
  int next = 0;
  for (int second = 0; second < 600; ++second) {
    const Time now = Time{} + Duration::s(second);
    if (second == 150) absences.left(now, second * 1'000, {NodeId{9}, 0}, {"10.0.0.9", 1});
    if (second == 450) absences.joined(now, {NodeId{9}, 1}, {"10.0.0.9", 1});
    absences.expire(now, {3, NodeId{1}});
    stones.set_horizon(absences.horizon());
    for (int i = 0; i < 50; ++i)
      stones.bury(named(next++), make_version(second * 1'000 + i, 1), now + limits.tombstone_life, kOne.id);
    most = std::max(most, stones.size());
  }
  // What was put in the ten seconds that clocks may differ by; and it had been put shortly before.
  EXPECT_LE(most, 1'000u + 2'000u);
  EXPECT_GT(stones.kept(), 0u) << "it may yet have to tell what it has";
  absences.expire(Time{} + Duration::s(450 + 600), {3, NodeId{1}});
  stones.set_horizon(absences.horizon());
  EXPECT_EQ(stones.kept(), 0u);
}

TEST(Tombstones, FollowTheHomes) {
  Tombstones stones(100);
  for (int i = 0; i < 50; ++i) stones.bury(named(i), make_version(1, 1), kLater, kOne.id);
  stones.set_view({kOne, kOther}, {kOther.id}, {});
  for (int i = 0; i < 50; ++i) EXPECT_EQ(stones.at(named(i)).home, home_of(named(i), {kOne, kOther}).id);
  EXPECT_EQ(stones.of_home(kOne.id).size() + stones.of_home(kOther.id).size(), 50u);
  stones.set_view({kOther}, {}, {kOne.id});
  EXPECT_EQ(stones.of_home(kOther.id).size(), 50u);
}

TEST(Absences, WhoLeftAndCameBackCountsAsAwayForAWhile) {
  Limits limits;
  Absences absences(limits);
  EXPECT_EQ(absences.horizon(), 0u);
  absences.left(Time{}, 100'000, {NodeId{5}, 0}, {"a", 1});
  EXPECT_EQ(absences.horizon(), 110'000u) << "with the margin for clocks";
  const Time back = Time{} + Duration::s(60);
  absences.joined(back, {NodeId{5}, 1}, {"a", 1});
  absences.expire(back + limits.tombstone_life + Duration{-1}, {2, NodeId{1}});
  EXPECT_FALSE(absences.empty());
  absences.expire(back + limits.tombstone_life, {2, NodeId{1}});
  EXPECT_TRUE(absences.empty());
  EXPECT_EQ(absences.forgotten(NodeId{5}), nullptr);
}

TEST(Absences, WhoseAddressIsTakenIsGoneForGood) {
  Limits limits;
  Absences absences(limits);
  absences.left(Time{}, 100, {NodeId{5}, 0}, {"a", 1});
  absences.joined(Time{}, {NodeId{6}, 0}, {"a", 1});
  EXPECT_TRUE(absences.empty());
}

TEST(Absences, AwayForTooLongIsForgottenAndRemembered) {
  Limits limits;
  Absences absences(limits);
  absences.left(Time{}, 100, {NodeId{5}, 0}, {"a", 1});
  absences.left(Time{} + Duration::s(1), 200, {NodeId{6}, 0}, {"b", 1});
  absences.expire(Time{} + limits.absent_life, {3, NodeId{1}});
  ASSERT_NE(absences.forgotten(NodeId{5}), nullptr);
  EXPECT_EQ(absences.forgotten(NodeId{5})->left, 100u);
  EXPECT_EQ(absences.forgotten(NodeId{5})->side.members, 3u);
  EXPECT_EQ(absences.forgotten(NodeId{6}), nullptr);
  EXPECT_EQ(absences.forget_oldest({3, NodeId{1}}), NodeId{6}) << "there is no room for what it may have";
  EXPECT_EQ(absences.forget_oldest({3, NodeId{1}}), std::nullopt);
}

TEST(Absences, OfTwoSidesThatHaveForgottenEachOtherTheLargerOneStays) {
  EXPECT_TRUE((Side{3, NodeId{9}}.stays_before({2, NodeId{1}})));
  EXPECT_FALSE((Side{2, NodeId{1}}.stays_before({3, NodeId{9}})));
  EXPECT_TRUE((Side{2, NodeId{1}}.stays_before({2, NodeId{2}})));
  EXPECT_FALSE((Side{2, NodeId{2}}.stays_before({2, NodeId{1}})));
}

}  // namespace
}  // namespace hoplite
