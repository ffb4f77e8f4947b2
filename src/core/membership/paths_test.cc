#include "core/membership/paths.h"

#include <gtest/gtest.h>

namespace hoplite {
namespace {

constexpr NodeId kPeer{2};
constexpr NodeId kHelper{3};
constexpr NodeId kOther{4};
constexpr Duration kEvery = Duration::s(2);

TEST(Paths, ABlockedPathIsTriedNowAndThenUntilItIsOpen) {
  Paths paths(kEvery);
  EXPECT_TRUE(paths.block(Time{}, kPeer));
  EXPECT_FALSE(paths.block(Time{}, kPeer)) << "it was";
  EXPECT_TRUE(paths.take_due(Time{} + kEvery / 2).empty());
  EXPECT_EQ(paths.next_due(), Time{} + kEvery);
  EXPECT_EQ(paths.take_due(Time{} + kEvery), std::vector{kPeer});
  EXPECT_TRUE(paths.take_due(Time{} + kEvery).empty());
  EXPECT_TRUE(paths.open(kPeer));
  EXPECT_FALSE(paths.open(kPeer));
  EXPECT_EQ(paths.next_due(), Time::never());
}

TEST(Paths, AWayIsKeptAsLongAsItIsConfirmed) {
  Paths paths(kEvery);
  EXPECT_FALSE(paths.reached(Time{}, kPeer, kHelper)) << "the path is open";
  paths.block(Time{}, kPeer);
  EXPECT_TRUE(paths.reached(Time{}, kPeer, kHelper));
  EXPECT_FALSE(paths.reached(Time{} + kEvery, kPeer, kOther));
  EXPECT_EQ(paths.way_to(kPeer), kHelper);
  EXPECT_TRUE(paths.reached(Time{} + kEvery * 3, kPeer, kOther)) << "nobody has confirmed it";
  EXPECT_EQ(paths.way_to(kPeer), kOther);
}

TEST(Paths, WhoFailsDiesOrIsBlockedIsNoWay) {
  Paths paths(kEvery);
  paths.block(Time{}, kPeer);
  paths.reached(Time{}, kPeer, kHelper);
  paths.failed(kPeer, kOther);
  EXPECT_EQ(paths.way_to(kPeer), kHelper);
  paths.failed(kPeer, kHelper);
  EXPECT_TRUE(paths.way_to(kPeer).is_nil());
  paths.reached(Time{}, kPeer, kHelper);
  paths.forget(kHelper);
  EXPECT_TRUE(paths.way_to(kPeer).is_nil());
  paths.block(Time{}, kHelper);
  EXPECT_FALSE(paths.reached(Time{}, kPeer, kHelper));
  EXPECT_EQ(paths.blocked(1).size(), 1u);
  paths.forget(kPeer);
  EXPECT_FALSE(paths.is_blocked(kPeer));
}

}  // namespace
}  // namespace hoplite
