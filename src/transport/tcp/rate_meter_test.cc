#include "transport/tcp/rate_meter.h"

#include <gtest/gtest.h>

namespace hoplite::tcp {
namespace {

constexpr std::uint64_t kChunk = 62'500;  // 1 ms at 500 Mbit/s
constexpr double kBytesPerSecond = 62'500'000;

void flow(RateMeter& meter, Time& now, int chunks, std::uint64_t bytes = kChunk) {
  for (int i = 0; i < chunks; ++i) meter.record(now = now + Duration::ms(1), bytes);
}

TEST(RateMeter, NothingMeasuredIsZero) {
  RateMeter meter;
  EXPECT_EQ(meter.bytes_per_second(), 0U);
  meter.record(Time{1}, kChunk);
  EXPECT_EQ(meter.bytes_per_second(), 0U);
}

TEST(RateMeter, PausesDoNotCount) {
  RateMeter meter;
  Time now{0};
  for (int i = 0; i < 5; ++i) {
    flow(meter, now, 50);
    now = now + Duration::s(3);
  }
  EXPECT_NEAR(static_cast<double>(meter.bytes_per_second()), kBytesPerSecond, kBytesPerSecond * 0.01);
}

TEST(RateMeter, FollowsAChange) {
  RateMeter meter;
  Time now{0};
  flow(meter, now, 50);
  flow(meter, now, 100, kChunk / 4);
  EXPECT_NEAR(static_cast<double>(meter.bytes_per_second()), kBytesPerSecond / 4, kBytesPerSecond * 0.01);
}

TEST(RateMeters, KeepsOneForEachPeerUntilForgotten) {
  RateMeters meters;
  Time now{0};
  flow(*meters.of(NodeId{7}), now, 50);
  meters.of(NodeId{8});
  ASSERT_EQ(meters.rates().size(), 1U);
  EXPECT_EQ(meters.rates().begin()->first, NodeId{7});
  meters.forget(NodeId{7});
  EXPECT_TRUE(meters.rates().empty());
}

}  // namespace
}  // namespace hoplite::tcp
