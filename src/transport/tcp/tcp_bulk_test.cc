// What is TCP's own about the data plane; the rest is in tests/dataplane.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "transport/tcp/test_node.h"

namespace hoplite {
namespace {

using testing::ElementsAre;
using testing::Gt;
using testing::Pair;

class TcpBulkTest : public TransportTest {
 protected:
  static constexpr ObjectId kId{7, 1};

  void fetch(TestNode& child, const TestNode& parent, CopyKey copy, Extent extent, TransferId transfer) const {
    child.execute(effect::OpenCopy{copy, extent, 1, false});
    pull(child, parent, copy, request(transfer, kId));
  }
};
HOPLITE_ALL_TRANSPORTS(TcpBulkTest);

TEST_P(TcpBulkTest, BytesAndConnectionsAreCounted) {
  const auto parent = make_node(1);
  const auto child = make_node(2);
  parent->offer(kId, 1, 0, pattern(kMiB, 1));
  for (const TransferId transfer : {1, 2}) fetch(*child, *parent, transfer, {transfer * kMiB, kMiB}, transfer);
  ASSERT_TRUE(runs_until([&] { return child->ended.size() == 2; }));
  EXPECT_EQ(child->transport->stats().bulk_bytes_in, 2 * kMiB);
  EXPECT_EQ(parent->transport->stats().bulk_bytes_out, 2 * kMiB);
  EXPECT_EQ(child->transport->stats().connections, 1U);
}

TEST_P(TcpBulkTest, TheRateLimitHoldsForAllChildrenTogether) {
  TcpOptions limited;
  limited.max_rate = 25'000'000;
  const auto parent = make_node(1, limited);
  const auto child = make_node(2);
  const auto other = make_node(3);
  constexpr std::uint64_t kSize = 8 * kMiB;
  parent->offer(kId, 1, 0, pattern(kSize, 1));
  const Time start = monotonic_now();
  fetch(*child, *parent, 1, {0, kSize}, 1);
  fetch(*other, *parent, 1, {0, kSize}, 1);
  ASSERT_TRUE(runs_until([&] { return child->ended.size() == 1 && other->ended.size() == 1; }));
  const double seconds = (monotonic_now() - start).seconds();
  const double limit = 2.0 * kSize / 25e6;
  EXPECT_GE(seconds, limit * 0.97) << "faster than allowed";  // that it is reached: rate_limiter_test
  EXPECT_TRUE(child->holds(0, pattern(kSize, 1)));
  EXPECT_TRUE(other->holds(0, pattern(kSize, 1)));
  EXPECT_THAT(child->transport->rates(), ElementsAre(Pair(parent->self.id, Gt(0U))));
}

TEST_P(TcpBulkTest, BusyPollingMovesBytesToo) {
  TcpOptions options;
  options.busy_poll = true;
  const auto parent = make_node(1, options);
  const auto child = make_node(2, options);
  parent->offer(kId, 1, 0, pattern(kMiB, 1));
  fetch(*child, *parent, 1, {0, kMiB}, 1);
  ASSERT_TRUE(runs_until([&] { return child->ended_as(1, PullEnd::kComplete); }));
  EXPECT_TRUE(child->holds(0, pattern(kMiB, 1)));
}

}  // namespace
}  // namespace hoplite
