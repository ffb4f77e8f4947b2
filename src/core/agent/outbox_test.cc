#include "core/agent/outbox.h"

#include "core/agent/test_parts.h"

namespace hoplite {
namespace {

using OutboxTest = PartsTest;

TEST_F(OutboxTest, TheFirstMessageIntroducesUs) {
  out_.send(kPeer, Resync{});
  out_.send(kPeer, Resync{});
  EXPECT_EQ(sent<News>(kPeer).size(), 1u);
  EXPECT_EQ(sent<Resync>(kPeer).size(), 2u);
  out_.forget(kPeer);
  out_.send(kPeer, Resync{});
  EXPECT_EQ(sent<News>(kPeer).size(), 2u) << "the connection is a new one";
  EXPECT_TRUE(sent<News>(kOther).empty());
}

TEST_F(OutboxTest, WhatWeTellOurselvesWaitsInOrder) {
  out_.send(kSelf, Unwant{peers(1), WantMode::kFetch});
  out_.send(kSelf, Resync{});
  EXPECT_TRUE(effects_.empty());
  EXPECT_TRUE(std::holds_alternative<Unwant>(out_.take_local()));
  EXPECT_TRUE(std::holds_alternative<Resync>(out_.take_local()));
  EXPECT_FALSE(out_.has_local());
}

TEST_F(OutboxTest, NobodyIsWrittenToWithoutAnAddress) {
  out_.send({NodeId{99}, 0}, Resync{});
  EXPECT_TRUE(effects_.empty());
  EXPECT_EQ(out_.depend_on(NodeId{99}), nullptr);
  EXPECT_EQ(out_.depend_on(kPeer.id)->host, "10.0.0.2");
}

TEST_F(OutboxTest, AnUnreachablePeerIsReachedByWayOfAnother) {
  block(kPeer);
  out_.send(kPeer, Resync{});
  EXPECT_TRUE(sent<Resync>(kPeer).empty());
  ASSERT_EQ(sent<Relay>(kOther).size(), 1u);
  EXPECT_EQ(sent<Relay>(kOther)[0].to, kPeer);
  const auto inner = decode_message(as_bytes(sent<Relay>(kOther)[0].message));
  EXPECT_TRUE(inner.ok() && std::holds_alternative<Resync>(inner->message));
  out_.send_with_bytes(kPeer, InlineObject{}, Extent{0, 10});
  EXPECT_TRUE(sent<InlineObject>(kPeer).empty());
  const auto relays = all<effect::Send>();
  EXPECT_EQ(relays.back().to, kOther);
  EXPECT_EQ(relays.back().extent, (Extent{0, 10})) << "bytes make the detour, too";
}

TEST_F(OutboxTest, WhatIsRelayedGoesOnWithItsBytesUnlessThereIsNoPathHereEither) {
  EXPECT_TRUE(out_.pass_on(kPeer, {kOther, kPeer, "x"}));
  ASSERT_EQ(sent<Relay>(kPeer).size(), 1u);
  EXPECT_EQ(all<effect::Send>().back().payload, effect::Payload::kReceived);
  block(kPeer);
  EXPECT_FALSE(out_.pass_on(kPeer, {kOther, kPeer, "x"}));
  EXPECT_EQ(sent<Relay>(kPeer).size(), 1u);
}

TEST_F(OutboxTest, AHelperThatCannotBeReachedItselfIsNoHelp) {
  block(kPeer);
  block(kOther);
  out_.send(kPeer, Resync{});
  EXPECT_EQ(sent<Resync>(kPeer).size(), 1u);
}

TEST_F(OutboxTest, TheOldestOpenQuestionIsKnown) {
  EXPECT_EQ(out_.oldest_open(), 1u);
  const std::uint64_t first = out_.open_question();
  const std::uint64_t second = out_.open_question();
  EXPECT_GT(out_.next_number(), second);
  EXPECT_EQ(out_.oldest_open(), first);
  out_.close_question(first);
  EXPECT_EQ(out_.oldest_open(), second);
  out_.close_question(second);
  EXPECT_EQ(out_.oldest_open(), second + 2) << "everything has its answer";
}

}  // namespace
}  // namespace hoplite
