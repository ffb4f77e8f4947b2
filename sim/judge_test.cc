// The judge must be able to say no: true answers are replaced by false ones here, and each must be noticed.
#include "sim/judge.h"

#include <gtest/gtest.h>

#include "sim/clients.h"

namespace hoplite::sim {
namespace {

class JudgeTest : public ::testing::Test {
 protected:
  JudgeTest() {
    WorldOptions options;
    options.seed = 1;
    options.limits.inline_bytes = 64;
    world_.emplace(options);
    judge_.emplace(*world_, ledger_, JudgeOptions{Duration::s(1), Duration::s(1)});
    clients_.emplace(*world_, ledger_, *judge_);
    world_->add_node({{"10.0.0.1", 7411}, {}, kMiB, {}});
    world_->start(0);
    world_->run_for(Duration::s(1));
    client_ = clients_->attach(0);
  }

  std::string violated() const { return world_->violation() ? world_->violation()->invariant : ""; }
  // The answer as if the daemon had given it.
  void answer(RequestNumber request, ipc::Reply reply) { clients_->on_reply(client_, request, reply); }
  RequestNumber put(ObjectId id) {
    const RequestNumber number = clients_->put(client_, id, 50, kNoTimeout);
    world_->run_for(Duration::s(1));
    EXPECT_TRUE(ledger_.requests[number].ended);
    return number;
  }
  ipc::View view_of(RequestNumber get) {
    const Held& held = ledger_.held.at(ledger_.requests[get].held);
    return {held.copy, held.version, held.offset, held.size, {}};
  }
  RequestNumber got(ObjectId id) {
    const RequestNumber number = clients_->get(client_, {id});
    world_->run_for(Duration::s(1));
    EXPECT_TRUE(ledger_.requests[number].ended);
    return number;
  }
  RequestNumber pending_get(ObjectId id, std::int64_t timeout_ns = kNoTimeout) {
    return clients_->get(client_, {id, timeout_ns});
  }

