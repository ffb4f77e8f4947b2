#include "core/agent/announcer.h"

#include "core/agent/test_parts.h"
#include "core/directory/view.h"

namespace hoplite {
namespace {

class AnnouncerTest : public PartsTest {
 protected:
  std::vector<Announce> told(NodeRef home = kPeer) const { return sent<Announce>(home); }
  std::vector<Compare> compared() const { return sent<Compare>(kPeer); }
  // The home's answer to the last piece.
  void answer(bool differs) {
    const Compare piece = compared().back();
    announcer_.on_compared(kPeer, {piece.comparison, piece.first, piece.last, differs});
  }

  Puts puts_{limits_, timers_, records_, out_};
  VersionMemory known_{100};
  Tombstones tombstones_{100};
  Announcer announcer_{{limits_, records_, puts_, known_, tombstones_, out_}};
};

TEST_F(AnnouncerTest, TellsWhatIsHere) {
  const Copy& copy = add_copy(peers(1), CopyLife::kFetching);
  announcer_.tell(records_.at(peers(1)));
  const Fact fact = told().at(0).facts.at(0);
  EXPECT_EQ(fact.version, copy.version);
  EXPECT_EQ(fact.state, CopyState::kGrowing);
  EXPECT_FALSE(told()[0].full_begin || told()[0].full_end);
  announcer_.tell(records_.add(peers(2)));
  EXPECT_EQ(told().size(), 1u) << "there is nothing to tell";
}

TEST_F(AnnouncerTest, APutIsAFactWhenItsHomeHasTakenIt) {
  add_copy(peers(1), CopyLife::kWriting);
  puts_.begin(peers(1), 4);
  puts_.claim(peers(1));
  announcer_.tell(records_.at(peers(1)));
  EXPECT_TRUE(told().empty());
  puts_.on_reply(kPeer, {sent<PutRequest>(kPeer).back().request, peers(1), Code::kOk});
  announcer_.tell(records_.at(peers(1)));
  EXPECT_EQ(told().size(), 1u);
}

TEST_F(AnnouncerTest, WhatIsTheSameIsNotTold) {
  for (std::uint64_t n = 1; n <= 5; ++n) add_copy(peers(n), CopyLife::kComplete);
  add_copy({kOther.id.value, 1}, CopyLife::kComplete);
  announcer_.compare(kPeer);
  ASSERT_EQ(compared().size(), 1u);
  EXPECT_EQ(compared()[0].first, 0u);
  EXPECT_EQ(compared()[0].last, ~0ULL);
  std::uint64_t expected = 0;
  for (std::uint64_t n = 1; n <= 5; ++n) expected += copy_digest(peers(n), 7, true, false);
  EXPECT_EQ(compared()[0].digest, expected) << "not those of another home";
  answer(false);
  EXPECT_EQ(compared().size(), 1u);
  EXPECT_TRUE(told().empty());
}

TEST_F(AnnouncerTest, WhatDiffersIsToldPieceByPiece) {
  limits_.compared_at_once = 2;
  limits_.facts_per_message = 1;
  for (std::uint64_t n = 1; n <= 5; ++n) add_copy(peers(n), CopyLife::kComplete);
  announcer_.compare(kPeer);
  EXPECT_EQ(compared().size(), 1u) << "the next one follows the answer";
  answer(true);
  ASSERT_EQ(told().size(), 3u);
  EXPECT_TRUE(told().front().full_begin && told().back().full_end);
  EXPECT_FALSE(told().front().full_end || told().back().full_begin);
  EXPECT_EQ(told().back().last, compared()[0].last);
  EXPECT_EQ(compared().size(), 1u) << "it has to be confirmed first";
  answer(false);
  ASSERT_EQ(compared().size(), 2u);
  EXPECT_EQ(compared()[1].first, compared()[0].last + 1);
  answer(false);
  ASSERT_EQ(compared().size(), 3u);
  EXPECT_EQ(compared()[2].last, ~0ULL);
  answer(false);
  answer(false);
  EXPECT_EQ(compared().size(), 3u) << "it is over";
}

TEST_F(AnnouncerTest, AnAnswerToAnEarlierComparisonDoesNotCount) {
  announcer_.compare(kPeer);
  const Compare first = compared().back();
  announcer_.compare(kPeer);
  announcer_.on_compared(kPeer, {first.comparison, 0, ~0ULL, true});
  EXPECT_TRUE(told().empty());
  announcer_.stop_comparing(kPeer);
  answer(true);
  EXPECT_TRUE(told().empty()) << "messages were lost";
}

TEST_F(AnnouncerTest, AHomeThatHasTooMuchIsToldThatThereIsNothing) {
  announcer_.compare(kPeer);
  EXPECT_EQ(compared().at(0).digest, 0u);
  announcer_.on_compared(kPeer, {compared()[0].comparison, 0, 99, true});
  ASSERT_EQ(told().size(), 1u);
  EXPECT_TRUE(told()[0].full_begin && told()[0].full_end && told()[0].facts.empty());
  EXPECT_EQ(told()[0].last, 99u) << "a piece that the home has cut short";
}

TEST_F(AnnouncerTest, WordsThatTakeADetourDenyNothing) {
  announcer_.compare(kPeer);
  block(kPeer);
  answer(true);
  EXPECT_TRUE(told().empty());
  add_copy(peers(1), CopyLife::kComplete);
  announcer_.tell_all(kPeer);
  ASSERT_EQ(sent<Relay>(kOther).size(), 1u);
  const auto inner = decode_message(as_bytes(sent<Relay>(kOther)[0].message));
  EXPECT_FALSE(std::get<Announce>(inner->message).full_begin);
}

TEST_F(AnnouncerTest, ARecoveringHomeHearsAlsoOfWhatIsGone) {
  add_copy(peers(1), CopyLife::kComplete).committed = true;
  announcer_.remember(peers(1), 7);
  announcer_.remember(peers(2), kNeverMade, "its coordinator died");
  announcer_.answer(kPeer, {5, view_digest(records_.alive())});
  ASSERT_EQ(told().size(), 1u);
  EXPECT_EQ(told()[0].round, 5u);
  ASSERT_EQ(told()[0].facts.size(), 2u) << "what is here need not be remembered";
  EXPECT_EQ(told()[0].facts[1].state, CopyState::kKnows);
  EXPECT_EQ(told()[0].facts[1].lost_why, "its coordinator died");
  EXPECT_EQ(sent<RecoverReply>(kPeer).at(0).facts, 2u);
}

}  // namespace
}  // namespace hoplite
