#include "core/agent/gets.h"

#include "core/agent/test_parts.h"

namespace hoplite {
namespace {

constexpr RequestKey kReader{4, 1};
constexpr RequestKey kFollower{4, 2};
constexpr RequestKey kPatient{5, 1};

class GetsTest : public PartsTest {
 protected:
  GetsTest() { records_.add(id_); }
  void add(const Gets::Get& get) {
    clients_.begin(get.key, Clients::Kind::kGet, id_, Time::never());
    gets_.add(id_, get);
  }
  std::size_t views(const RequestKey& key) const { return replies<ipc::View>(key).size(); }

  const ObjectId id_ = peers(1);
  Gets gets_{copies_, clients_, records_};
};

TEST_F(GetsTest, ACompleteCopyAnswersAll) {
  add({.key = kReader});
  add({.key = kPatient});
  gets_.fulfil(id_);
  EXPECT_EQ(views(kReader), 0u) << "there is nothing yet";
  Copy& copy = add_copy(id_, CopyLife::kComplete);
  gets_.fulfil(id_);
  EXPECT_EQ(views(kReader) + views(kPatient), 2u);
  EXPECT_EQ(copy.users(CopyUser::kView), 2u);
  EXPECT_FALSE(gets_.contains(id_));
  EXPECT_EQ(clients_.pending_count(), 0u);
}

TEST_F(GetsTest, OnlyThoseThatFollowSeeACopyGrow) {
  add({.key = kReader});
  add({.key = kFollower, .follow = true});
  Copy& copy = add_copy(id_, CopyLife::kFetching);
  valid_ = ValidBytes({0, 1000}, 10);
  gets_.fulfil(id_);
  gets_.fulfil(id_);
  ASSERT_EQ(replies<ipc::Opened>(kFollower).size(), 1u) << "once";
  EXPECT_EQ(replies<ipc::Opened>(kFollower)[0].bytes, 10u);
  EXPECT_TRUE(replies<ipc::Opened>(kReader).empty());
  EXPECT_EQ(all<effect::FollowCopy>().size(), 1u);
  valid_ = ValidBytes({0, 1000}, 30);
  gets_.grown(id_);
  EXPECT_EQ(replies<ipc::Grown>(kFollower).at(0).bytes, 30u);
  EXPECT_TRUE(replies<ipc::Grown>(kReader).empty());
  EXPECT_EQ(copy.users(CopyUser::kView), 1u);
  gets_.check_invariants();
}

TEST_F(GetsTest, WhoeverFollowedIsResetBeforeAnotherCopyIsShown) {
  add({.key = kFollower, .follow = true});
  add_copy(id_, CopyLife::kFetching);
  gets_.fulfil(id_);
  gets_.reset(id_);
  gets_.reset(id_);
  EXPECT_EQ(replies<ipc::Reset>(kFollower).size(), 1u) << "once for what was shown";
  add_copy(id_, CopyLife::kFetching, 1000, 8);
  gets_.fulfil(id_);
  ASSERT_EQ(replies<ipc::Opened>(kFollower).size(), 2u);
  EXPECT_EQ(replies<ipc::Opened>(kFollower)[1].version, 8u);
}

TEST_F(GetsTest, ALossEndsOnlyThoseThatMind) {
  add({.key = kReader});
  add({.key = kPatient, .wait_if_lost = true});
  gets_.fail_lost(id_, "gone");
  EXPECT_EQ(replies<ipc::Failed>(kReader).at(0).code, Code::kLost);
  EXPECT_TRUE(replies<ipc::Failed>(kPatient).empty());
  EXPECT_TRUE(gets_.contains(id_));
  gets_.fail(id_, Code::kDeleted, "deleted");
  EXPECT_EQ(replies<ipc::Failed>(kPatient).at(0).code, Code::kDeleted);
  EXPECT_FALSE(gets_.contains(id_));
}

TEST_F(GetsTest, TheMostUrgentOneCounts) {
  EXPECT_EQ(gets_.highest(id_), Priority::kLow);
  add({.key = kReader});
  add({.key = kPatient, .priority = Priority::kHigh});
  EXPECT_EQ(gets_.highest(id_), Priority::kHigh);
  EXPECT_FALSE(gets_.prioritize(id_, 99, Priority::kLow)) << "that client reads nothing";
  EXPECT_TRUE(gets_.prioritize(id_, kPatient.client, Priority::kLow));
  EXPECT_EQ(gets_.highest(id_), Priority::kNormal);
  gets_.stop(id_, kReader);
  EXPECT_EQ(gets_.highest(id_), Priority::kLow);
  EXPECT_TRUE(records_.take_touched().contains(id_));
}

}  // namespace
}  // namespace hoplite
