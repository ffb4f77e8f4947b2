#include "core/broadcast/relay_plan.h"

#include <gtest/gtest.h>

#include <map>

#include "base/bytes.h"

namespace hoplite {
namespace {

constexpr NodeId kHome{1};
constexpr Time kAsked{1'000'000'000};

class RelayPlanTest : public testing::Test {
 protected:
  NodeId ask(std::uint64_t receiver, std::uint64_t bytes, Duration later = {}) {
    return plan_.choose(kAsked + later, {kHome, NodeId{receiver}, bytes}, links_, limits_);
  }
  // How much each one sends when nodes 2 to n + 1 ask together.
  std::map<NodeId, int> all_ask(std::uint64_t receivers, std::uint64_t bytes) {
    std::map<NodeId, int> sends;
    for (std::uint64_t n = 2; n <= receivers + 1; ++n) ++sends[ask(n, bytes)];
    return sends;
  }

  Limits limits_;
  LinkCosts links_ = same_for_all({.hop_s = 100e-6, .bytes_per_s = 62.5e6});
  RelayPlan plan_;
};

TEST_F(RelayPlanTest, TinyObjectsComeFromTheHomeItself) {
  EXPECT_EQ(all_ask(7, 100), (std::map<NodeId, int>{{kHome, 7}}));
}

TEST_F(RelayPlanTest, OfLargerOnesTheNumberOfSendersDoubles) {
  const std::map<NodeId, int> sends = all_ask(7, 64 * kKiB);
  EXPECT_EQ(sends.at(kHome), 3);
  EXPECT_EQ(sends.at(NodeId{2}), 2);
  EXPECT_EQ(sends.at(NodeId{3}), 1);
  EXPECT_EQ(sends.at(NodeId{4}), 1);
}

TEST_F(RelayPlanTest, ReceiversThatComeOneByOneNeedNoRelay) {
  for (std::uint64_t n = 2; n < 10; ++n)
    EXPECT_EQ(ask(n, 64 * kKiB, Duration::ms(2) * static_cast<std::int64_t>(n)), kHome);
}

TEST_F(RelayPlanTest, WhoHasLeftPassesNothingOn) {
  ask(2, 64 * kKiB);
  ask(3, 64 * kKiB);
  plan_.remove(NodeId{2});
  EXPECT_NE(ask(4, 64 * kKiB), NodeId{2});
}

TEST_F(RelayPlanTest, NobodyIsItsOwnRelay) {
  ask(2, 64 * kKiB);
  EXPECT_EQ(ask(2, 64 * kKiB), kHome);
}

TEST_F(RelayPlanTest, ThereAreNoMoreRelaysThanTheLimitAllows) {
  limits_.max_relays = 2;
  EXPECT_LE(all_ask(50, 64 * kKiB).size(), 3u);
}

TEST_F(RelayPlanTest, ARelayThatIsFarIsNotChosen) {
  links_ = [](NodeId from, NodeId to) {
    const bool far = from == NodeId{2} || to == NodeId{2};
    return LinkCost{.hop_s = far ? 1.0 : 100e-6, .bytes_per_s = 62.5e6};
  };
  EXPECT_FALSE(all_ask(7, 64 * kKiB).contains(NodeId{2}));
}

}  // namespace
}  // namespace hoplite
