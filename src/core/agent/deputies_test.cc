#include "core/agent/deputies.h"

#include "core/agent/test_parts.h"

namespace hoplite {
namespace {

class DeputiesTest : public PartsTest {
 protected:
  static ObjectId own(std::uint64_t n) { return {kSelf.id.value, n}; }
  // What either of the others was told.
  std::vector<Hearsay> told() const {
    std::vector<Hearsay> all = sent<Hearsay>(kPeer);
    for (const Hearsay& hearsay : sent<Hearsay>(kOther)) all.push_back(hearsay);
    return all;
  }
  NodeRef deputy() const { return deputy_of(own(1), kSelf, records_.alive()); }

  Deputies deputies_{limits_, timers_, records_, out_};
};

TEST_F(DeputiesTest, TellInBatchesAndOneNodeForAllThatIsMintedHere) {
  for (std::uint64_t n = 1; n <= 20; ++n) deputies_.note({own(n), 7, false});
  EXPECT_TRUE(told().empty());
  EXPECT_EQ(timers_.next(), out_.now() + limits_.hearsay_every);
  EXPECT_TRUE(timers_.pop_due(timers_.next()));
  deputies_.on_timer();
  ASSERT_EQ(told().size(), 1u);
  EXPECT_EQ(sent<Hearsay>(deputy()).at(0).heard.size(), 20u);
  EXPECT_NE(deputy(), kSelf);
  EXPECT_EQ(timers_.next(), Time::never());
}

TEST_F(DeputiesTest, WhatIsPutAndDeletedInOneBatchIsNotTold) {
  deputies_.note({own(1), 7, false});
  deputies_.note({own(1), 7, true});
  deputies_.note({own(2), 7, true});
  deputies_.on_timer();
  ASSERT_EQ(told().size(), 1u);
  ASSERT_EQ(told().at(0).heard.size(), 1u);
  EXPECT_EQ(told().at(0).heard.at(0).id, own(2));
  EXPECT_TRUE(told().at(0).heard.at(0).deleted);
}

TEST_F(DeputiesTest, ADeputyThatMayHaveMissedSomethingStartsAnew) {
  limits_.facts_per_message = 2;
  deputies_.begin_anew(deputy().id);
  for (std::uint64_t n = 1; n <= 5; ++n) deputies_.note({own(n), 7, false});
  deputies_.on_timer();
  const std::vector<Hearsay> all = sent<Hearsay>(deputy());
  ASSERT_EQ(all.size(), 3u);
  EXPECT_TRUE(all[0].anew);
  EXPECT_FALSE(all[1].anew || all[2].anew);
}

TEST_F(DeputiesTest, WhatBelongsToAnotherHomeIsNotTold) {
  deputies_.note({peers(1), 7, false});
  deputies_.on_timer();
  EXPECT_TRUE(told().empty());
}

}  // namespace
}  // namespace hoplite
