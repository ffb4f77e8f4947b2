#include "core/agent/announcer.h"

#include "core/agent/test_parts.h"
#include "core/directory/view.h"

namespace hoplite {
namespace {

class AnnouncerTest : public PartsTest {
 protected:
  std::vector<Announce> told(NodeRef home = kPeer) const { return sent<Announce>(home); }

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

TEST_F(AnnouncerTest, EverythingIsToldInPiecesWithABeginningAndAnEnd) {
  limits_.facts_per_message = 2;
  for (std::uint64_t n = 1; n <= 5; ++n) add_copy(peers(n), CopyLife::kComplete);
  add_copy({kOther.id.value, 1}, CopyLife::kComplete);
  tombstones_.bury(peers(9), 3, out_.now() + Duration::s(60), kPeer.id);
  announcer_.tell_everything(kPeer);
  const auto all = told();
  ASSERT_EQ(all.size(), 3u);
  std::size_t facts = 0;
  for (const Announce& message : all) {
    facts += message.facts.size();
    EXPECT_EQ(message.full_begin, &message == &all.front());
    EXPECT_EQ(message.full_end, &message == &all.back());
  }
  EXPECT_EQ(facts, 5u) << "not those of another home";
  EXPECT_EQ(all.back().tombstones.at(0).seconds_left, 60u);
}

TEST_F(AnnouncerTest, AHomeWithoutAnythingHearsThat) {
  announcer_.tell_everything(kPeer);
  ASSERT_EQ(told().size(), 1u);
  EXPECT_TRUE(told()[0].full_begin && told()[0].full_end);
}

TEST_F(AnnouncerTest, WordsThatTakeADetourDenyNothing) {
  out_.begin_detour(kPeer.id);
  add_copy(peers(1), CopyLife::kComplete);
  announcer_.tell_everything(kPeer);
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
