#include "core/agent/notices.h"

#include "core/agent/test_parts.h"

namespace hoplite {
namespace {

constexpr RequestKey kWaiter{4, 1};
constexpr RequestKey kAnother{4, 2};
constexpr ObjectId kWatchedFor{1, 77};

class NoticesTest : public PartsTest {
 protected:
  void wait(const RequestKey& key, const std::set<ObjectId>& ids, std::size_t count) {
    for (const ObjectId& id : ids) records_.add(id);
    clients_.begin(key, Clients::Kind::kWait, {}, Time::never());
    notices_.wait(key, ids, count);
    notices_.check_invariants();
  }
  void ready(const ObjectId& id) {
    notices_.on_ready(id);
    notices_.check_invariants();
  }
  std::vector<ObjectId> answered(const RequestKey& key) const { return replies<ipc::WaitDone>(key).at(0).ready; }
  std::size_t asked() const { return sent<Want>(kPeer).size(); }

  Notices notices_{limits_, timers_, clients_, records_, out_};
};

TEST_F(NoticesTest, AWaitEndsWhenEnoughAreReady) {
  add_copy(peers(1), CopyLife::kComplete);
  wait(kWaiter, {peers(1), peers(2), peers(3)}, 2);
  EXPECT_EQ(asked(), 2u) << "for those that are not here";
  EXPECT_TRUE(replies<ipc::WaitDone>(kWaiter).empty());
  ready(peers(3));
  EXPECT_EQ(answered(kWaiter), (std::vector{peers(1), peers(3)}));
  EXPECT_EQ(sent<Unwant>(kPeer).at(0).id, peers(2)) << "nobody wants to know any more";
  EXPECT_FALSE(notices_.contains(peers(2)));
  EXPECT_EQ(timers_.next(), Time::never());
}

TEST_F(NoticesTest, AWaitForWhatIsThereIsAnsweredAtOnce) {
  add_copy(peers(1), CopyLife::kComplete);
  wait(kWaiter, {peers(1), peers(2)}, 1);
  EXPECT_EQ(answered(kWaiter), std::vector{peers(1)});
  EXPECT_EQ(asked(), 0u);
}

TEST_F(NoticesTest, MoreThanThereAreMeansAll) {
  wait(kWaiter, {peers(1)}, 5);
  ready(peers(1));
  EXPECT_EQ(answered(kWaiter), std::vector{peers(1)});
}

// Its answer may bring the bytes: until then a full announcement must not tell the home that they are not here.
TEST_F(NoticesTest, AQuestionIsOpenUntilItIsAnswered) {
  records_.add(peers(1));
  notices_.watch(peers(1), kWatchedFor, 1000);
  notices_.ask(peers(1));
  EXPECT_EQ(out_.oldest_open(), sent<Want>(kPeer).at(0).request);
  notices_.ask(peers(1));
  EXPECT_EQ(out_.oldest_open(), sent<Want>(kPeer).at(1).request) << "asked again";
  notices_.check_invariants();
  notices_.take_watchers(peers(1));
  ready(peers(1));
  EXPECT_GT(out_.oldest_open(), sent<Want>(kPeer).at(1).request);
}

TEST_F(NoticesTest, OthersGoOnWaiting) {
  wait(kWaiter, {peers(1)}, 1);
  wait(kAnother, {peers(1), peers(2)}, 2);
  notices_.end_wait(kWaiter);
  EXPECT_TRUE(sent<Unwant>(kPeer).empty());
  ready(peers(2));
  ready(peers(1));
  EXPECT_EQ(answered(kAnother), (std::vector{peers(2), peers(1)}));
}

TEST_F(NoticesTest, AReduceSaysHowManyBytesAreWelcome) {
  records_.add(peers(1));
  notices_.watch(peers(1), kWatchedFor, 300);
  notices_.ask(peers(1));
  EXPECT_EQ(sent<Want>(kPeer).at(0).inline_bytes, 300u);
  EXPECT_FALSE(sent<Want>(kPeer).at(0).wait_if_lost) << "a reduce wants to hear of a loss";
  EXPECT_EQ(notices_.take_watchers(peers(1)), std::set{kWatchedFor});
  ready(peers(1));
  EXPECT_FALSE(notices_.contains(peers(1)));
}

TEST_F(NoticesTest, ALossIsToldOnceThenItMayBePutAgain) {
  records_.add(peers(1));
  notices_.watch(peers(1), kWatchedFor, 0);
  notices_.ask(peers(1));
  EXPECT_TRUE(notices_.has_asked(peers(1), sent<Want>(kPeer).back().request));
  notices_.on_failed(peers(1), Code::kLost);
  ASSERT_EQ(asked(), 2u);
  EXPECT_TRUE(sent<Want>(kPeer).back().wait_if_lost);
  notices_.unwatch(peers(1), kWatchedFor);
  EXPECT_EQ(sent<Unwant>(kPeer).size(), 1u);
}

TEST_F(NoticesTest, AWaitHearsWhatIsGoneAndEndsWhenTooLittleIsLeft) {
  wait(kWaiter, {peers(1), peers(2), peers(3)}, 2);
  EXPECT_FALSE(sent<Want>(kPeer).at(0).wait_if_lost);
  notices_.on_failed(peers(1), Code::kDeleted);
  notices_.check_invariants();
  EXPECT_TRUE(replies<ipc::WaitDone>(kWaiter).empty()) << "two can still come";
  EXPECT_FALSE(notices_.contains(peers(1)));
  notices_.on_failed(peers(3), Code::kLost);
  notices_.check_invariants();
  ASSERT_EQ(replies<ipc::WaitDone>(kWaiter).size(), 1u);
  const std::vector<ipc::Gone> gone = replies<ipc::WaitDone>(kWaiter).at(0).gone;
  ASSERT_EQ(gone.size(), 2u);
  EXPECT_EQ(gone[0].id, peers(1));
  EXPECT_EQ(gone[0].code, Code::kDeleted);
  EXPECT_EQ(gone[1].code, Code::kLost);
}

TEST_F(NoticesTest, AWaitBesideAReduceThatHasHeardOfTheLossHearsOfItToo) {
  records_.add(peers(1));
  notices_.watch(peers(1), kWatchedFor, 0);
  notices_.ask(peers(1));
  notices_.on_failed(peers(1), Code::kLost);
  wait(kWaiter, {peers(1)}, 1);
  EXPECT_FALSE(sent<Want>(kPeer).back().wait_if_lost);
  notices_.on_failed(peers(1), Code::kLost);
  notices_.check_invariants();
  EXPECT_EQ(replies<ipc::WaitDone>(kWaiter).at(0).gone.at(0).code, Code::kLost);
  EXPECT_TRUE(notices_.is_watched(peers(1)));
}

TEST_F(NoticesTest, AWatchWhoseHolderIsDeadIsAskedForAgainSoon) {
  records_.add(peers(1));
  notices_.watch(peers(1), kWatchedFor, 0);
  notices_.ask(peers(1));
  ready(peers(1));
  EXPECT_TRUE(notices_.is_watched(peers(1)));
  EXPECT_EQ(timers_.next(), out_.now() + limits_.retry_backoff);
}

}  // namespace
}  // namespace hoplite
