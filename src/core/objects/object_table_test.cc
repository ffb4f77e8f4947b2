#include "core/objects/object_table.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace hoplite {
namespace {

constexpr ObjectId kId{1, 1};
constexpr std::uint64_t kSize = 640;

class ObjectTableTest : public testing::Test {
 protected:
  Copy& add(CopyLife life) { return *table_.add(kId, 7, kSize, Alignment::kCacheLine, life); }
  // What is to be closed in the data plane.
  std::vector<CopyKey> collect() {
    std::vector<CopyKey> closed;
    table_.collect([&](CopyKey key) { closed.push_back(key); });
    table_.check_invariants();
    return closed;
  }
  std::uint64_t used() const { return table_.allocator().used(); }

  ObjectTable table_{64 * kKiB};
};

TEST_F(ObjectTableTest, MemoryIsFreedWhenTheCopyIsRetiredAndItsLastUserHasLetGo) {
  Copy& copy = add(CopyLife::kComplete);
  const CopyKey key = copy.key;
  table_.touch(copy);
  CopyUse view = table_.use(copy, CopyUser::kView);
  table_.become(copy, CopyLife::kRetired);
  collect();
  EXPECT_EQ(used(), kSize) << "a client still sees it";
  view = {};
  EXPECT_EQ(used(), kSize) << "housekeeping comes at the end of a step";
  collect();
  EXPECT_EQ(used(), 0u);
  EXPECT_EQ(table_.find(key), nullptr);
}

TEST_F(ObjectTableTest, WhatTheDataPlaneKnowsIsClosedThereFirst) {
  Copy& copy = add(CopyLife::kFetching);
  table_.opened(copy);
  table_.become(copy, CopyLife::kRetired);
  EXPECT_EQ(collect(), std::vector<CopyKey>{copy.key});
  EXPECT_EQ(collect(), std::vector<CopyKey>{}) << "once is enough";
  EXPECT_EQ(used(), kSize);
  table_.closed(copy);
  collect();
  EXPECT_EQ(used(), 0u);
}

TEST_F(ObjectTableTest, WhatASlotHoldsStaysOpen) {
  Copy& copy = add(CopyLife::kHidden);
  table_.opened(copy);
  CopyUse hold = table_.use(copy, CopyUser::kHold);
  CopyUse again = hold.again();
  hold = {};
  EXPECT_TRUE(collect().empty());
  again = {};
  EXPECT_EQ(collect().size(), 1u);
}

TEST_F(ObjectTableTest, AUseThatMovesIsCountedOnce) {
  Copy& copy = add(CopyLife::kWriting);
  CopyUse first = table_.use(copy, CopyUser::kWriter);
  CopyUse second = std::move(first);
  EXPECT_EQ(copy.users(CopyUser::kWriter), 1u);
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): moved from means nobody's
  first = std::move(second);
  EXPECT_EQ(copy.users(CopyUser::kWriter), 1u);
  first = {};
  EXPECT_TRUE(copy.is_idle());
}

TEST_F(ObjectTableTest, OnlyCompleteCopiesThatAreNotPrimaryCanBeEvicted) {
  Copy& primary = add(CopyLife::kWriting);
  primary.primary = true;
  table_.become(primary, CopyLife::kComplete);
  Copy& fetched = add(CopyLife::kFetching);
  EXPECT_TRUE(table_.eviction_candidates({}, kSize).empty());
  table_.become(fetched, CopyLife::kComplete);
  EXPECT_EQ(table_.eviction_candidates({}, kSize), std::vector<CopyKey>{fetched.key});
  EXPECT_EQ(table_.pinned_bytes(), kSize);
  const CopyUse view = table_.use(fetched, CopyUser::kView);
  EXPECT_TRUE(table_.eviction_candidates({}, kSize).empty()) << "somebody reads it";
  EXPECT_EQ(table_.pinned_bytes(), 2 * kSize);
}

TEST_F(ObjectTableTest, TheLeastRecentlyUsedGoesFirst) {
  Copy& older = add(CopyLife::kComplete);
  Copy& newer = add(CopyLife::kComplete);
  table_.touch(older);
  table_.touch(newer);
  table_.touch(older);
  EXPECT_EQ(table_.eviction_candidates({}, 1), std::vector<CopyKey>{newer.key});
  newer.evict_asked = true;
  EXPECT_TRUE(table_.eviction_candidates({}, 1).empty()) << "its room is on the way";
}

TEST_F(ObjectTableTest, WhatWasAddedInVainIsFreeAtOnce) {
  table_.take_back(add(CopyLife::kHidden));
  EXPECT_EQ(used(), 0u);
  EXPECT_FALSE(table_.has_noted());
}

TEST_F(ObjectTableTest, AStripedTargetIsOneOfWhichOthersMakeParts) {
  Copy& copy = add(CopyLife::kHidden);
  table_.become(copy, CopyLife::kCombining);
  copy.cut_into(2);
  EXPECT_EQ(copy.slices[1].valid.slice(), slice_range(kSize, 2, 1));
  copy.slices[0].combined = true;
  EXPECT_TRUE(copy.is_striped());
  copy.slices[1].combined = true;
  EXPECT_FALSE(copy.is_striped());
  EXPECT_EQ(copy.state(), CopyState::kWriting);
}

using ObjectTableDeathTest = ObjectTableTest;

TEST_F(ObjectTableDeathTest, ACopyDoesNotComeBackToLife) {
  Copy& copy = add(CopyLife::kComplete);
  table_.become(copy, CopyLife::kRetired);
  EXPECT_DEATH(table_.become(copy, CopyLife::kComplete), "may_become");
}

TEST_F(ObjectTableDeathTest, NothingIsOpenedTwice) {
  Copy& copy = add(CopyLife::kFetching);
  table_.opened(copy);
  EXPECT_DEATH(table_.opened(copy), "kNotOpen");
}

}  // namespace
}  // namespace hoplite
