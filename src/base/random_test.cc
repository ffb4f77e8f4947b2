#include "base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace hoplite {
namespace {

// A seed in a bug report must mean the same run on every machine and in every later version.
TEST(Random, OutputIsFixedForEver) {
  Random random(42);
  EXPECT_EQ(random.next(), 0x5c8961e1f2055d33ULL);
  EXPECT_EQ(random.next(), 0xe182e8e848466886ULL);
  EXPECT_EQ(mix64(0), 0xe220a8397b1dcdafULL);  // the first output of splitmix64 with seed 0, as published
}

TEST(Random, SameSeedSameSequence) {
  Random a(7);
  Random b(7);
  Random c(8);
  int same_as_c = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t value = a.next();
    EXPECT_EQ(value, b.next());
    same_as_c += value == c.next();
  }
  EXPECT_EQ(same_as_c, 0);
}

TEST(Random, BelowStaysBelowAndReachesEverything) {
  Random random(1);
  std::array<int, 10> seen{};
  for (int i = 0; i < 10'000; ++i) ++seen.at(random.below(10));
  for (const int count : seen) EXPECT_NEAR(count, 1000, 200);  // 200 is more than 6 standard deviations
  EXPECT_EQ(random.below(0), 0U);
  EXPECT_EQ(random.below(1), 0U);
}

TEST(Random, BetweenIncludesBothEnds) {
  Random random(2);
  bool low = false;
  bool high = false;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t value = random.between(5, 8);
    ASSERT_TRUE(value >= 5 && value <= 8);
    low |= value == 5;
    high |= value == 8;
  }
  EXPECT_TRUE(low && high);
}

TEST(Random, ChanceIsAProbability) {
  Random random(3);
  int hits = 0;
  for (int i = 0; i < 10'000; ++i) {
    hits += random.chance(0.25);
    EXPECT_FALSE(random.chance(0));
    EXPECT_TRUE(random.chance(1));
  }
  EXPECT_NEAR(hits, 2500, 300);
}

}  // namespace
}  // namespace hoplite
