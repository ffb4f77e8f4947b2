// Objects that are written in steps, and read while they grow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "client/test_daemon.h"

namespace hoplite::client {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(Writer, WritesAdvancesAndSeals) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  auto writer = client.create(10, {.metadata = "m"});
  ASSERT_TRUE(writer.ok()) << writer.error().to_string();
  ASSERT_EQ(writer->buffer().size(), 10U);
  std::memcpy(writer->buffer().data(), "0123456789", 10);
  EXPECT_TRUE(writer->advance(4).ok());
  EXPECT_TRUE(writer->advance(2).ok());   // never decreases
  EXPECT_TRUE(writer->advance(99).ok());  // nor beyond the end
  const auto id = writer->seal();
  ASSERT_TRUE(id.ok()) << id.error().to_string();
  EXPECT_EQ(*id, writer->id());
  EXPECT_TRUE(writer->buffer().empty());
  EXPECT_EQ(writer->seal().code(), Code::kInvalidArgument);
  EXPECT_EQ(text_of(client.get(*id)->bytes()), "0123456789");
  const auto advances = daemon.await<ipc::Advance>(2);
  ASSERT_EQ(advances.size(), 2U);
  EXPECT_EQ(advances[0].second.bytes, 4U);
  EXPECT_EQ(advances[1].second.bytes, 10U);
  EXPECT_TRUE(daemon.await<ipc::Abort>(0).empty());
}

TEST(Writer, IsGivenUpWhenItIsDropped) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  { auto writer = client.create(10); }
  EXPECT_EQ(daemon.await<ipc::Abort>(1).size(), 1U);
  auto writer = client.create(10);
  writer->abort();
  EXPECT_EQ(writer->advance(5).code(), Code::kInvalidArgument);
  EXPECT_EQ(daemon.await<ipc::Abort>(2).size(), 2U);
  EXPECT_TRUE(daemon.await<ipc::Advance>(0).empty());
}

TEST(Writer, ALateRoomIsGivenBack) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  daemon.pause();
  EXPECT_EQ(client.create(10, {.timeout = 1ms}).code(), Code::kTimedOut);
  daemon.resume();
  EXPECT_EQ(daemon.await<ipc::Abort>(1).size(), 1U);
  // The descriptor that came with it is not lost.
  EXPECT_TRUE(client.create(10).ok());
}

// Plays the daemon's side of one streaming read.
class FollowerTest : public ::testing::Test {
 protected:
  FollowerTest() : client_(daemon_.connect()) {
    daemon_.intercept([this](std::uint64_t request, const ipc::Request& message, ByteView) {
      const auto* get = std::get_if<ipc::Get>(&message);
      if (get == nullptr) return false;
      EXPECT_TRUE(get->follow);
      request_ = request;
      return true;
    });
    extent_ = daemon_.allocate(10);
    std::memcpy(daemon_.memory(extent_), "0123456789", 10);
    other_ = daemon_.allocate(6);
    std::memcpy(daemon_.memory(other_), "abcdef", 6);
  }

  Follower follow(const GetOptions& options = {}) {
    auto follower = client_.follow(id_, options);
    EXPECT_TRUE(follower.ok());
    daemon_.await<ipc::Get>(1);
    return *std::move(follower);
  }
  void open(CopyKey copy, Extent extent, std::uint64_t bytes) {
    daemon_.reply(request_, ipc::Opened{copy, 1, extent.offset, extent.size, "", bytes});
  }
  void complete(CopyKey copy, Extent extent) {
    daemon_.reply(request_, ipc::View{copy, 1, extent.offset, extent.size, "meta"});
  }
  // A round trip: what the daemon sent before it has been read.
  void sync() { EXPECT_TRUE(client_.status().ok()); }

  FakeDaemon daemon_;
  hoplite::Client client_;
  const ObjectId id_ = ObjectId::named("growing");
  std::uint64_t request_ = 0;
  Extent extent_;
  Extent other_;
};

TEST_F(FollowerTest, SeesBytesGrowAndTheEnd) {
  {
    auto follower = follow();
    open(1, extent_, 0);
    auto progress = follower.next();
    ASSERT_TRUE(progress.ok());
    EXPECT_EQ(progress->event, Follower::Event::kBytes);
    EXPECT_EQ(progress->size, 10U);
    EXPECT_EQ(progress->bytes.size(), 0U);
    daemon_.reply(request_, ipc::Grown{4});
    EXPECT_EQ(text_of(follower.next()->bytes), "0123");
    daemon_.reply(request_, ipc::Grown{5});
    daemon_.reply(request_, ipc::Grown{3});  // nonsense: never decreases
    sync();
    EXPECT_EQ(text_of(follower.next(std::chrono::seconds(5))->bytes), "01234");
    daemon_.reply(request_, ipc::Grown{1000});  // nonsense: never beyond the end
    sync();
    EXPECT_EQ(text_of(follower.next()->bytes), "0123456789");
    complete(1, extent_);
    progress = follower.next();
    ASSERT_TRUE(progress.ok());
    EXPECT_EQ(progress->event, Follower::Event::kComplete);
    EXPECT_EQ(text_of(progress->bytes), "0123456789");
    EXPECT_EQ(follower.view().metadata(), "meta");
    EXPECT_EQ(follower.next()->event, Follower::Event::kComplete);
  }
  EXPECT_EQ(daemon_.await_releases(2), (std::map<CopyKey, int>{{1, 2}}));
  EXPECT_TRUE(daemon_.await<ipc::Cancel>(0).empty());
}