  const ObjectId a_ = ObjectId::named("a");
  const ObjectId b_ = ObjectId::named("b");
  Ledger ledger_;
  std::optional<World> world_;
  std::optional<Judge> judge_;
  std::optional<Clients> clients_;
  ClientKey client_ = 0;
};

TEST_F(JudgeTest, IsContentWithTheTruth) {
  const RequestNumber p = put(a_);
  const RequestNumber g = got(a_);
  EXPECT_EQ(ledger_.requests[g].got, ledger_.requests[p].put);
  clients_->release(ledger_.requests[g].held);
  EXPECT_EQ(violated(), "");
}

TEST_F(JudgeTest, SeesOneWrongByte) {
  put(a_);
  const ipc::View view = view_of(got(a_));
  world_->arena(0)[view.offset + 49] ^= std::byte{1};
  answer(pending_get(a_), view);
  EXPECT_EQ(violated(), "bytes-of-one-put");
}

TEST_F(JudgeTest, SeesAViewThatChanges) {
  put(a_);
  const RequestNumber g = got(a_);
  world_->arena(0)[view_of(g).offset] ^= std::byte{1};
  clients_->release(ledger_.requests[g].held);
  EXPECT_EQ(violated(), "views-never-change");
}

TEST_F(JudgeTest, SeesAVersionThatNamesOtherBytes) {
  put(a_);
  const RequestNumber first = got(a_);
  ledger_.objects[a_].versions[view_of(first).version] = 77;  // as if it had been seen with another put's bytes
  answer(pending_get(a_), view_of(first));
  EXPECT_EQ(violated(), "versions-never-mix");
}

TEST_F(JudgeTest, SeesWhatWasNeverSealed) {
  const RequestNumber w = clients_->create(client_, a_, 50, kNoTimeout);
  world_->run_for(Duration::s(1));
  clients_->write(w, 50);
  const Writing& writing = ledger_.writing.at(w);
  answer(pending_get(a_), ipc::View{writing.copy, 5, writing.offset, 50, {}});
  EXPECT_EQ(violated(), "committed-only");
}

TEST_F(JudgeTest, SeesFalseReasons) {
  put(a_);
  answer(pending_get(a_), ipc::Failed{Code::kLost, ""});
  EXPECT_EQ(violated(), "true-reason");
}

TEST_F(JudgeTest, SeesADeleteThatNobodyAskedFor) {
  answer(pending_get(b_), ipc::Failed{Code::kDeleted, ""});
  EXPECT_EQ(violated(), "true-reason");
}

TEST_F(JudgeTest, SeesACancelThatNobodyAskedFor) {
  answer(pending_get(b_), ipc::Failed{Code::kCancelled, ""});
  EXPECT_EQ(violated(), "true-reason");
}

TEST_F(JudgeTest, SeesATimeoutBeforeItsTime) {
  answer(pending_get(b_, Duration::s(5).ns), ipc::Failed{Code::kTimedOut, ""});
  EXPECT_EQ(violated(), "deadlines-hold");
}

TEST_F(JudgeTest, SeesSecondAnswersAndWrongOnes) {
  const RequestNumber g = got((put(a_), a_));
  answer(g, ipc::Failed{Code::kTimedOut, ""});
  EXPECT_EQ(violated(), "one-answer");
}

TEST_F(JudgeTest, SeesAnAnswerOfAnotherKind) {
  answer(pending_get(b_), ipc::Removed{true});
  EXPECT_EQ(violated(), "one-answer");
}

TEST_F(JudgeTest, SeesTwoCommittedPuts) {
  put(a_);
  const RequestNumber second = clients_->put(client_, a_, 50, kNoTimeout);
  answer(second, ipc::PutDone{a_});
  EXPECT_EQ(violated(), "one-committed-version");
}

TEST_F(JudgeTest, SeesTheDeletedComeBack) {
  put(a_);
  const ipc::View view = view_of(got(a_));
  clients_->remove(client_, a_, kNoTimeout);
  world_->run_for(Duration::s(1));
  const RequestNumber late = clients_->get(client_, {a_});
  answer(late, view);
  EXPECT_EQ(violated(), "deleted-stays-deleted");
}

TEST_F(JudgeTest, SeesANameRefusedThoughItsDeleteHasEnded) {
  put(a_);
  clients_->remove(client_, a_, kNoTimeout);
  world_->run_for(Duration::s(1));
  const RequestNumber again = clients_->put(client_, a_, 50, kNoTimeout);
  answer(again, ipc::Failed{Code::kDeleted, ""});
  EXPECT_EQ(violated(), "names-are-free-again");
}

TEST_F(JudgeTest, SeesWhatALaterPutHasReplaced) {
  put(a_);
  judge_->disturbed(true);  // a partition: the other side puts it again
  world_->run_for(Duration::s(10));
  PutRecord& later = ledger_.puts.emplace_back(ledger_.puts.back());
  later.began = later.sealed = later.done = world_->now();
  ledger_.objects[a_].puts.push_back(static_cast<PutNumber>(ledger_.puts.size() - 1));
  judge_->disturbed(false);
  got(a_);
  EXPECT_EQ(violated(), "");
  judge_->settled();
  world_->run_for(Duration::s(1));
  got(a_);
  EXPECT_EQ(violated(), "newest-put-stays");
}

// A node that nobody knew at the time of the delete may show its object for a moment, and not longer.
TEST_F(JudgeTest, SeesTheDeletedComeBackAlsoIfNobodyKnewIt) {
  for (const Duration later : {Duration::ms(500), Duration::ms(1100)}) {
    const ObjectId id = ObjectId::named(std::to_string(later.ns));
    put(id);
    ledger_.objects[id].removes.push_back({world_->now(), world_->now(), false});
    world_->run_for(later);
    const RequestNumber late = got(id);
    clients_->release(ledger_.requests[late].held);
    EXPECT_EQ(violated(), later < Duration::s(1) ? "" : "deleted-stays-deleted");
  }
}

TEST_F(JudgeTest, IsLenientOnlyWhileDisturbed) {
  put(a_);
  judge_->disturbed(true);
  answer(pending_get(a_), ipc::Failed{Code::kLost, ""});
  EXPECT_EQ(violated(), "");
  judge_->disturbed(false);
  answer(pending_get(a_), ipc::Failed{Code::kLost, ""});
  EXPECT_EQ(violated(), "");  // its consequences may still show
}

TEST_F(JudgeTest, AnotherCopyIsNotFollowedWithoutAReset) {
  put(a_);
  const ipc::View view = view_of(got(a_));
  const ipc::Opened opened{view.copy, view.version, view.offset, view.size, {}, view.size};
  const RequestNumber follow = clients_->get(client_, {a_, kNoTimeout, false, true});
  answer(follow, opened);
  answer(follow, ipc::Reset{});
  answer(follow, opened);
  EXPECT_EQ(violated(), "");
  answer(follow, opened);
  EXPECT_EQ(violated(), "followers-are-reset");
}

TEST_F(JudgeTest, AFollowerEndsWithTheVersionItFollowed) {
  put(a_);
  ipc::View view = view_of(got(a_));
  const RequestNumber follow = clients_->get(client_, {a_, kNoTimeout, false, true});
  answer(follow, ipc::Opened{view.copy, view.version, view.offset, view.size, {}, view.size});
  ++view.version;
  answer(follow, view);
  EXPECT_EQ(violated(), "followers-are-reset");
}

}  // namespace
}  // namespace hoplite::sim
