#include "core/agent/serves.h"

#include <gtest/gtest.h>

namespace hoplite {
namespace {

using Here = Serves::Source::Here;
using Verdict = Serves::Verdict;

constexpr ObjectId kServed{1, 1};
constexpr std::uint64_t kSize = 1000;

PullRequest pull_at(std::uint64_t offset, bool has_children = false) {
  PullRequest pull;
  pull.id = kServed;
  pull.offset = offset;
  pull.has_children = has_children;
  return pull;
}

TEST(ServesRule, AChildWaitsForACopyThatIsNotAttached) {
  EXPECT_EQ(Serves::judge(pull_at(0), {kSize, 1, Here::kNotYet, 0}), Verdict::kPark);
}

Serves::Source assigned(Here here, std::uint64_t number, std::uint64_t front = 0) {
  return {kSize, 1, here, front, {{NodeId{9}, 0}, number}};
}

TEST(ServesRule, ACopyWithoutBytesTakesThoseThatWereAssignedLater) {
  PullRequest later = pull_at(0);
  later.ticket = {{NodeId{9}, 0}, 5};
  EXPECT_EQ(Serves::judge(later, assigned(Here::kNotYet, 4)), Verdict::kAccept);
  EXPECT_EQ(Serves::judge(later, assigned(Here::kRelayed, 4)), Verdict::kAccept);
  EXPECT_EQ(Serves::judge(later, assigned(Here::kNotYet, 5)), Verdict::kPark);
  EXPECT_EQ(Serves::judge(later, assigned(Here::kRelayed, 6)), Verdict::kRefuse);
  EXPECT_EQ(Serves::judge(later, assigned(Here::kRelayed, 6, 1)), Verdict::kAccept) << "it has bytes";
  later.has_children = true;
  EXPECT_EQ(Serves::judge(later, assigned(Here::kNotYet, 4)), Verdict::kPark);
  EXPECT_EQ(Serves::judge(later, assigned(Here::kRelayed, 4)), Verdict::kRefuse);
  later.has_children = false;
  later.ticket.home = {NodeId{8}, 0};
  EXPECT_EQ(Serves::judge(later, assigned(Here::kNotYet, 4)), Verdict::kPark) << "of another home";
}

TEST(ServesRule, AChildIsNeverAheadOfItsParent) {
  EXPECT_EQ(Serves::judge(pull_at(500), {kSize, 1, Here::kRelayed, 500}), Verdict::kAccept);
  EXPECT_EQ(Serves::judge(pull_at(501), {kSize, 1, Here::kRelayed, 500}), Verdict::kRefuse);
  EXPECT_EQ(Serves::judge(pull_at(501), {kSize, 1, Here::kProduced, 500}), Verdict::kRefuse);
}

TEST(ServesRule, OneThatHasChildrenMustBeStrictlyBehind) {
  EXPECT_EQ(Serves::judge(pull_at(500, true), {kSize, 1, Here::kRelayed, 500}), Verdict::kRefuse);
  EXPECT_EQ(Serves::judge(pull_at(500, true), {kSize, 1, Here::kRelayed, 501}), Verdict::kAccept);
  EXPECT_EQ(Serves::judge(pull_at(500, true), {kSize, 1, Here::kProduced, 500}), Verdict::kAccept);
  EXPECT_EQ(Serves::judge(pull_at(500, true), {kSize, 1, Here::kWhole, 0}), Verdict::kAccept);
}

TEST(ServesRule, SlicesMustBeTheSameUnlessTheCopyIsWhole) {
  PullRequest pull = pull_at(0);
  pull.slices = 2;
  EXPECT_EQ(Serves::judge(pull, {kSize, 1, Here::kRelayed, 500}), Verdict::kRefuse);
  EXPECT_EQ(Serves::judge(pull, {kSize, 1, Here::kWhole, 0}), Verdict::kAccept);
  EXPECT_EQ(Serves::judge(pull_at(kSize + 1), {kSize, 1, Here::kWhole, 0}), Verdict::kRefuse) << "beyond its end";
}

class ServesTest : public testing::Test {
 protected:
  ServesTest() {
    limits_.max_children = 1;
    limits_.max_parked_pulls = 2;
    copy_ = table_.add(kServed, 7, kSize, Alignment::kCacheLine, CopyLife::kComplete);
  }
  Serves::Asked asked(std::uint64_t peer, Time since = {}, Priority priority = Priority::kNormal) {
    PullRequest pull = pull_at(0);
    pull.transfer = peer;
    pull.priority = priority;
    return {{NodeId{peer}, 0}, 1, pull, since};
  }
  // The number of the serve, 0 if it was refused.
  ServeId accept(const Serves::Asked& who) {
    Effects out;
    serves_.accept(table_.use(*copy_, CopyUser::kServe), who, out);
    serves_.check_invariants();
    const auto* accepted = std::get_if<effect::AcceptPull>(&out.at(0));
    return accepted == nullptr ? 0 : accepted->serve;
  }
  // Transfers that were refused.
  static std::vector<TransferId> refused(const Effects& out) {
    std::vector<TransferId> all;
    for (const Effect& effect : out) all.push_back(std::get<effect::RefusePull>(effect).transfer);
    return all;
  }

