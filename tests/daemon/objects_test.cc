// Putting, getting and deleting among real daemons.
#include <array>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster.h"

namespace hoplite::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kMiB = 1 << 20;

// Puts at `from` and gets at `to`; the bytes must be the same.
void put_and_get(Client& from, Client& to, std::size_t size) {
  const auto id = from.put(pattern(size, size), {.metadata = "float32"});
  ASSERT_TRUE(id.ok()) << id.error().to_string();
  const auto view = to.get(*id, {.timeout = 30s});
  ASSERT_TRUE(view.ok()) << view.error().to_string();
  EXPECT_EQ(difference(view->bytes(), size, size), "") << size;
  EXPECT_EQ(view->metadata(), "float32");
}

TEST(Objects, OfEverySizeReachTheOtherNode) {
  Cluster cluster;
  cluster.start_many(2);
  Client a = cluster[0].connect();
  Client b = cluster[1].connect();
  for (const std::size_t size : {0ul, 1ul, 63ul, 1024ul, 65535ul, 65536ul, 65537ul, 1000003ul, 20 * kMiB}) {
    put_and_get(a, b, size);
    put_and_get(b, a, size);
    put_and_get(a, a, size);
  }
}

TEST(Objects, ASecondGetFromTheSameNodeIsServedThere) {
  Cluster cluster;
  cluster.start_many(2);
  Client source = cluster[0].connect();
  const auto id = source.put(pattern(4 * kMiB, 7));
  ASSERT_TRUE(id.ok());
  for (int i = 0; i < 3; ++i) {
    Client reader = cluster[1].connect();
    const auto view = reader.get(*id, {.timeout = 30s});
    ASSERT_TRUE(view.ok()) << view.error().to_string();
    EXPECT_EQ(difference(view->bytes(), 4 * kMiB, 7), "");
  }
  const auto status = source.status();
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(status->bytes_out, 4 * kMiB) << "it travelled once";
}

TEST(Objects, CanBeWaitedForBeforeTheyExist) {
  Cluster cluster;
  cluster.start_many(3);
  Client a = cluster[0].connect();
  Client b = cluster[1].connect();
  Client c = cluster[2].connect();
  for (const std::size_t size : {100ul, 3 * kMiB}) {
    const ObjectId id = a.new_id();
    auto early = c.get_async(id, {.timeout = 30s});
    EXPECT_FALSE(early.wait_for(50ms));
    ASSERT_TRUE(b.put(pattern(size, 3), {.id = id}).ok());
    const auto view = early.get();
    ASSERT_TRUE(view.ok()) << view.error().to_string();
    EXPECT_EQ(difference(view->bytes(), size, 3), "");
  }
}

TEST(Objects, AGetOfWhatNobodyPutTimesOutAndSaysSo) {
  Cluster cluster;
  cluster.start_many(2);
  Client client = cluster[1].connect();
  const ObjectId id = cluster[0].connect().new_id();
  const auto view = client.get(id, {.timeout = 200ms});
  ASSERT_FALSE(view.ok());
  EXPECT_EQ(view.code(), Code::kTimedOut);
  EXPECT_THAT(view.error().message, HasSubstr(id.to_string()));
}

TEST(Objects, ASecondPutOfAnIdExists) {
  Cluster cluster;
  cluster.start_many(2);
  Client a = cluster[0].connect();
  Client b = cluster[1].connect();
  for (const std::size_t size : {10ul, 2 * kMiB}) {
    const ObjectId id = a.new_id();
    ASSERT_TRUE(a.put(pattern(size, 1), {.id = id}).ok());
    EXPECT_EQ(b.put(pattern(size, 2), {.id = id, .timeout = 10s}).code(), Code::kExists);
    EXPECT_EQ(a.put(pattern(size, 2), {.id = id, .timeout = 10s}).code(), Code::kExists);
    const auto view = b.get(id, {.timeout = 10s});
    ASSERT_TRUE(view.ok()) << view.error().to_string();
    EXPECT_EQ(difference(view->bytes(), size, 1), "");
  }
}

