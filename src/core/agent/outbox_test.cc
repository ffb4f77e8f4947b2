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

// --- questions that wait for their turn ----------------------------------------------------------------------------------

class QuestionsTest : public PartsTest {
 protected:
  QuestionsTest() { limits_.max_open_questions = 2; }
  std::uint64_t ask(NodeRef to, Outbox::Turn turn = Outbox::Turn::kLast) {
    const std::uint64_t number = out_.open_question();
    Want want;
    want.request = number;
    out_.ask(to, number, want, {}, turn);
    out_.send_due();
    out_.check_invariants();
    return number;
  }
  std::vector<std::uint64_t> asked(NodeRef to) {
    out_.send_due();
    std::vector<std::uint64_t> numbers;
    for (const Want& want : sent<Want>(to)) numbers.push_back(want.request);
    return numbers;
  }
  using Numbers = std::vector<std::uint64_t>;
};

TEST_F(QuestionsTest, SoManyAreOpenAndTheOthersFollowInOrder) {
  const Numbers n = {ask(kPeer), ask(kPeer), ask(kPeer), ask(kPeer), ask(kPeer)};
  EXPECT_EQ(asked(kPeer), (Numbers{n[0], n[1]}));
  EXPECT_TRUE(out_.is_held(n[2]));
  EXPECT_EQ(asked(kOther), Numbers{}) << "peers do not wait for each other";
  const std::uint64_t other = ask(kOther);
  EXPECT_EQ(asked(kOther), Numbers{other});
  out_.answered(n[1]);
  EXPECT_EQ(asked(kPeer), (Numbers{n[0], n[1], n[2]}));
  EXPECT_TRUE(out_.is_open(n[1])) << "there may be a better answer";
  out_.close_question(n[0]);
  EXPECT_EQ(asked(kPeer), (Numbers{n[0], n[1], n[2], n[3]}));
  out_.answered(n[0]);
  EXPECT_EQ(asked(kPeer).size(), 4u) << "an answer counts once";
  out_.check_invariants();
}

TEST_F(QuestionsTest, WhatIsTakenBackIsNotAsked) {
  const Numbers n = {ask(kPeer), ask(kPeer), ask(kPeer), ask(kPeer)};
  out_.close_question(n[2]);
  out_.close_question(n[0]);
  EXPECT_EQ(asked(kPeer), (Numbers{n[0], n[1], n[3]}));
  out_.close_question(n[1]);
  out_.close_question(n[3]);
  out_.send_due();
  out_.check_invariants();
}

TEST_F(QuestionsTest, WhatGoesOnWithSomethingIsAskedFirst) {
  const Numbers n = {ask(kPeer), ask(kPeer), ask(kPeer), ask(kPeer, Outbox::Turn::kFirst)};
  out_.answered(n[0]);
  EXPECT_EQ(asked(kPeer).back(), n[3]);
}

TEST_F(QuestionsTest, TheDeadAreNotAskedAndDoNotAnswer) {
  const Numbers n = {ask(kPeer), ask(kPeer), ask(kPeer)};
  out_.drop_questions(kPeer);
  EXPECT_FALSE(out_.is_held(n[2]));
  for (const std::uint64_t number : n) out_.close_question(number);
  EXPECT_EQ(asked(kPeer).size(), 2u);
  out_.check_invariants();
}

TEST_F(QuestionsTest, WhatIsAskedElsewhereInTheSameStepIsNotSentInBetween) {
  const Numbers n = {ask(kPeer), ask(kPeer), ask(kPeer), ask(kPeer)};
  for (const std::uint64_t number : n) out_.answered(number);
  EXPECT_EQ(asked(kPeer), (Numbers{n[0], n[1]}));
}

TEST_F(QuestionsTest, WhatWeAskOurselvesWaitsForNobody) {
  for (int i = 0; i < 5; ++i) ask(kSelf);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(std::holds_alternative<Want>(out_.take_local()));
}

TEST_F(OutboxTest, BytesTravelWithAnswersUntilTooManyAreQueued) {
  limits_.max_backlog_bytes = 100;
  EXPECT_TRUE(out_.takes_bytes(kPeer));
  out_.send_with_bytes(kPeer, InlineObject{}, Extent{0, 60});
  EXPECT_TRUE(out_.takes_bytes(kPeer));
  out_.send_with_bytes(kPeer, InlineObject{}, Extent{0, 60});
  EXPECT_FALSE(out_.takes_bytes(kPeer)) << "the transport has not seen them yet";
  EXPECT_TRUE(out_.takes_bytes(kOther));
  pass(Duration::ms(1));
  EXPECT_TRUE(out_.takes_bytes(kPeer));
  backlog_ = 100;
  EXPECT_FALSE(out_.takes_bytes(kPeer));
}

}  // namespace
}  // namespace hoplite
