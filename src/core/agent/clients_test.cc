#include "core/agent/clients.h"

#include "core/agent/errands.h"
#include "core/agent/test_parts.h"

namespace hoplite {
namespace {

constexpr ObjectId kId{1, 1};

class ClientsTest : public PartsTest {
 protected:
  Copy* copy_ = &add_copy(kId, CopyLife::kWriting);
};

TEST_F(ClientsTest, NumbersAreTheClientsOwn) {
  clients_.begin({1, 5}, Clients::Kind::kGet, kId, Time::never());
  clients_.begin({2, 5}, Clients::Kind::kPut, kId, Time::never());
  EXPECT_EQ(clients_.find({1, 5})->kind, Clients::Kind::kGet);
  clients_.say({1, 5}, ipc::Reset{});
  EXPECT_NE(clients_.find({1, 5}), nullptr) << "that was not its answer";
  clients_.answer({1, 5}, ipc::PutDone{kId});
  EXPECT_EQ(clients_.find({1, 5}), nullptr);
  EXPECT_EQ(replies<ipc::PutDone>({1, 5}).size(), 1u);
  EXPECT_EQ(clients_.pending_count(), 1u);
}

TEST_F(ClientsTest, AnEndedRequestHasNoDeadline) {
  const Time soon = Time{} + Duration::ms(5);
  clients_.begin({1, 5}, Clients::Kind::kGet, kId, soon);
  clients_.begin({1, 6}, Clients::Kind::kGet, kId, soon);
  EXPECT_EQ(timers_.next(), soon);
  clients_.fail({1, 5}, Code::kLost, "gone");
  EXPECT_EQ(timers_.next(), soon);
  clients_.detach(1);
  EXPECT_EQ(timers_.next(), Time::never());
  EXPECT_FALSE(clients_.is_attached(1));
}

TEST_F(ClientsTest, EveryViewIsGivenBackOnce) {
  clients_.hold_view(1, table_.use(*copy_, CopyUser::kView));
  clients_.hold_view(1, table_.use(*copy_, CopyUser::kView));
  clients_.hold_view(2, table_.use(*copy_, CopyUser::kView));
  clients_.release(1, copy_->key);
  clients_.release(1, copy_->key);
  clients_.release(1, copy_->key);
  EXPECT_EQ(copy_->users(CopyUser::kView), 1u) << "the other client's";
  clients_.check_invariants();
  clients_.detach(2);
  EXPECT_EQ(copy_->users(CopyUser::kView), 1u) << "its process may still look";
  clients_.forget(2);
  EXPECT_TRUE(copy_->is_idle());
}

TEST_F(ClientsTest, WhatWasWrittenIsGivenBackWithoutAConnectionOnly) {
  clients_.begin_writing(1, table_.use(*copy_, CopyUser::kWriter));
  clients_.release(1, copy_->key);
  EXPECT_FALSE(copy_->is_idle()) << "it is for the writer to seal it, or to abort";
  clients_.detach(1);
  EXPECT_FALSE(copy_->is_idle()) << "its process may still write";
  clients_.release(1, copy_->key);
  EXPECT_TRUE(copy_->is_idle());
}

TEST_F(ClientsTest, WhatIsHeldIsCountedOnceForEachCopy) {
  const Copy& other = add_copy({1, 2}, CopyLife::kComplete);
  clients_.begin_writing(1, table_.use(*copy_, CopyUser::kWriter));
  clients_.hold_view(1, table_.use(*copy_, CopyUser::kView));
  clients_.hold_view(1, table_.use(table_.at(other.key), CopyUser::kView));
  clients_.hold_view(1, table_.use(table_.at(other.key), CopyUser::kView));
  const auto held = [&] { return clients_.holdings().at(0); };
  EXPECT_EQ(held().bytes, copy_->extent.size + other.extent.size);
  EXPECT_EQ(held().views, 3u);
  clients_.end_writing(1, copy_->key);
  EXPECT_EQ(held().bytes, copy_->extent.size + other.extent.size);
  clients_.release(1, copy_->key);
  EXPECT_EQ(held().bytes, other.extent.size);
  clients_.check_invariants();
  clients_.detach(1);
  clients_.release(1, other.key);
  EXPECT_EQ(held().views, 1u) << "views are given back one by one, also without a connection";
  clients_.release(1, other.key);
  EXPECT_TRUE(clients_.holdings().empty());
}

TEST_F(ClientsTest, OnlyItsWriterMayGoOnWriting) {
  clients_.begin_writing(1, table_.use(*copy_, CopyUser::kWriter));
  EXPECT_EQ(clients_.written_by(1, copy_->key), copy_);
  EXPECT_EQ(clients_.written_by(2, copy_->key), nullptr);
  clients_.refuse_writing(1, copy_->key, Code::kExists);
  EXPECT_EQ(clients_.end_writing(1, copy_->key), Code::kExists) << "it is told at the end";
  EXPECT_EQ(clients_.written_by(1, copy_->key), nullptr);
  EXPECT_TRUE(copy_->is_idle());
}

TEST(Errands, AreSentAgainUntilTheyAreAnswered) {
  const Limits limits;
  Timers timers;
  Errands errands(limits, timers);
  const NodeRef home{NodeId{4}, 0};
  errands.add(77, {1, 5}, kId, DeleteRequest{0, kId});
  EXPECT_EQ(std::get<DeleteRequest>(errands.send_to(77, home, Time{})).request, 77u);
  EXPECT_EQ(timers.next(), Time{} + limits.request_retry);
  EXPECT_EQ(errands.sent_to(home), std::vector<std::uint64_t>{77});
  errands.check_invariants();
  errands.send_at(77, Time{} + Duration::ms(1));
  EXPECT_EQ(timers.next(), Time{} + Duration::ms(1));
  EXPECT_EQ(errands.take(77).asked.request, 5u);
  EXPECT_EQ(errands.find(77), nullptr);
  EXPECT_EQ(timers.next(), Time::never());
}

}  // namespace
}  // namespace hoplite