TEST(Objects, NamesAreTheSameEverywhere) {
  Cluster cluster;
  cluster.start_many(3);
  const ObjectId id = ObjectId::named("model/weights");
  ASSERT_TRUE(cluster[2].connect().put(pattern(100'000, 9), {.id = id}).ok());
  for (std::size_t i = 0; i < 3; ++i) {
    Client client = cluster[i].connect();
    const auto view = client.get(id, {.timeout = 10s});
    ASSERT_TRUE(view.ok()) << view.error().to_string();
    EXPECT_EQ(difference(view->bytes(), 100'000, 9), "");
  }
}

TEST(Objects, DeletingEndsPendingGetsAndKeepsHeldViews) {
  Cluster cluster;
  cluster.start_many(3);
  Client a = cluster[0].connect();
  Client b = cluster[1].connect();
  const auto id = a.put(pattern(2 * kMiB, 4));
  ASSERT_TRUE(id.ok());
  const auto held = b.get(*id, {.timeout = 30s});
  ASSERT_TRUE(held.ok());

  auto removed = a.remove(*id, 10s);
  ASSERT_TRUE(removed.ok()) << removed.error().to_string();
  EXPECT_TRUE(*removed);
  for (std::size_t i = 0; i < 3; ++i) {
    Client late = cluster[i].connect();
    EXPECT_EQ(late.get(*id, {.timeout = 10s}).code(), Code::kDeleted) << i;
    EXPECT_EQ(late.put(pattern(10, 1), {.id = *id, .timeout = 10s}).code(), Code::kDeleted) << i;
  }
  EXPECT_EQ(difference(held->bytes(), 2 * kMiB, 4), "") << "a held view stays valid";
}

TEST(Objects, DeletingAnObjectUnderWayEndsItsGets) {
  Cluster cluster;
  DaemonSetup slow;
  slow.arguments = {"--max-rate", "40mbit"};
  cluster.start_many(3, slow);
  Client a = cluster[0].connect();
  Client b = cluster[1].connect();
  const auto id = a.put(pattern(16 * kMiB, 4));
  ASSERT_TRUE(id.ok());
  auto pending = b.get_async(*id, {.timeout = 60s});
  ASSERT_TRUE(eventually([&] { return bytes_at(b, *id) > kMiB; }));
  Client c = cluster[2].connect();
  ASSERT_TRUE(c.remove(*id, 10s).ok());
  EXPECT_EQ(pending.get().code(), Code::kDeleted);
  EXPECT_TRUE(eventually([&] {
    const auto status = b.status();
    return status.ok() && status->used_bytes == 0;
  })) << "its memory is given back";
}

TEST(Objects, AGetUnderWayCanBeGivenAnotherPriority) {
  Cluster cluster;
  cluster.start();
  Client reader = cluster[0].connect();
  Client other = cluster[0].connect();
  const ObjectId id = ObjectId::named("later");
  auto pending = reader.get_async(id, {.timeout = 60s, .priority = Priority::kLow});
  EXPECT_TRUE(*reader.prioritize(id, Priority::kHigh));
  EXPECT_FALSE(*other.prioritize(id, Priority::kHigh)) << "another client's get";
  ASSERT_TRUE(other.put(pattern(kMiB, 1), {.id = id, .priority = Priority::kHigh}).ok());
  EXPECT_TRUE(pending.get().ok());
  EXPECT_FALSE(*reader.prioritize(id, Priority::kLow)) << "it has ended";
}

TEST(Objects, MemoryReturnsToZeroWhenAllIsDeleted) {
  Cluster cluster;
  cluster.start_many(2);
  Client a = cluster[0].connect();
  Client b = cluster[1].connect();
  std::vector<ObjectId> ids;
  for (std::size_t i = 0; i < 50; ++i) {
    const auto id = a.put(pattern(i * 10'000, i));
    ASSERT_TRUE(id.ok());
    ids.push_back(*id);
    ASSERT_TRUE(b.get(*id, {.timeout = 30s}).ok());
  }
  for (const ObjectId id : ids) ASSERT_TRUE(b.remove(id, 10s).ok());
  for (Client* client : {&a, &b})
    EXPECT_TRUE(eventually([&] {
      const auto status = client->status();
      return status.ok() && status->used_bytes == 0 && status->objects == 0;
    }));
}

TEST(Objects, ReadersFollowAnObjectThatIsBeingWritten) {
  Cluster cluster;
  cluster.start_many(2);
  Client writer = cluster[0].connect();
  Client reader = cluster[1].connect();
  const auto bytes = pattern(4 * kMiB, 11);
  auto object = writer.create(bytes.size());
  ASSERT_TRUE(object.ok()) << object.error().to_string();
  auto follower = reader.follow(object->id(), {.timeout = 60s});
  ASSERT_TRUE(follower.ok()) << follower.error().to_string();

  std::memcpy(object->buffer().data(), bytes.data(), kMiB);
  ASSERT_TRUE(object->advance(kMiB).ok());
  std::span<const std::byte> seen;
  while (seen.size() < kMiB) {
    const auto progress = follower->next(30s);
    ASSERT_TRUE(progress.ok()) << progress.error().to_string() << "; seen " << seen.size() << ", the reader's node has "
                               << bytes_at(reader, object->id()) << ", the writer's " << bytes_at(writer, object->id());
    seen = progress->bytes;
  }
  EXPECT_EQ(difference(seen, kMiB, 11), "");
  EXPECT_EQ(follower->next(100ms).code(), Code::kTimedOut) << "not a byte more than was advanced";

  std::memcpy(object->buffer().data() + kMiB, bytes.data() + kMiB, 3 * kMiB);
  ASSERT_TRUE(object->seal(10s).ok());
  for (;;) {
    const auto progress = follower->next(30s);
    ASSERT_TRUE(progress.ok()) << progress.error().to_string();
    ASSERT_NE(progress->event, Follower::Event::kReset);
    if (progress->event == Follower::Event::kComplete) break;
  }
  EXPECT_EQ(difference(follower->view().bytes(), bytes.size(), 11), "");
}

TEST(Objects, AFailureInPlaceOfAnObjectEndsGetsEverywhere) {
  Cluster cluster;
  cluster.start_many(2);
  Client a = cluster[0].connect();
  Client b = cluster[1].connect();
  for (const std::size_t payload : {0UL, 100UL, kMiB}) {
    const ObjectId id = a.new_id();
    auto waiting = b.get_async(id, {.timeout = 30s});
    const auto failed = a.fail(id, "the task raised ValueError", pattern(payload, 9), 30s);
    ASSERT_TRUE(failed.ok()) << failed.error().to_string();
    const auto got = waiting.get();
    EXPECT_EQ(got.code(), Code::kFailed);
    EXPECT_THAT(got.error().message, HasSubstr("the task raised ValueError"));
    EXPECT_THAT(got.error().message, HasSubstr(id.to_string()));
    std::vector<std::byte> into(payload);
    EXPECT_EQ(b.get_into(id, into, {.timeout = 30s}).code(), Code::kFailed);
    EXPECT_EQ(b.gather({id}, {.timeout = 30s}).code(), Code::kFailed);
    EXPECT_EQ(a.put(pattern(10, 1), {.id = id, .timeout = 30s}).code(), Code::kExists);

    const auto view = b.get(id, {.timeout = 30s, .on_failure = OnFailure::kView});
    ASSERT_TRUE(view.ok()) << view.error().to_string();
    EXPECT_TRUE(view->is_failure());
    EXPECT_EQ(view->metadata(), "the task raised ValueError");
    EXPECT_EQ(difference(view->bytes(), payload, 9), "");
  }
  EXPECT_EQ(a.fail({}, "of nothing").code(), Code::kInvalidArgument);
  EXPECT_EQ(a.fail(a.new_id(), std::string(5000, 'x')).code(), Code::kInvalidArgument);
}

TEST(Objects, ANameIsFreeWhenItWasDeleted) {
  Cluster cluster;
  cluster.start_many(3);
  const ObjectId name = ObjectId::named("again");
  for (unsigned round = 0; round < 10; ++round) {
    Client putter = cluster[round % 3].connect();
    const std::size_t size = round % 2 == 0 ? 500 : 2 * kMiB;
    const auto put = putter.put(pattern(size, round), {.id = name, .timeout = 30s});
    ASSERT_TRUE(put.ok()) << round << ": " << put.error().to_string();
    for (std::size_t i = 0; i < 3; ++i) {
      const auto view = cluster[i].connect().get(name, {.timeout = 30s});
      ASSERT_TRUE(view.ok()) << round << ": " << view.error().to_string();
      EXPECT_EQ(difference(view->bytes(), size, round), "");
    }
    const auto removed = cluster[(round + 1) % 3].connect().remove(name, 30s);
    ASSERT_TRUE(removed.ok()) << round << ": " << removed.error().to_string();
    EXPECT_TRUE(*removed);
  }
}

TEST(Objects, WaitTellsWhatIsGone) {
  Cluster cluster;
  cluster.start_many(2);
  Client a = cluster[0].connect();
  Client b = cluster[1].connect();
  const std::array ids = {a.new_id(), a.new_id()};
  ASSERT_TRUE(a.put(pattern(100, 1), {.id = ids[0]}).ok());
  ASSERT_TRUE(a.remove(ids[0], 30s).ok());
  auto waited = b.wait_or_gone(ids, 2, 60s);
  ASSERT_TRUE(waited.ok()) << waited.error().to_string();
  EXPECT_TRUE(waited->ready.empty());
  ASSERT_EQ(waited->gone.size(), 1u);
  EXPECT_EQ(waited->gone[0].id, ids[0]);
  EXPECT_EQ(waited->gone[0].why, Code::kDeleted);
  ASSERT_TRUE(a.put(pattern(100, 1), {.id = ids[1]}).ok());
  waited = b.wait_or_gone(ids, 1, 60s);
  ASSERT_TRUE(waited.ok()) << waited.error().to_string();
  EXPECT_EQ(waited->ready, std::vector{ids[1]});
}

TEST(Objects, WaitTellsWhichAreReady) {
  Cluster cluster;
  cluster.start_many(2);
  Client a = cluster[0].connect();
  Client b = cluster[1].connect();
  const std::array ids = {a.new_id(), a.new_id(), a.new_id()};
  ASSERT_TRUE(a.put(pattern(100, 1), {.id = ids[1]}).ok());
  auto ready = b.wait(ids, 1, 10s);
  ASSERT_TRUE(ready.ok()) << ready.error().to_string();
  EXPECT_EQ(*ready, std::vector{ids[1]});
  ready = b.wait(ids, 3, 200ms);
  ASSERT_TRUE(ready.ok()) << ready.error().to_string();
  EXPECT_EQ(*ready, std::vector{ids[1]});
}

}  // namespace
}  // namespace hoplite::testing
