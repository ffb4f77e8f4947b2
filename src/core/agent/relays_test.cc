#include "core/agent/relays.h"

#include "core/agent/test_parts.h"

namespace hoplite {
namespace {

class RelaysTest : public PartsTest {
 protected:
  RelaysTest() { records_.add(id_); }
  void ask() { relays_.pass_on({id_, 7, kOther, 5}); }
  void expect_it() {
    Want want;
    want.id = id_;
    fetches_.begin(std::move(want));
  }
  std::size_t passed() const { return sent<InlineObject>(kOther).size(); }
  std::size_t refused() const { return sent<Withdraw>(kPeer).size(); }

  const ObjectId id_ = peers(1);
  Room room_{0};
  Fetches fetches_{limits_, timers_, room_, records_, out_};
  Relays relays_{limits_, records_, fetches_, out_};
};

TEST_F(RelaysTest, PassesOnWhatItHas) {
  add_copy(id_, CopyLife::kComplete);
  ask();
  ASSERT_EQ(passed(), 1u);
  EXPECT_EQ(sent<InlineObject>(kOther)[0].request, 5u) << "the receiver's number";
}

TEST_F(RelaysTest, WaitsForWhatIsOnItsWay) {
  expect_it();
  ask();
  EXPECT_EQ(passed() + refused(), 0u);
  add_copy(id_, CopyLife::kComplete);
  relays_.retry(id_);
  relays_.retry(id_);
  EXPECT_EQ(passed(), 1u);
}

TEST_F(RelaysTest, TellsTheHomeWhatItCannotDo) {
  ask();
  EXPECT_EQ(refused(), 1u) << "it is not on its way";
  expect_it();
  ask();
  relays_.refuse(id_);
  EXPECT_EQ(refused(), 2u);
  add_copy(id_, CopyLife::kComplete, 1000, 8);
  ask();
  EXPECT_EQ(passed(), 0u) << "another version";
}

TEST_F(RelaysTest, RemembersSoManyAndNoMore) {
  limits_.max_passes = 2;
  expect_it();
  for (int i = 0; i < 3; ++i) ask();
  EXPECT_EQ(refused(), 1u);
}

}  // namespace
}  // namespace hoplite
