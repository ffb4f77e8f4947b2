#include "core/agent/puts.h"

#include "core/agent/test_parts.h"

namespace hoplite {
namespace {

class PutsTest : public PartsTest {
 protected:
  ObjectId begin(std::uint64_t size = kMiB / 2) {
    const ObjectId id = peers(1);
    add_copy(id, CopyLife::kWriting, size);
    puts_.begin(id, 4);
    return id;
  }
  PutRequest last_claim(NodeRef to = kPeer) const { return sent<PutRequest>(to).back(); }
  Puts::Answer answer(Code code, NodeRef from = kPeer) {
    return puts_.on_reply(from, {last_claim().request, peers(1), code});
  }

  Puts puts_{limits_, timers_, records_, out_};
};

TEST_F(PutsTest, IsClaimedThenSealed) {
  const ObjectId id = begin();
  puts_.claim(id);
  EXPECT_FALSE(last_claim().sealed);
  EXPECT_FALSE(puts_.is_claimed(id));
  EXPECT_EQ(answer(Code::kOk), Puts::Answer::kClaimed);
  EXPECT_TRUE(puts_.is_claimed(id));
  EXPECT_FALSE(puts_.may_be_committed(id));
  puts_.check_invariants();
  puts_.seal(id, 9);
  EXPECT_TRUE(last_claim().sealed);
  EXPECT_TRUE(puts_.may_be_committed(id));
  puts_.check_invariants();
  EXPECT_EQ(answer(Code::kOk), Puts::Answer::kCommitted);
  const Puts::Ended ended = puts_.finish(id);
  EXPECT_EQ(ended.client, 4u);
  EXPECT_EQ(ended.client_request, 9u);
  EXPECT_FALSE(puts_.contains(id));
  EXPECT_EQ(timers_.next(), Time::never());
}

TEST_F(PutsTest, SealedBeforeTheClaimIsAnsweredIsSealedByTheNextClaim) {
  const ObjectId id = begin();
  puts_.claim(id);
  puts_.seal(id, 9);
  EXPECT_EQ(sent<PutRequest>(kPeer).size(), 1u) << "one claim at a time";
  EXPECT_EQ(answer(Code::kOk), Puts::Answer::kNone);
  EXPECT_TRUE(last_claim().sealed);
}

TEST_F(PutsTest, ASmallObjectTravelsWithItsOnlyClaim) {
  const ObjectId id = begin(100);
  puts_.seal(id, 9);
  ASSERT_EQ(sent<PutRequest>(kPeer).size(), 1u);
  EXPECT_TRUE(last_claim().sealed);
  EXPECT_EQ(all<effect::Send>().back().payload, effect::Payload::kExtent);
  EXPECT_EQ(answer(Code::kOk), Puts::Answer::kCommitted);
}

TEST_F(PutsTest, AClaimIsRepeatedAndOnlyTheLastOneCanBeAnswered) {
  const ObjectId id = begin();
  puts_.claim(id);
  const PutRequest first = last_claim();
  EXPECT_EQ(timers_.next(), out_.now() + limits_.request_retry);
  EXPECT_EQ(out_.oldest_open(), first.request);
  puts_.claim(id);
  EXPECT_GT(last_claim().request, first.request);
  EXPECT_EQ(out_.oldest_open(), first.request) << "none of them has been answered";
  EXPECT_EQ(puts_.on_reply(kPeer, {first.request, id, Code::kOk}), Puts::Answer::kNone);
  EXPECT_EQ(answer(Code::kOk, kOther), Puts::Answer::kNone) << "not the home";
  EXPECT_EQ(answer(Code::kOk), Puts::Answer::kClaimed);
  EXPECT_GT(out_.oldest_open(), first.request);
}

TEST_F(PutsTest, EveryHomeThatWasAskedHearsThatItIsGivenUp) {
  const ObjectId id = begin();
  puts_.claim(id);
  records_.move(records_.at(id), kOther);
  puts_.claim(id);
  puts_.give_up(id);
  EXPECT_EQ(sent<Withdraw>(kPeer).size(), 1u);
  EXPECT_EQ(sent<Withdraw>(kOther).size(), 1u);
}

TEST_F(PutsTest, TheHomeThatRefusesNeedNotBeTold) {
  const ObjectId id = begin();
  puts_.claim(id);
  EXPECT_EQ(answer(Code::kExists), Puts::Answer::kRefused);
  puts_.give_up(id, kPeer);
  EXPECT_TRUE(sent<Withdraw>(kPeer).empty());
  EXPECT_FALSE(puts_.contains(id));
  EXPECT_EQ(timers_.next(), Time::never());
}

}  // namespace
}  // namespace hoplite
