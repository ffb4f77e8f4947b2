#include "sim/bulk.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/bulk_fixture.h"
#include "sim/contents.h"

namespace hoplite::sim {
namespace {

TEST_F(BulkTest, BytesArriveAtTheRateOfTheWire) {
  make(2, 1e6, pieces(10'000));
  put(0, 500'000);
  pull(1, 0, 500'000);
  run();
  EXPECT_EQ(said(1), (std::vector<std::string>{"accepted", "ended complete 500000"}));
  EXPECT_EQ(said(0), std::vector<std::string>{"serve ended"});
  EXPECT_NEAR(ended_at(1), 0.504, 0.002);  // dial, ask, and 0.5 s of bytes
  EXPECT_TRUE(contents_match(7, ByteView(arenas_[1]).first(500'000)));
}

TEST_F(BulkTest, AChainTakesLittleLongerThanOneHop) {
  make(5, 1e6, pieces(10'000));
  put(0, 500'000);
  for (NodeIndex node = 1; node < 5; ++node) pull(node, node - 1, 500'000);
  run();
  EXPECT_NEAR(ended_at(4), 0.5 + 4 * 0.010, 0.01);  // a piece and a latency for each hop
  EXPECT_TRUE(contents_match(7, ByteView(arenas_[4]).first(500'000)));
}

TEST_F(BulkTest, TwoReceiversShareTheUplinkFairly) {
  make(3, 1e6, pieces(10'000));
  put(0, 500'000);
  pull(1, 0, 500'000);
  pull(2, 0, 500'000);
  run();
  EXPECT_NEAR(ended_at(1), 1.0, 0.03);
  EXPECT_NEAR(ended_at(2), 1.0, 0.03);
}

TEST_F(BulkTest, TwoSendersShareTheDownlink) {
  make(3, 1e6, pieces(10'000));
  put(0, 500'000);
  put(1, 500'000);
  pull(2, 0, 500'000, 2, 0);
  pull(2, 1, 500'000, 2, 1);
  run();
  // Each sends half of the object; the receiver's link takes one whole object.
  EXPECT_NEAR(static_cast<double>(log_.back().when.ns) * 1e-9, 0.504, 0.03);
  EXPECT_TRUE(contents_match(7, ByteView(arenas_[2]).first(500'000)));
}

TEST_F(BulkTest, ASlowReceiverSlowsOnlyItsOwnStream) {
  make(3, 1e6, pieces(10'000));
  hosts_[2].link.down = 1e4;
  put(0, 100'000);
  pull(1, 0, 100'000);
  pull(2, 0, 100'000);
  run();
  EXPECT_LT(ended_at(1), 0.25);
  EXPECT_NEAR(ended_at(2), 10, 0.3);
}

TEST_F(BulkTest, ACancelledPullEndsOnceAndItsBytesAreDiscarded) {
  make(2, 1e6, pieces(10'000));
  put(0, 500'000);
  const TransferId transfer = pull(1, 0, 500'000);
  run(Duration::ms(100));
  bulk_->cancel_pull(1, transfer);
  bulk_->cancel_pull(1, transfer);
  run();
  const auto lines = said(1);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[1].starts_with("ended cancelled"));
  EXPECT_EQ(said(0), std::vector<std::string>{"serve ended"});
  const std::uint64_t kept = bulk_->valid(1, 1, 0).front();
  EXPECT_GT(kept, 0u);
  EXPECT_LT(kept, 500'000u);
  pull(1, 0, 500'000);  // goes on where it was, over what was scribbled behind the watermark
  run();
  EXPECT_EQ(said(1).back(), "ended complete 500000");
  EXPECT_TRUE(contents_match(7, ByteView(arenas_[1]).first(500'000)));
}

TEST_F(BulkTest, ClosingEndsServesAndPullsFirst) {
  make(3, 1e6, pieces(10'000));
  put(0, 500'000);
  pull(1, 0, 500'000);
  pull(2, 1, 500'000);
  run(Duration::ms(100));
  bulk_->close_copy(1, 1);
  run();
  const auto lines = said(1);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines.back(), "closed");
  EXPECT_EQ(said(2).back().substr(0, 13), "ended aborted");
  EXPECT_EQ(bulk_->valid(1, 1, 0).front(), 0u);
  EXPECT_TRUE(bulk_->copies(1).empty());
}

TEST_F(BulkTest, SilenceIsReportedAndSignsOfLifePreventIt) {
  make(3, 1e6, pieces(10'000));
  bulk_->open_copy(0, {1, {0, 1000}, 1, false});  // has nothing to send
  pull(1, 0, 1000);
  run(Duration::s(2));
  EXPECT_EQ(said(1), std::vector<std::string>{"accepted"});
  hosts_[0].paused = true;
  run(kPatience * 2);
  EXPECT_EQ(said(1).back(), "silent");
}

TEST_F(BulkTest, TheEndWaitsForTheSeal) {
  make(2, 1e6, pieces(100));
  bulk_->open_copy(0, {1, {0, 1000}, 1, false});
  fill_contents(7, 0, ByteSpan(arenas_[0]).first(1000));
  bulk_->grow_copy(0, {1, 1000});
  pull(1, 0, 1000);
  run(Duration::s(1));
  EXPECT_EQ(bulk_->valid(1, 1, 0).front(), 1000u);
  EXPECT_EQ(said(1), std::vector<std::string>{"accepted"});
  bulk_->seal_copy(0, {1});
  run(Duration::s(1));
  EXPECT_EQ(said(1).back(), "ended complete 1000");
}

TEST_F(BulkTest, RefusedAndLostPullsSaySo) {
  make(3, 1e6, pieces(100));
  put(0, 1000);
  refuse_ = true;
  pull(1, 0, 1000);
  run(Duration::s(1));
  EXPECT_EQ(said(1), std::vector<std::string>{"ended refused 0"});
  bulk_->process_died(0, false);
  hosts_[0].running = false;
  pull(2, 0, 1000);
  run(Duration::s(2));
  EXPECT_EQ(said(2), std::vector<std::string>{"ended lost 0"});
}

TEST_F(BulkTest, AParentThatDiesEndsThePullWhereItIs) {
  make(2, 1e6, pieces(10'000));
  put(0, 500'000);
  pull(1, 0, 500'000);
  run(Duration::ms(200));
  bulk_->process_died(0, false);
  hosts_[0].running = false;
  run(Duration::s(1));
  EXPECT_TRUE(said(1).back().starts_with("ended lost"));
  EXPECT_TRUE(contents_match(7, ByteView(arenas_[1]).first(bulk_->valid(1, 1, 0).front())));
}

TEST_F(BulkTest, AcceptingAPullWhoseChildHasGoneEndsAtOnce) {
  make(2, 1e6, pieces(100));
  put(0, 1000);
  park_ = true;
  const TransferId transfer = pull(1, 0, 1000);
  run(Duration::ms(50));
  ASSERT_EQ(parked_.size(), 1u);
  bulk_->cancel_pull(1, transfer);
  run(Duration::ms(50));
  bulk_->accept_pull(0, {parked_[0].channel, 9, 1, parked_[0].pull});
  run(Duration::ms(50));
  EXPECT_EQ(said(0), std::vector<std::string>{"serve ended"});
}

TEST_F(BulkTest, ABlockedPathStallsAndHealingGoesOn) {
  make(2, 1e6, pieces(10'000));
  put(0, 500'000);
  pull(1, 0, 500'000);
  run(Duration::ms(100));
  hosts_.block(0, 1);
  run(Duration::s(3));
  EXPECT_EQ(said(1).back(), "silent");
  hosts_.unblock_all();
  bulk_->paths_changed();
  run(Duration::s(3));
  EXPECT_EQ(said(1).back(), "ended complete 500000");
  EXPECT_TRUE(contents_match(7, ByteView(arenas_[1]).first(500'000)));
}

TEST_F(BulkTest, AgentsThatBreakTheContractAreSeen) {
  make(2, 1e6, pieces(100));
  put(0, 1000);
  bulk_->open_copy(0, {2, {500, 1000}, 1, true});  // over copy 1
  EXPECT_EQ(broken_.size(), 1u);
  pull(1, 0, 1000);
  pull(1, 0, 1000);  // a second pull of the same slice
  EXPECT_EQ(broken_.size(), 2u);
  bulk_->seal_copy(1, {1});  // without its bytes
  EXPECT_EQ(broken_.size(), 3u);
  bulk_->close_copy(1, 77);
  EXPECT_EQ(broken_.size(), 4u);
  bulk_->grow_copy(0, {1, 5000});
  EXPECT_EQ(broken_.size(), 5u);
}

}  // namespace
}  // namespace hoplite::sim
