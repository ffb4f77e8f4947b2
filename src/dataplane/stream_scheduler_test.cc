#include "dataplane/stream_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"

namespace hoplite::dataplane {
namespace {

using testing::ElementsAre;

constexpr StreamScheduler::Options kOptions{1000, 100, 20};

class StreamSchedulerTest : public testing::Test {
 protected:
  // A job of its own.
  void add_ready(std::uint64_t stream, Priority priority = Priority::kNormal) {
    add_ready(stream, {priority, {1, stream}});
  }
  void add_ready(std::uint64_t stream, const StreamScheduler::Job& job, std::uint64_t part = 0) {
    scheduler.add(stream, job, part);
    scheduler.set_ready(stream, true);
  }
  std::vector<std::uint64_t> turns(int count) {
    std::vector<std::uint64_t> out;
    for (int i = 0; i < count; ++i) {
      const auto turn = scheduler.next();
      if (!turn) break;
      scheduler.taken(turn->stream, 1);
      out.push_back(turn->stream);
    }
    return out;
  }
  StreamScheduler scheduler{kOptions};
};

TEST_F(StreamSchedulerTest, NobodyReadyNobodysTurn) {
  EXPECT_FALSE(scheduler.next());
  scheduler.add(1, {}, 0);
  EXPECT_FALSE(scheduler.next());
  EXPECT_FALSE(scheduler.next());
}

TEST_F(StreamSchedulerTest, EqualsTakeTurns) {
  for (const std::uint64_t stream : {1, 2, 3}) add_ready(stream);
  EXPECT_THAT(turns(7), ElementsAre(1, 2, 3, 1, 2, 3, 1));
}

TEST_F(StreamSchedulerTest, ATurnThatIsNotTakenIsNotLost) {
  add_ready(1);
  add_ready(2);
  EXPECT_EQ(scheduler.next()->stream, 1U);
  EXPECT_EQ(scheduler.next()->stream, 1U);
  EXPECT_THAT(turns(2), ElementsAre(1, 2));
}

TEST_F(StreamSchedulerTest, ANewcomerWaitsForOneRoundOnly) {
  add_ready(1);
  add_ready(2);
  EXPECT_THAT(turns(3), ElementsAre(1, 2, 1));
  add_ready(3);
  EXPECT_THAT(turns(4), ElementsAre(2, 3, 1, 2));
}

TEST_F(StreamSchedulerTest, UrgentGoesFirstAndBackgroundLast) {
  add_ready(1, Priority::kLow);
  add_ready(2, Priority::kNormal);
  add_ready(3, Priority::kHigh);
  EXPECT_THAT(turns(2), ElementsAre(3, 3));
  scheduler.set_ready(3, false);
  EXPECT_THAT(turns(2), ElementsAre(2, 2));
  scheduler.remove(2);
  EXPECT_THAT(turns(1), ElementsAre(1));
}

// As a link with full frames does it. Returns how many bytes each stream got.
std::map<std::uint64_t, std::uint64_t> shares(StreamScheduler& scheduler, std::uint64_t bytes) {
  std::map<std::uint64_t, std::uint64_t> got;
  for (std::uint64_t sent = 0; sent < bytes;) {
    const auto turn = scheduler.next();
    scheduler.taken(turn->stream, turn->max_bytes);
    got[turn->stream] += turn->max_bytes;
    sent += turn->max_bytes;
  }
  return got;
}

TEST_F(StreamSchedulerTest, LowerPrioritiesGetTheirShareEach) {
  add_ready(1, Priority::kLow);
  add_ready(2, Priority::kNormal);
  add_ready(3, Priority::kHigh);
  const auto got = shares(scheduler, 1'000'000);
  EXPECT_NEAR(static_cast<double>(got.at(1)), 50'000, 5'000);
  EXPECT_NEAR(static_cast<double>(got.at(2)), 50'000, 5'000);
}

TEST_F(StreamSchedulerTest, AnUrgentStreamIsNotInterruptedAtOnce) {
  add_ready(1, Priority::kNormal);
  add_ready(2, Priority::kHigh);
  EXPECT_EQ(shares(scheduler, 1900), (std::map<std::uint64_t, std::uint64_t>{{2, 1900}}));
}

TEST_F(StreamSchedulerTest, WhatNobodyWaitedForIsNotOwed) {
  add_ready(2, Priority::kHigh);
  shares(scheduler, 100'000);
  add_ready(1, Priority::kLow);
  EXPECT_EQ(scheduler.next()->stream, 2U);
}

TEST_F(StreamSchedulerTest, APriorityCanChangeWhileAStreamWaits) {
  add_ready(1, Priority::kNormal);
  add_ready(2, Priority::kNormal);
  scheduler.prioritize(2, Priority::kHigh);
  EXPECT_THAT(turns(3), ElementsAre(2, 2, 2));
  scheduler.prioritize(2, Priority::kLow);
  EXPECT_THAT(turns(3), ElementsAre(1, 1, 1));
  scheduler.set_ready(2, false);
  scheduler.prioritize(2, Priority::kHigh);
  EXPECT_THAT(turns(1), ElementsAre(1));
}

TEST_F(StreamSchedulerTest, EqualsShareByBytesNotByTurns) {
  add_ready(1);
  add_ready(2);
  std::map<std::uint64_t, std::uint64_t> got;
  for (int i = 0; i < 3000; ++i) {
    const std::uint64_t stream = scheduler.next()->stream;
    const std::uint64_t bytes = stream == 1 ? 10 : 100;  // the first never has more at a time
    scheduler.taken(stream, bytes);
    got[stream] += bytes;
  }
  EXPECT_NEAR(static_cast<double>(got[1]), static_cast<double>(got[2]), 200);
}

TEST_F(StreamSchedulerTest, WhoHadNothingToSendDoesNotCatchUp) {
  add_ready(1);
  add_ready(2);
  scheduler.set_ready(2, false);
  shares(scheduler, 100'000);
  scheduler.set_ready(2, true);
  const auto got = shares(scheduler, 10'000);
  EXPECT_NEAR(static_cast<double>(got.at(1)), static_cast<double>(got.at(2)), 1100);
}

TEST_F(StreamSchedulerTest, ALoneStreamGetsLongTurns) {
  add_ready(1);
  EXPECT_EQ(scheduler.next()->max_bytes, 1000U);
  add_ready(2);
  EXPECT_EQ(scheduler.next()->max_bytes, 100U);
  scheduler.set_ready(2, false);
  EXPECT_EQ(scheduler.next()->max_bytes, 1000U);
}

constexpr StreamScheduler::Job kJob{Priority::kNormal, {9, 9}};

TEST_F(StreamSchedulerTest, TheFirstPartOfAJobThatWasReadyGoesFirst) {
  scheduler.add(1, kJob, 1);
  scheduler.add(2, kJob, 2);
  scheduler.set_ready(2, true);
  scheduler.set_ready(1, true);
  EXPECT_THAT(turns(3), ElementsAre(2, 2, 2));
  EXPECT_EQ(scheduler.next()->max_bytes, 1000U) << "it takes no turns with anybody";
  scheduler.set_ready(2, false);
  EXPECT_THAT(turns(2), ElementsAre(1, 1));
  scheduler.set_ready(2, true);
  EXPECT_THAT(turns(2), ElementsAre(2, 2)) << "its first bytes came earlier";
  scheduler.remove(2);
  EXPECT_THAT(turns(1), ElementsAre(1));
}

TEST_F(StreamSchedulerTest, StreamsOfOnePartTakeTurns) {
  add_ready(1, kJob, 5);
  add_ready(2, kJob, 5);
  add_ready(3, kJob, 6);
  EXPECT_THAT(turns(4), ElementsAre(1, 2, 1, 2));
  EXPECT_EQ(scheduler.next()->max_bytes, 100U);
  scheduler.remove(1);
  EXPECT_EQ(scheduler.next()->max_bytes, 1000U);
  scheduler.remove(2);
  EXPECT_THAT(turns(1), ElementsAre(3));
  add_ready(4, kJob, 5);
  EXPECT_THAT(turns(1), ElementsAre(3)) << "the part has begun anew";
}

TEST_F(StreamSchedulerTest, AJobOfManyStreamsGetsNoMoreThanAJobOfOne) {
  add_ready(1, kJob, 1);
  add_ready(2, kJob, 2);
  add_ready(3);
  EXPECT_THAT(turns(6), ElementsAre(1, 3, 1, 3, 1, 3));
  EXPECT_EQ(scheduler.next()->max_bytes, 100U);
  scheduler.remove(1);
  EXPECT_THAT(turns(4), ElementsAre(2, 3, 2, 3)) << "nor a new place in the line";
}

TEST_F(StreamSchedulerTest, RemovedStreamsAreGone) {
  add_ready(1);
  add_ready(2);
  scheduler.remove(1);
  EXPECT_THAT(turns(2), ElementsAre(2, 2));
}

// Whatever comes and goes, streams of one priority that stay ready differ by at most one turn.
TEST_F(StreamSchedulerTest, FairUnderChurn) {
  Random random(7);
  for (std::uint64_t stream = 1; stream <= 5; ++stream) add_ready(stream);
  std::map<std::uint64_t, int> counts;
  bool visitor = false;
  for (int i = 0; i < 5000; ++i) {
    if (random.chance(0.1)) {
      if (visitor) scheduler.remove(99);
      if (!visitor) add_ready(99);
      visitor = !visitor;
    }
    const auto stream = scheduler.next()->stream;
    scheduler.taken(stream, 1);
    ++counts[stream];
  }
  for (std::uint64_t stream = 2; stream <= 5; ++stream) EXPECT_NEAR(counts[stream], counts[1], 1);
}

// As a connection does it: a stream is not ready while its bytes are in a frame. Whoever is ready is served in the end, and a
// turn is given only to those that are.
TEST_F(StreamSchedulerTest, NobodyIsForgottenWhateverComesAndGoes) {
  Random random(11);
  std::map<std::uint64_t, std::uint64_t> left;  // bytes, by stream
  std::uint64_t last = 0;
  for (int step = 0; step < 20'000; ++step) {
    if (left.size() < 12 && step < 15'000 && random.chance(0.3)) {
      const auto priority = static_cast<Priority>(random.between(0, 2));
      scheduler.add(++last, {priority, {1, random.between(1, 4)}}, random.between(0, 2));
      left[last] = random.between(1, 2000);
      scheduler.set_ready(last, true);
    }
    if (!left.empty() && random.chance(0.02)) {
      scheduler.remove(left.begin()->first);
      left.erase(left.begin());
    }
    const auto turn = scheduler.next();
    ASSERT_EQ(turn.has_value(), !left.empty());
    if (!turn) continue;
    ASSERT_TRUE(left.contains(turn->stream));
    const std::uint64_t bytes = std::min(turn->max_bytes, left[turn->stream]);
    left[turn->stream] -= bytes;
    scheduler.set_ready(turn->stream, false);
    scheduler.taken(turn->stream, bytes);
    if (left[turn->stream] > 0) {
      scheduler.set_ready(turn->stream, true);
      continue;
    }
    scheduler.remove(turn->stream);
    left.erase(turn->stream);
  }
  EXPECT_TRUE(left.empty());
  EXPECT_FALSE(scheduler.next());
}

}  // namespace
}  // namespace hoplite::dataplane
