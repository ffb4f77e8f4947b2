#include "core/agent/pulls.h"

#include <gtest/gtest.h>

namespace hoplite {
namespace {

constexpr ObjectId kPulled{1, 1};
constexpr SliceRange kRange{0, 1000};
constexpr NodeRef kParent{NodeId{5}, 0};

class PullsTest : public testing::Test {
 protected:
  PullsTest() {
    copy_ = table_.add(kPulled, 7, kRange.end, Alignment::kCacheLine, CopyLife::kFetching);
    pulls_.set_owner(copy_->key, Pulls::FetchOf{kPulled});
  }
  effect::StartPull start(std::uint64_t offset = 0) {
    Effects out;
    PullRequest pull;
    pull.id = kPulled;
    pull.offset = offset;
    pulls_.start(table_.use(*copy_, CopyUser::kPull), {kParent, {}, pull}, out);
    pulls_.check_invariants();
    return std::get<effect::StartPull>(out.at(0));
  }
  std::optional<Pulls::Ended> end(TransferId transfer, PullEnd how, std::uint64_t front) {
    const auto ended = pulls_.on_ended({transfer, how, ValidBytes(kRange, front)});
    pulls_.check_invariants();
    return ended;
  }
  void fall_silent(TransferId transfer) {
    Effects out;
    pulls_.on_silent(transfer, out);
    EXPECT_EQ(std::get<effect::CancelPull>(out.at(0)).transfer, transfer);
  }

  Limits limits_;
  ObjectTable table_{kMiB};
  Copy* copy_ = nullptr;
  Pulls pulls_{limits_};
};

TEST_F(PullsTest, TheCopyIsUsedUntilThePullHasEnded) {
  const TransferId transfer = start().pull.transfer;
  EXPECT_TRUE(pulls_.is_running(copy_->key, 0));
  EXPECT_EQ(copy_->users(CopyUser::kPull), 1u);
  const auto ended = end(transfer, PullEnd::kComplete, kRange.end);
  ASSERT_TRUE(ended);
  EXPECT_EQ(std::get<Pulls::FetchOf>(ended->owner).id, kPulled);
  EXPECT_EQ(ended->parent, kParent);
  EXPECT_EQ(ended->failures, 0u);
  EXPECT_TRUE(copy_->is_idle());
  EXPECT_TRUE(pulls_.empty());
}

TEST_F(PullsTest, FailuresCountUntilAParentAccepts) {
  EXPECT_EQ(end(start().pull.transfer, PullEnd::kRefused, 0)->failures, 1u);
  EXPECT_EQ(end(start().pull.transfer, PullEnd::kRefused, 0)->failures, 2u);
  const TransferId third = start().pull.transfer;
  EXPECT_TRUE(pulls_.on_accepted(third));
  EXPECT_EQ(end(third, PullEnd::kConnectionLost, 10)->failures, 1u);
}

TEST_F(PullsTest, TheFirstRetriesAreImmediateAndPausesAreBounded) {
  EXPECT_EQ(pulls_.pause_after(limits_.quick_retries), Duration{});
  EXPECT_EQ(pulls_.pause_after(limits_.quick_retries + 1), limits_.retry_backoff * (limits_.quick_retries + 1));
  EXPECT_EQ(pulls_.pause_after(1'000'000), limits_.retry_backoff * limits_.slowest_retry);
}

TEST_F(PullsTest, SilenceMakesPatientUntilAByteArrives) {
  const effect::StartPull first = start();
  EXPECT_EQ(first.patience, limits_.stall_after);
  fall_silent(first.pull.transfer);
  end(first.pull.transfer, PullEnd::kCancelled, 0);
  const effect::StartPull second = start();
  EXPECT_EQ(second.patience, limits_.stall_after * 2);
  end(second.pull.transfer, PullEnd::kAborted, 1);
  EXPECT_EQ(start(1).patience, limits_.stall_after);
}

TEST_F(PullsTest, PatienceIsBounded) {
  for (std::uint32_t i = 0; i < limits_.stall_doublings + 3; ++i) {
    const TransferId transfer = start().pull.transfer;
    fall_silent(transfer);
    end(transfer, PullEnd::kCancelled, 0);
  }
  EXPECT_EQ(start().patience, limits_.stall_after * (std::int64_t{1} << limits_.stall_doublings));
}

TEST_F(PullsTest, AnInputHasNobodyElseToBePulledFrom) {
  pulls_.set_owner(copy_->key, Pulls::InputOf{{kPulled, 3}, 1});
  EXPECT_EQ(start().patience, limits_.stall_after * limits_.input_stalls);
}

TEST_F(PullsTest, ARunningPullGoesToTheNewOwner) {
  const TransferId transfer = start().pull.transfer;
  pulls_.set_owner(copy_->key, Pulls::InputOf{{kPulled, 3}, 1});
  EXPECT_EQ(std::get<Pulls::InputOf>(end(transfer, PullEnd::kComplete, kRange.end)->owner).input, 1u);
}

TEST_F(PullsTest, WhatNobodyOwnsAnyMoreEndsWithoutAWord) {
  const TransferId transfer = start().pull.transfer;
  pulls_.forget(copy_->key);
  EXPECT_FALSE(pulls_.on_accepted(transfer));
  EXPECT_EQ(copy_->users(CopyUser::kPull), 1u);
  EXPECT_FALSE(end(transfer, PullEnd::kCancelled, 0));
  EXPECT_TRUE(copy_->is_idle());
}

TEST_F(PullsTest, ThePriorityIsToldWhenItChanges) {
  const TransferId transfer = start().pull.transfer;
  Effects out;
  pulls_.prioritize(copy_->key, 0, Priority::kNormal, out);
  pulls_.prioritize(copy_->key, 1, Priority::kHigh, out);
  EXPECT_TRUE(out.empty()) << "it has that priority, and nothing else is pulled";
  pulls_.prioritize(copy_->key, 0, Priority::kHigh, out);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(std::get<effect::PrioritizePull>(out[0]).transfer, transfer);
  EXPECT_EQ(std::get<effect::PrioritizePull>(out[0]).priority, Priority::kHigh);
}

}  // namespace
}  // namespace hoplite
