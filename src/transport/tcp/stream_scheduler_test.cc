#include "transport/tcp/stream_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"

namespace hoplite::tcp {
namespace {

using testing::ElementsAre;

StreamScheduler::Options options(std::uint64_t max_in_flight = 1000) { return {1000, 100, max_in_flight}; }

class StreamSchedulerTest : public testing::Test {
 protected:
  // A job of its own.
  void add_ready(std::uint64_t stream, std::uint8_t priority = 1, Time deadline = Time::never()) {
    add_ready(stream, {priority, deadline, {1, stream}});
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
      scheduler.taken(turn->stream, 0);
      out.push_back(turn->stream);
    }
    return out;
  }
  StreamScheduler scheduler{options()};
};

TEST_F(StreamSchedulerTest, NobodyReadyNobodysTurn) {
  EXPECT_FALSE(scheduler.next());
  scheduler.add(1, {}, 0);
  EXPECT_FALSE(scheduler.next());
  EXPECT_FALSE(scheduler.any_ready());
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
  EXPECT_THAT(turns(4), ElementsAre(2, 1, 3, 2));
}

TEST_F(StreamSchedulerTest, UrgentGoesFirstAndBackgroundLast) {
  add_ready(1, 2);
  add_ready(2, 1);
  add_ready(3, 0);
  EXPECT_THAT(turns(2), ElementsAre(3, 3));
  scheduler.set_ready(3, false);
  EXPECT_THAT(turns(2), ElementsAre(2, 2));
  scheduler.remove(2);
  EXPECT_THAT(turns(1), ElementsAre(1));
}

TEST_F(StreamSchedulerTest, EarliestDeadlineFirstWithinAPriority) {
  add_ready(1, 1);
  add_ready(2, 1, Time{500});
  add_ready(3, 1, Time{300});
  add_ready(4, 0);
  EXPECT_THAT(turns(1), ElementsAre(4));
  scheduler.remove(4);
  EXPECT_THAT(turns(2), ElementsAre(3, 3));
  scheduler.remove(3);
  EXPECT_THAT(turns(2), ElementsAre(2, 2));
  scheduler.set_ready(2, false);
  EXPECT_THAT(turns(1), ElementsAre(1));
}

TEST_F(StreamSchedulerTest, ALoneStreamGetsLongTurns) {
  add_ready(1);
  EXPECT_EQ(scheduler.next()->max_bytes, 1000U);
  add_ready(2);
  EXPECT_EQ(scheduler.next()->max_bytes, 100U);
  scheduler.set_ready(2, false);
  EXPECT_EQ(scheduler.next()->max_bytes, 1000U);
}

constexpr StreamScheduler::Job kJob{1, Time::never(), {9, 9}};

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

TEST_F(StreamSchedulerTest, InFlightBytesAreLimited) {
  scheduler = StreamScheduler(options(150));
  add_ready(1);
  EXPECT_EQ(scheduler.next()->max_bytes, 150U);
  scheduler.taken(1, 100);
  EXPECT_EQ(scheduler.next()->max_bytes, 50U);
  scheduler.taken(1, 50);
  EXPECT_FALSE(scheduler.next());
  scheduler.passed_on(120);
  EXPECT_EQ(scheduler.next()->max_bytes, 120U);
}

TEST_F(StreamSchedulerTest, RemovedStreamsAreGone) {
  add_ready(1);
  add_ready(2);
  scheduler.remove(1);
  EXPECT_THAT(turns(2), ElementsAre(2, 2));
  EXPECT_FALSE(scheduler.is_ready(1));
  EXPECT_TRUE(scheduler.is_ready(2));
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
    scheduler.taken(stream, 0);
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
      const auto priority = static_cast<std::uint8_t>(random.between(0, 2));
      scheduler.add(++last, {priority, Time::never(), {1, random.between(1, 4)}}, random.between(0, 2));
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
    scheduler.passed_on(bytes);
    if (left[turn->stream] > 0) {
      scheduler.set_ready(turn->stream, true);
      continue;
    }
    scheduler.remove(turn->stream);
    left.erase(turn->stream);
  }
  EXPECT_TRUE(left.empty());
  EXPECT_FALSE(scheduler.any_ready());
}

}  // namespace
}  // namespace hoplite::tcp
