#include "core/agent/fetches.h"

#include "core/agent/test_parts.h"

namespace hoplite {
namespace {

using State = Fetches::State;

class FetchesTest : public PartsTest {
 protected:
  FetchesTest() { records_.add(id_); }
  Want want() const {
    Want want;
    want.id = id_;
    return want;
  }
  Want last() const { return sent<Want>(kPeer).back(); }
  Waiting waiting(Version version) const { return {last().request, id_, version, false}; }

  const ObjectId id_ = peers(1);
  Room room_{0};
  Fetches fetches_{limits_, timers_, room_, records_, out_};
};

TEST_F(FetchesTest, OnlyTheLastQuestionCounts) {
  fetches_.begin(want());
  const std::uint64_t first = last().request;
  EXPECT_TRUE(fetches_.has_asked(id_, first));
  EXPECT_EQ(timers_.next(), out_.now() + limits_.request_retry);
  fetches_.ask(want());
  EXPECT_FALSE(fetches_.has_asked(id_, first));
  EXPECT_TRUE(fetches_.has_asked(id_, last().request));
  EXPECT_FALSE(out_.is_open(first));
  fetches_.ask_later(id_, Duration::ms(5));
  EXPECT_FALSE(fetches_.has_asked(id_, last().request)) << "what is under way is old";
  EXPECT_FALSE(fetches_.has_asked(id_, 0));
  EXPECT_EQ(timers_.next(), out_.now() + Duration::ms(5));
  fetches_.check_invariants();
}

TEST_F(FetchesTest, StoppingTakesTheQuestionBackEndingDoesNot) {
  fetches_.begin(want());
  fetches_.stop(id_);
  EXPECT_EQ(sent<Unwant>(kPeer).size(), 1u);
  EXPECT_TRUE(fetches_.is_idle(id_));
  fetches_.begin(want());
  fetches_.end(id_);
  EXPECT_EQ(sent<Unwant>(kPeer).size(), 1u);
  EXPECT_EQ(timers_.next(), Time::never());
  EXPECT_FALSE(out_.is_open(last().request));
}

TEST_F(FetchesTest, ParentsThatFailedAreAvoidedUntilTheyAreForgiven) {
  fetches_.begin(want());
  EXPECT_EQ(fetches_.patience(id_), limits_.retry_backoff / 2);
  fetches_.avoid(id_, kOther.id);
  fetches_.avoid(id_, kOther.id);
  EXPECT_EQ(fetches_.patience(id_), limits_.forgive_after());
  fetches_.ask(want());
  EXPECT_EQ(last().avoid, std::vector<NodeId>{kOther.id});
  // The home knows only holders that we refuse.
  fetches_.on_waiting(waiting(7));
  EXPECT_EQ(timers_.next(), out_.now() + limits_.forgive_after());
  fetches_.ask(want());
  EXPECT_TRUE(last().avoid.empty());
  fetches_.on_waiting(waiting(7));
  EXPECT_EQ(timers_.next(), out_.now() + limits_.want_refresh) << "nobody is refused: the home will tell";
}

TEST_F(FetchesTest, SaysWhatTheHomeHasSaid) {
  EXPECT_NE(fetches_.waits_for(id_).find("has not answered"), std::string::npos);
  fetches_.begin(want());
  fetches_.on_waiting(waiting(0));
  EXPECT_NE(fetches_.waits_for(id_).find("nobody has put it"), std::string::npos);
  fetches_.on_lost(id_);
  fetches_.ask(want());
  EXPECT_TRUE(last().wait_if_lost);
  EXPECT_NE(fetches_.waits_for(id_).find("it is lost"), std::string::npos);
  fetches_.on_waiting({last().request, id_, 0, true});
  EXPECT_TRUE(fetches_.take_told_reducing(id_));
  EXPECT_FALSE(fetches_.take_told_reducing(id_));
}

TEST_F(FetchesTest, WaitsForRoomAndHasItOnce) {
  fetches_.begin(want());
  fetches_.wait_for_room(id_, 500);
  EXPECT_EQ(fetches_.state(id_), State::kNeedsRoom);
  EXPECT_EQ(sent<Unwant>(kPeer).size(), 1u) << "the home is asked again when there is room";
  EXPECT_EQ(room_.asked_by(Room::Fetch{id_}), 500u);
  fetches_.check_invariants();
  EXPECT_EQ(room_.hand_out([&](const Room::Waiter&) {
    fetches_.grant_room(id_);
    return true;
  }),
            0u);
  EXPECT_TRUE(fetches_.has_room_granted(id_));
  EXPECT_TRUE(fetches_.got_room_just_now(id_));
  fetches_.begin(want());
  EXPECT_TRUE(fetches_.has_room_granted(id_));
  fetches_.wait_for_room(id_, 500);
  EXPECT_EQ(fetches_.state(id_), State::kAsking) << "it did not fit after all: not again at once";
  EXPECT_EQ(timers_.next(), out_.now() + limits_.retry_backoff * limits_.room_backoffs);
  EXPECT_FALSE(fetches_.has_room_granted(id_));
  pass(limits_.request_retry);
  EXPECT_FALSE(fetches_.got_room_just_now(id_));
}

TEST_F(FetchesTest, WhoeverEndsLeavesTheQueue) {
  fetches_.begin(want());
  fetches_.wait_for_room(id_, 500);
  fetches_.end(id_);
  EXPECT_TRUE(room_.empty());
}

}  // namespace
}  // namespace hoplite
