#include "transport/tcp/rate_limiter.h"

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace hoplite::tcp {
namespace {

constexpr std::uint64_t kRate = 62'500'000;  // 500 Mbit/s

TEST(RateLimiter, NoLimitGrantsEverything) {
  RateLimiter limiter(0);
  EXPECT_TRUE(limiter.unlimited());
  EXPECT_EQ(limiter.take(Time{0}, kGiB).bytes, kGiB);
}

// A sender that always has more, and sends when told to, or a little later.
std::uint64_t bytes_in_a_second(RateLimiter& limiter, std::uint64_t wanted, Time start, Duration late) {
  std::uint64_t total = 0;
  for (Time now = start; now < start + Duration::s(1);) {
    const auto grant = limiter.take(now, wanted);
    if (grant.at > now) now = grant.at + late;
    if (now < start + Duration::s(1)) total += grant.bytes;
  }
  return total;
}

TEST(RateLimiter, AGreedySenderGetsTheRateWhateverItsChunks) {
  for (const std::uint64_t wanted : {std::uint64_t{1448}, 64 * kKiB, kMiB}) {
    for (const Duration late : {Duration{0}, Duration::us(100), Duration::ms(1)}) {
      RateLimiter limiter(kRate);
      const std::uint64_t total = bytes_in_a_second(limiter, wanted, Time{Duration::s(5).ns}, late);
      EXPECT_GE(total, kRate / 100 * 97) << wanted << " late by ns " << late.ns;
      EXPECT_LE(total, kRate / 100 * 102) << wanted << " late by ns " << late.ns;
    }
  }
}

TEST(RateLimiter, IdleTimeIsWorthOneBurst) {
  RateLimiter limiter(kRate);
  const Time now{Duration::s(100).ns};
  const auto first = limiter.take(now, kGiB);
  EXPECT_EQ(first.bytes, limiter.burst_bytes());
  EXPECT_EQ(first.at, now);
  EXPECT_GT(limiter.take(now, kGiB).at, now);
}

TEST(RateLimiter, SmallSendsPassWhileThereIsRoom) {
  RateLimiter limiter(kRate);
  const Time now{Duration::s(1).ns};
  EXPECT_EQ(limiter.take(now, limiter.burst_bytes() - 100).bytes, limiter.burst_bytes() - 100);
  EXPECT_EQ(limiter.take(now, 64).at, now);
  EXPECT_GT(limiter.take(now, 64).at, now);
}

TEST(RateLimiter, ThoseWhoWaitAreServedInTurn) {
  RateLimiter limiter(kRate);
  const Time now{Duration::s(1).ns};
  limiter.take(now, kGiB);
  const auto a = limiter.take(now, kGiB);
  const auto b = limiter.take(now, kGiB);
  const auto c = limiter.take(now, kGiB);
  EXPECT_LT(a.at, b.at);
  EXPECT_EQ((b.at - a.at).ns, (c.at - b.at).ns);
  EXPECT_EQ(a.bytes, b.bytes);
}

TEST(RateLimiter, WhatIsGivenBackCanBeTaken) {
  RateLimiter limiter(kRate);
  const Time now{Duration::s(1).ns};
  const std::uint64_t all = limiter.take(now, kGiB).bytes;
  limiter.give_back(all / 2);
  const auto again = limiter.take(now, kGiB);
  EXPECT_NEAR(static_cast<double>(again.bytes), static_cast<double>(all) / 2, 2.0);
  EXPECT_EQ(again.at, now);
}

TEST(RateLimiter, ChargedBytesDelayLaterOnes) {
  RateLimiter limiter(kRate);
  const Time now{Duration::s(1).ns};
  limiter.charge(now, kRate);  // a second's worth
  EXPECT_GT(limiter.take(now, kMiB).at, now + Duration::ms(990));
}

}  // namespace
}  // namespace hoplite::tcp
