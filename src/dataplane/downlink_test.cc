#include "dataplane/downlink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hoplite::dataplane {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using Change = Downlink::Change;

constexpr Duration kIdle = Duration::ms(50);

class DownlinkTest : public testing::Test {
 protected:
  void add(TransferId transfer, Priority priority) { downlink_.add(now_, transfer, priority, changes_); }
  void receive(TransferId transfer, std::uint64_t bytes) { downlink_.received(now_, transfer, bytes, changes_); }
  Downlink::Changes changes() { return std::exchange(changes_, {}); }
  void pass(Duration time) {
    now_ = now_ + time;
    downlink_.tick(now_, changes_);
  }

  Time now_{1'000'000'000};
  Downlink downlink_{{kIdle, 1000, 20}};
  Downlink::Changes changes_;
};

TEST_F(DownlinkTest, EqualPullsAreLeftAlone) {
  for (const TransferId transfer : {1, 2, 3}) add(transfer, Priority::kLow);
  receive(1, 1'000'000);
  pass(kIdle * 3);
  EXPECT_THAT(changes(), IsEmpty());
}

TEST_F(DownlinkTest, AnUrgentPullHoldsOthersFromItsStartToItsEnd) {
  add(1, Priority::kNormal);
  add(2, Priority::kLow);
  EXPECT_THAT(changes(), ElementsAre(Pair(2, Change::kHold)));
  add(3, Priority::kHigh);
  EXPECT_THAT(changes(), ElementsAre(Pair(1, Change::kHold)));
  downlink_.remove(now_, 3, changes_);
  EXPECT_THAT(changes(), ElementsAre(Pair(1, Change::kLetGo)));
  downlink_.remove(now_, 1, changes_);
  EXPECT_THAT(changes(), ElementsAre(Pair(2, Change::kLetGo)));
}

TEST_F(DownlinkTest, OneThatStartsMeanwhileIsHeldAtOnce) {
  add(1, Priority::kHigh);
  add(2, Priority::kNormal);
  EXPECT_THAT(changes(), ElementsAre(Pair(2, Change::kHold)));
}

TEST_F(DownlinkTest, AnUrgentPullThatDoesNotFlowHoldsNobody) {
  add(1, Priority::kNormal);
  add(2, Priority::kHigh);
  changes();
  pass(kIdle / 2);
  receive(2, 10);
  pass(kIdle / 2);
  EXPECT_THAT(changes(), IsEmpty());
  pass(kIdle / 2);
  EXPECT_THAT(changes(), ElementsAre(Pair(1, Change::kLetGo)));
  receive(2, 10);
  EXPECT_THAT(changes(), ElementsAre(Pair(1, Change::kHold))) << "it flows again";
}

TEST_F(DownlinkTest, LowerPrioritiesGetTheirShareInTurns) {
  add(1, Priority::kNormal);
  add(2, Priority::kNormal);
  add(3, Priority::kLow);
  add(4, Priority::kHigh);
  changes();
  receive(4, 18'999);
  EXPECT_THAT(changes(), IsEmpty());
  receive(4, 1);
  EXPECT_THAT(changes(), ElementsAre(Pair(3, Change::kGrant), Pair(1, Change::kGrant)));
  receive(4, 19'000);
  EXPECT_THAT(changes(), ElementsAre(Pair(3, Change::kGrant), Pair(2, Change::kGrant)));
}

TEST_F(DownlinkTest, PrioritiesCanChange) {
  add(1, Priority::kNormal);
  add(2, Priority::kNormal);
  downlink_.prioritize(now_, 2, Priority::kHigh, changes_);
  EXPECT_THAT(changes(), ElementsAre(Pair(1, Change::kHold)));
  downlink_.prioritize(now_, 1, Priority::kHigh, changes_);
  EXPECT_THAT(changes(), ElementsAre(Pair(1, Change::kLetGo)));
}

}  // namespace
}  // namespace hoplite::dataplane
