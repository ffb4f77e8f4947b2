#include "core/directory/version_memory.h"

#include <gtest/gtest.h>

#include "core/directory/test_names.h"

namespace hoplite {
namespace {

TEST(VersionMemory, ForgetsInTimeAndKeepsWhatWasAddedAgain) {
  VersionMemory memory(10);
  memory.add(named(1), 7, Time{100}, kOne.id);
  memory.add(named(2), 8, Time{110}, kOne.id);
  memory.add(named(1), 9, Time{200}, kOne.id);
  memory.expire(Time{150});
  EXPECT_EQ(memory.version_of(named(1)), 9u);
  EXPECT_FALSE(memory.contains(named(2)));
  memory.expire(Time{200});
  EXPECT_EQ(memory.size(), 0u);
  EXPECT_TRUE(memory.of_home(kOne.id).empty());
}

TEST(VersionMemory, RemembersTheNewerVersionAndForgetsWhatIsDeleted) {
  VersionMemory memory(10);
  memory.add(named(1), make_version(5, 7), Time{100}, kOne.id);
  memory.add(named(1), make_version(4, 7), Time{200}, kOne.id);
  EXPECT_EQ(memory.version_of(named(1)), make_version(5, 7));
  memory.forget(named(1), make_version(4, 9));
  EXPECT_TRUE(memory.contains(named(1)));
  memory.forget(named(1), make_version(5, 9));
  EXPECT_FALSE(memory.contains(named(1)));
  EXPECT_TRUE(memory.of_home(kOne.id).empty());
}

TEST(VersionMemory, HasABoundAndTheOldestGoFirst) {
  VersionMemory memory(10);
  for (int i = 0; i < 25; ++i) memory.add(named(i), 1, Time{i + 1}, kOne.id);
  EXPECT_EQ(memory.size(), 10u);
  EXPECT_FALSE(memory.contains(named(14)));
  EXPECT_TRUE(memory.contains(named(15)));
  EXPECT_EQ(memory.of_home(kOne.id).size(), 10u);
  // The same one again and again does not grow anything.
  for (int i = 0; i < 1000; ++i) memory.add(named(24), 1, Time{100 + i}, kOne.id);
  EXPECT_TRUE(memory.contains(named(24)));
}

TEST(VersionMemory, WhatLastsStaysUntilItIsForgotten) {
  VersionMemory memory(3, 2);
  memory.add(named(100), make_version(5, 1), Time::never(), kOne.id);
  memory.add(named(101), make_version(5, 1), Time::never(), kOther.id);
  memory.add(named(102), make_version(5, 1), Time::never(), kOne.id);
  EXPECT_FALSE(memory.contains(named(102))) << "there is no room for more";
  for (int i = 0; i < 10; ++i) memory.add(named(i), 1, Time{i + 1}, kOne.id);
  memory.add(named(100), make_version(6, 1), Time{3}, kOne.id);
  memory.expire(Time{1'000});
  EXPECT_EQ(memory.size(), 2u);
  EXPECT_EQ(memory.version_of(named(100)), make_version(6, 1));
  memory.forget_lasting([](const ObjectId&, const VersionMemory::Item& item) { return item.home == kOne.id; });
  EXPECT_FALSE(memory.contains(named(100)));
  EXPECT_TRUE(memory.contains(named(101)));
  memory.add(named(102), make_version(5, 1), Time::never(), kOne.id);
  EXPECT_TRUE(memory.contains(named(102)));
}

TEST(VersionMemory, FollowsTheHomes) {
  VersionMemory memory(100);
  for (int i = 0; i < 50; ++i) memory.add(named(i), 1, Time{1000}, kOne.id);
  memory.set_view({kOne, kOther}, {kOther.id}, {});
  for (int i = 0; i < 50; ++i) EXPECT_EQ(memory.at(named(i)).home, home_of(named(i), {kOne, kOther}).id);
  EXPECT_EQ(memory.of_home(kOne.id).size() + memory.of_home(kOther.id).size(), 50u);
  EXPECT_FALSE(memory.of_home(kOther.id).empty());
  memory.set_view({kOther}, {}, {kOne.id});
  EXPECT_EQ(memory.of_home(kOther.id).size(), 50u);
  EXPECT_TRUE(memory.of_home(kOne.id).empty());
}

}  // namespace
}  // namespace hoplite