  Limits limits_;
  Timers timers_;
  ObjectTable table_{kMiB};
  Copy* copy_ = nullptr;
  Serves serves_{limits_, timers_};
};

TEST_F(ServesTest, ACopyHasTwiceAsManyChildrenAsAPlanGivesItAndNoMore) {
  const ServeId first = accept(asked(1));
  EXPECT_NE(accept(asked(2)), 0u);
  EXPECT_EQ(accept(asked(3)), 0u);
  EXPECT_EQ(copy_->users(CopyUser::kServe), 2u) << "the third has left no trace";
  ASSERT_TRUE(serves_.end(first));
  EXPECT_FALSE(serves_.end(first)) << "it is over";
  EXPECT_EQ(serves_.children(copy_->key, 0), 1u);
  EXPECT_NE(accept(asked(3)), 0u);
}

TEST_F(ServesTest, TheHighestPriorityOfItsChildrenCounts) {
  EXPECT_EQ(serves_.highest(copy_->key, 0), Priority::kLow);
  const ServeId high = accept(asked(1, {}, Priority::kHigh));
  const ServeId low = accept(asked(2, {}, Priority::kLow));
  EXPECT_EQ(serves_.highest(copy_->key, 0), Priority::kHigh);
  serves_.end(high);
  EXPECT_EQ(serves_.highest(copy_->key, 0), Priority::kLow);
  EXPECT_TRUE(serves_.prioritize(low, Priority::kNormal));
  EXPECT_EQ(serves_.highest(copy_->key, 0), Priority::kNormal);
  EXPECT_FALSE(serves_.prioritize(high, Priority::kHigh)) << "it is over";
}

TEST_F(ServesTest, AChildThatAsksAgainTakesItsOldPlace) {
  Effects out;
  for (const std::uint64_t peer : {1, 1, 2}) serves_.park({}, asked(peer), out);
  EXPECT_TRUE(out.empty());
  serves_.park({}, asked(3), out);
  EXPECT_EQ(refused(out), std::vector<TransferId>{3}) << "there is a bound";
  EXPECT_EQ(serves_.take_parked(kServed).size(), 2u);
  EXPECT_FALSE(serves_.is_parked(kServed));
}

TEST_F(ServesTest, WhoWaitedForTooLongIsRefused) {
  const Time begin{};
  const Time later = begin + limits_.stall_after;
  Effects out;
  serves_.park(begin, asked(1, begin), out);
  serves_.park(later, asked(2, later), out);
  const Time due = timers_.next();
  EXPECT_EQ(due, begin + limits_.stall_after * limits_.parked_stalls);
  timers_.pop_due(due);
  EXPECT_EQ(serves_.refuse_stale(due, out), std::vector<ObjectId>{kServed});
  EXPECT_EQ(refused(out), std::vector<TransferId>{1});
  EXPECT_EQ(timers_.next(), due + limits_.stall_after);
  serves_.check_invariants();
}

}  // namespace
}  // namespace hoplite