TEST_F(FollowerTest, ACompleteObjectIsOneStep) {
  auto follower = follow();
  complete(1, extent_);
  const auto progress = follower.next();
  ASSERT_TRUE(progress.ok());
  EXPECT_EQ(progress->event, Follower::Event::kComplete);
  EXPECT_EQ(progress->size, 10U);
}

TEST_F(FollowerTest, HearsOfAResetAndKeepsTheOldBytesUntilThen) {
  auto follower = follow();
  open(1, extent_, 4);
  const auto before = follower.next();
  daemon_.reply(request_, ipc::Reset{});
  open(2, other_, 2);
  sync();
  EXPECT_EQ(follower.next()->event, Follower::Event::kReset);
  EXPECT_EQ(text_of(before->bytes), "0123");
  EXPECT_TRUE(daemon_.await_releases(0).empty());
  EXPECT_EQ(text_of(follower.next()->bytes), "ab");
  EXPECT_EQ(daemon_.await_releases(1), (std::map<CopyKey, int>{{1, 1}}));
  complete(2, other_);
  EXPECT_EQ(text_of(follower.next()->bytes), "abcdef");
}

TEST_F(FollowerTest, AResetOfBytesThatNobodySawIsSilent) {
  auto follower = follow();
  open(1, extent_, 4);
  daemon_.reply(request_, ipc::Reset{});
  open(2, other_, 2);
  sync();
  EXPECT_EQ(text_of(follower.next()->bytes), "ab");
  EXPECT_EQ(daemon_.await_releases(1), (std::map<CopyKey, int>{{1, 1}}));
}

TEST_F(FollowerTest, ASecondCopyWithoutAResetReplacesTheFirst) {
  auto follower = follow();
  open(1, extent_, 4);
  open(2, other_, 2);  // nonsense: a daemon resets first
  sync();
  EXPECT_EQ(text_of(follower.next()->bytes), "ab");
  EXPECT_EQ(daemon_.await_releases(1), (std::map<CopyKey, int>{{1, 1}})) << "what is not followed is not held";
}

// Whatever it has copied when the reset comes.
TEST_F(FollowerTest, GetIntoCopiesWhatArrivesAndStartsOverAfterAReset) {
  std::string out(20, '.');
  std::thread reader([&] {
    const auto size = client_.get_into(id_, std::as_writable_bytes(std::span(out)));
    ASSERT_TRUE(size.ok()) << size.error().to_string();
    EXPECT_EQ(out.substr(0, *size), "abcdef");
  });
  EXPECT_EQ(daemon_.await<ipc::Get>(1).size(), 1U);
  open(1, extent_, 4);
  daemon_.reply(request_, ipc::Grown{9});
  sync();
  daemon_.reply(request_, ipc::Reset{});
  open(2, other_, 2);
  sync();
  daemon_.reply(request_, ipc::Grown{5});
  complete(2, other_);
  reader.join();
}

TEST_F(FollowerTest, GetIntoSaysThatItDoesNotFitBeforeAllIsThere) {
  std::string out(9, '.');
  daemon_.intercept([this](std::uint64_t request, const ipc::Request& message, ByteView) {
    if (!std::holds_alternative<ipc::Get>(message)) return false;
    daemon_.reply(request, ipc::Opened{1, 1, extent_.offset, extent_.size, "", 4});
    return true;
  });
  EXPECT_EQ(client_.get_into(id_, std::as_writable_bytes(std::span(out))).code(), Code::kInvalidArgument);
}

TEST_F(FollowerTest, EndsWithTheReason) {
  auto follower = follow();
  open(1, extent_, 4);
  EXPECT_TRUE(follower.next().ok());
  daemon_.reply(request_, ipc::Failed{Code::kLost, "every copy was on nodes that died"});
  const auto end = follower.next();
  EXPECT_EQ(end.code(), Code::kLost);
  EXPECT_THAT(end.error().message, HasSubstr(id_.to_string()));
  EXPECT_EQ(follower.next().code(), Code::kLost);
}

TEST_F(FollowerTest, AStepMayTimeOutAndGoOn) {
  auto follower = follow();
  open(1, extent_, 4);
  EXPECT_TRUE(follower.next().ok());
  EXPECT_EQ(follower.next(5ms).code(), Code::kTimedOut);
  daemon_.reply(request_, ipc::Grown{6});
  EXPECT_EQ(text_of(follower.next()->bytes), "012345");
}

TEST_F(FollowerTest, IsCancelledWhenItIsDropped) {
  {
    auto follower = follow();
    open(1, extent_, 4);
    EXPECT_TRUE(follower.next().ok());
  }
  const auto cancels = daemon_.await<ipc::Cancel>(1);
  ASSERT_EQ(cancels.size(), 1U);
  EXPECT_EQ(cancels[0].second.target, request_);
  EXPECT_EQ(daemon_.await_releases(1), (std::map<CopyKey, int>{{1, 1}}));
  // What was under way is given back, too.
  open(2, other_, 1);
  complete(2, other_);
  sync();
  EXPECT_EQ(daemon_.await_releases(3), (std::map<CopyKey, int>{{1, 1}, {2, 2}}));
}

TEST_F(FollowerTest, AStuckDaemonIsGivenUp) {
  auto follower = follow({.timeout = 1ms});
  EXPECT_EQ(follower.next().code(), Code::kTimedOut);
  EXPECT_EQ(follower.next().code(), Code::kTimedOut);
}

}  // namespace
}  // namespace hoplite::client
