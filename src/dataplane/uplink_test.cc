#include "dataplane/uplink.h"

#include <gtest/gtest.h>

namespace hoplite::dataplane {
namespace {

constexpr Time kNow{1000};
constexpr std::uint64_t kTurn = 100;

class UplinkTest : public testing::Test {
 protected:
  Uplink uplink_{{Duration::ms(50), kTurn, 20}};
};

TEST_F(UplinkTest, NobodyIsHeldWithoutAnybodyMoreUrgent) {
  uplink_.add(Priority::kNormal);
  uplink_.sent(kNow, Priority::kNormal, 1000);
  EXPECT_EQ(uplink_.admitted(kNow, Priority::kNormal), Uplink::kUnlimited);
  EXPECT_EQ(uplink_.admitted(kNow, Priority::kHigh), Uplink::kUnlimited);
  uplink_.add(Priority::kHigh);
  EXPECT_EQ(uplink_.admitted(kNow, Priority::kNormal), Uplink::kUnlimited) << "it has sent nothing yet";
}

TEST_F(UplinkTest, WhileTheUrgentFlowEachLowerOneGetsItsShare) {
  uplink_.add(Priority::kHigh);
  std::uint64_t urgent = 0;
  std::uint64_t normal = 0;
  for (int i = 0; i < 1000; ++i) {
    uplink_.sent(kNow, Priority::kHigh, kTurn);
    urgent += kTurn;
    const std::uint64_t admitted = uplink_.admitted(kNow, Priority::kNormal);
    ASSERT_NE(admitted, Uplink::kUnlimited);
    if (admitted == 0) continue;
    uplink_.sent(kNow, Priority::kNormal, kTurn);
    normal += kTurn;
  }
  EXPECT_NEAR(static_cast<double>(normal) / static_cast<double>(urgent + normal), 1.0 / 20, 0.005);
}

TEST_F(UplinkTest, WhatIsNotUsedIsNotSavedUp) {
  uplink_.add(Priority::kHigh);
  for (int i = 0; i < 10'000; ++i) uplink_.sent(kNow, Priority::kHigh, kTurn);
  EXPECT_EQ(uplink_.admitted(kNow, Priority::kLow), 2 * kTurn);
}

TEST_F(UplinkTest, TheUrgentHoldNobodyWhenTheyPauseOrEnd) {
  uplink_.add(Priority::kHigh);
  uplink_.add(Priority::kHigh);
  uplink_.sent(kNow, Priority::kHigh, kTurn);
  EXPECT_EQ(uplink_.admitted(kNow, Priority::kNormal), 0u);
  EXPECT_EQ(uplink_.admitted(kNow + Duration::ms(50), Priority::kNormal), Uplink::kUnlimited);
  uplink_.remove(Priority::kHigh);
  EXPECT_FALSE(uplink_.take_released());
  EXPECT_EQ(uplink_.admitted(kNow, Priority::kNormal), 0u) << "another one goes on";
  uplink_.remove(Priority::kHigh);
  EXPECT_TRUE(uplink_.take_released());
  EXPECT_FALSE(uplink_.take_released());
  EXPECT_EQ(uplink_.admitted(kNow, Priority::kNormal), Uplink::kUnlimited);
}

}  // namespace
}  // namespace hoplite::dataplane
