#include "hoplite/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "client/test_daemon.h"

namespace hoplite::client {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string pattern(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + i / 251);
  return bytes;
}

TEST(Client, PutsAndGets) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  const auto id = client.put(as_bytes("hello"), {.metadata = "greeting"});
  ASSERT_TRUE(id.ok()) << id.error().to_string();
  const auto view = client.get(*id);
  ASSERT_TRUE(view.ok()) << view.error().to_string();
  EXPECT_EQ(text_of(view->bytes()), "hello");
  EXPECT_EQ(view->metadata(), "greeting");
}

TEST(Client, BusyPollingPutsAndGets) {
  FakeDaemon daemon;
  auto client = daemon.connect(true);
  const auto id = client.put(as_bytes("hello"));
  ASSERT_TRUE(id.ok());
  EXPECT_EQ(text_of(client.get(*id)->bytes()), "hello");
}

TEST(Client, ZeroBytesAreAnObject) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  const auto id = client.put({});
  ASSERT_TRUE(id.ok());
  const auto view = client.get(*id);
  ASSERT_TRUE(view.ok());
  EXPECT_TRUE(*view);
  EXPECT_EQ(view->size(), 0U);
}

TEST(Client, MintsIdsOfItsNodeThatNeverRepeat) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  const ObjectId first = client.new_id();
  const ObjectId second = client.new_id();
  EXPECT_NE(first, second);
  EXPECT_EQ(first.hi, second.hi);
  EXPECT_FALSE(first.is_named());
  EXPECT_EQ(first.lo >> 32, 7U);
}

TEST(Client, LargePutsAreWrittenIntoTheArenaInSteps) {
  FakeDaemon daemon({.arena_bytes = 64 * kMiB});
  auto client = daemon.connect();
  const std::string bytes = pattern(20 * kMiB + 77);
  for (int round = 0; round < 2; ++round) {  // the second time the descriptor is there already
    const auto id = client.put(as_bytes(bytes));
    ASSERT_TRUE(id.ok()) << id.error().to_string();
    EXPECT_EQ(text_of(client.get(*id)->bytes()), bytes);
  }
  EXPECT_EQ(daemon.await<ipc::Create>(2).size(), 2U);
  EXPECT_GE(daemon.await<ipc::Advance>(4).size(), 4U);
}

TEST(Client, APutWithoutRoomForTheMessageIsCreatedInstead) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  daemon.intercept([&](std::uint64_t request, const ipc::Request& message, ByteView) {
    if (!std::holds_alternative<ipc::Put>(message)) return false;
    daemon.reply(request, ipc::UseCreate{});
    return true;
  });
  const auto id = client.put(as_bytes("small"), {.metadata = "m"});
  ASSERT_TRUE(id.ok()) << id.error().to_string();
  const auto view = client.get(*id);
  EXPECT_EQ(text_of(view->bytes()), "small");
  EXPECT_EQ(view->metadata(), "m");

  auto future = client.put_async(as_bytes("async"));
  const auto later = future.get();
  ASSERT_TRUE(later.ok()) << later.error().to_string();
  EXPECT_EQ(text_of(client.get(*later)->bytes()), "async");
  EXPECT_EQ(daemon.await<ipc::Create>(2).size(), 2U);
}

TEST(Client, AFullStoreIsReportedWithTheDaemonsNumbers) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  daemon.intercept([&](std::uint64_t request, const ipc::Request& message, ByteView) {
    if (!std::holds_alternative<ipc::Create>(message)) return false;
    daemon.reply(request, ipc::Failed{Code::kStoreFull, "1 GiB wanted, 3 MiB of 16 MiB free"});
    return true;
  });
  const ObjectId id = ObjectId::named("big");
  const auto put = client.put(as_bytes(pattern(100'000)), {.id = id, .timeout = 5s});
  ASSERT_FALSE(put.ok());
  EXPECT_EQ(put.code(), Code::kStoreFull);
  EXPECT_EQ(put.error().message, "put of " + id.to_string() + ": 1 GiB wanted, 3 MiB of 16 MiB free");
  EXPECT_EQ(client.put_async(as_bytes(pattern(100'000)), {.id = id}).get().code(), Code::kStoreFull);
}

TEST(Client, TheTimeoutIsTheDaemonsToKeep) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  daemon.intercept([&](std::uint64_t request, const ipc::Request& message, ByteView) {
    if (!std::holds_alternative<ipc::Get>(message)) return false;
    daemon.reply(request, ipc::Failed{Code::kTimedOut, "nobody has put it"});
    return true;
  });
  const ObjectId id = ObjectId::named("never");
  const auto view = client.get(id, {.timeout = 5s, .on_lost = OnLost::kWait});
  EXPECT_EQ(view.code(), Code::kTimedOut);
  EXPECT_THAT(view.error().message, HasSubstr(id.to_string()));
  const auto asked = daemon.await<ipc::Get>(1);
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_GT(asked[0].second.timeout_ns, 4'000'000'000);
  EXPECT_LE(asked[0].second.timeout_ns, 5'000'000'000);
  EXPECT_TRUE(asked[0].second.wait_if_lost);
}

TEST(Client, AStuckDaemonIsGivenUpAfterTheGrace) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  daemon.pause();
  const ObjectId id = ObjectId::named("x");
  const auto view = client.get(id, {.timeout = 10ms});
  EXPECT_EQ(view.code(), Code::kTimedOut);
  EXPECT_THAT(view.error().message, HasSubstr("does not respond"));
  auto future = client.get_async(id, {.timeout = 10ms});
  EXPECT_EQ(future.get().code(), Code::kTimedOut);

  // It comes back, and answers what nobody waits for any more: that view is given back.
  daemon.store(id, "late");
  daemon.resume();
  EXPECT_EQ(text_of(client.get(id)->bytes()), "late");
  EXPECT_EQ(daemon.await<ipc::Cancel>(2).size(), 2U);
}

TEST(Client, RepliesMayComeInAnyOrder) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  std::vector<std::uint64_t> numbers;
  const auto first = daemon.store(ObjectId::named("0"), "zero");
  const auto second = daemon.store(ObjectId::named("1"), "one");
  daemon.intercept([&](std::uint64_t request, const ipc::Request& message, ByteView) {
    if (!std::holds_alternative<ipc::Get>(message)) return false;
    numbers.push_back(request);
    if (numbers.size() == 2) {
      daemon.reply(numbers[1], ipc::View{11, 1, second.offset, second.size, ""});
      daemon.reply(numbers[0], ipc::View{10, 1, first.offset, first.size, ""});
    }
    return true;
  });
  auto zero = client.get_async(ObjectId::named("0"));
  auto one = client.get_async(ObjectId::named("1"));
  EXPECT_EQ(text_of(zero.get()->bytes()), "zero");
  EXPECT_EQ(text_of(one.get()->bytes()), "one");
}

TEST(Client, ViewsAreGivenBackOnceEach) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  const ObjectId id = *client.put(as_bytes("shared"));
  {
    auto view = *client.get(id);
    const hoplite::View copy = view;
    view = *client.get(id);
    EXPECT_EQ(text_of(copy.bytes()), "shared");
    EXPECT_EQ(text_of(view.bytes()), "shared");
  }
  const auto released = daemon.await_releases(2);
  ASSERT_EQ(released.size(), 1U);
  EXPECT_EQ(released.begin()->second, 2);
}

TEST(Client, AReleaseTravelsWithTheNextRequest) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  const ObjectId id = *client.put(as_bytes("x"));
  constexpr std::size_t kRounds = 200;
  const std::size_t before = daemon.receives();
  for (std::size_t i = 0; i < kRounds; ++i) ASSERT_TRUE(client.get(id).ok());
  daemon.await_releases(kRounds);
  // One receive for each get, and a few more for what the service sent when the machine was slow.
  EXPECT_LT(daemon.receives() - before, 2 * kRounds);
}

TEST(Client, ViewsOutliveTheDaemonAndTheClient) {
  hoplite::View view;
  {
    FakeDaemon daemon;
    auto client = daemon.connect();
    view = *client.get(*client.put(as_bytes("kept")));
    daemon.hang_up();
    EXPECT_EQ(client.put(as_bytes("more")).code(), Code::kUnavailable);
  }
  EXPECT_EQ(text_of(view.bytes()), "kept");
}

TEST(Client, ViewsCannotBeWritten) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  const auto view = *client.get(*client.put(as_bytes("constant")));
  EXPECT_DEATH(const_cast<std::byte&>(view.bytes()[0]) = std::byte{0}, "");
}

TEST(Client, GetIntoCopiesWhatFits) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  const ObjectId id = *client.put(as_bytes("twelve bytes"));
  std::string out(20, '.');
  const auto size = client.get_into(id, std::as_writable_bytes(std::span(out)));
  ASSERT_TRUE(size.ok());
  EXPECT_EQ(out.substr(0, *size), "twelve bytes");
  std::string small(11, '.');
  EXPECT_EQ(client.get_into(id, std::as_writable_bytes(std::span(small))).code(), Code::kInvalidArgument);
}

TEST(Client, WaitsAndRemoves) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  const ObjectId there = *client.put(as_bytes("x"));
  const ObjectId missing = ObjectId::named("missing");
  const std::vector<ObjectId> ids = {missing, there};
  EXPECT_THAT(*client.wait(ids, 1, 1s), ElementsAre(there));
  EXPECT_THAT(*client.wait({missing, there}, 1, 1s), ElementsAre(there));
  EXPECT_TRUE(client.wait(ids, 0)->empty());
  EXPECT_EQ(client.wait(ids, 3).code(), Code::kInvalidArgument);
  EXPECT_TRUE(*client.remove(there));
  EXPECT_FALSE(*client.remove(there));
}

TEST(Client, RefusesWhatMakesNoSense) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  EXPECT_EQ(client.get(ObjectId()).code(), Code::kInvalidArgument);
  EXPECT_EQ(client.get_async(ObjectId()).get().code(), Code::kInvalidArgument);
  EXPECT_EQ(client.remove(ObjectId()).code(), Code::kInvalidArgument);
  EXPECT_EQ(client.put({}, {.metadata = std::string(5000, 'm')}).code(), Code::kInvalidArgument);
  EXPECT_EQ(client.put_async({}, {.metadata = std::string(5000, 'm')}).get().code(), Code::kInvalidArgument);
}

TEST(Client, SaysHowUrgentTransfersAre) {
  FakeDaemon daemon({.arena_bytes = 16 * kMiB, .inline_bytes = 64});
  auto client = daemon.connect();
  const ObjectId id = *client.put(as_bytes("small"), {.priority = Priority::kLow});
  ASSERT_TRUE(client.put(as_bytes(std::string(100, 'x')), {.priority = Priority::kHigh}).ok());
  ASSERT_TRUE(client.get(id, {.priority = Priority::kHigh}).ok());
  auto follower = client.follow(id, {.priority = Priority::kLow});
  ASSERT_TRUE(client.gather({id}, {.priority = Priority::kHigh}).ok());
  ASSERT_TRUE(client.get(id).ok());
  EXPECT_EQ(daemon.await<ipc::Put>(1)[0].second.priority, Priority::kLow);
  EXPECT_EQ(daemon.await<ipc::Create>(1)[0].second.priority, Priority::kHigh);
  std::vector<Priority> asked;
  for (const auto& [request, get] : daemon.await<ipc::Get>(4)) asked.push_back(get.priority);
  EXPECT_THAT(asked, ElementsAre(Priority::kHigh, Priority::kLow, Priority::kHigh, Priority::kNormal));
}

TEST(Client, ChangesThePriorityOfWhatIsUnderWay) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  daemon.intercept([&](std::uint64_t request, const ipc::Request& message, ByteView) {
    const auto* prioritize = std::get_if<ipc::Prioritize>(&message);
    if (prioritize == nullptr) return false;
    daemon.reply(request, ipc::Prioritized{prioritize->id == ObjectId::named("under way")});
    return true;
  });
  EXPECT_TRUE(*client.prioritize(ObjectId::named("under way"), Priority::kHigh));
  EXPECT_FALSE(*client.prioritize_async(ObjectId::named("other"), Priority::kLow).get());
  const auto asked = daemon.await<ipc::Prioritize>(2);
  EXPECT_EQ(asked[0].second.priority, Priority::kHigh);
  EXPECT_EQ(asked[1].second.priority, Priority::kLow);
  EXPECT_EQ(client.prioritize(ObjectId(), Priority::kHigh).code(), Code::kInvalidArgument);
}

TEST(Client, TellsFacts) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  const auto status = client.status();
  ASSERT_TRUE(status.ok()) << status.error().to_string();
  EXPECT_EQ(status->node, "1122334455667788");
  EXPECT_EQ(status->incarnation, 3U);
  EXPECT_EQ(status->uptime, 1234ms);

  daemon.intercept([&](std::uint64_t request, const ipc::Request& message, ByteView) {
    if (std::holds_alternative<ipc::GetObjects>(message)) {
      ipc::Objects objects;
      objects.objects.push_back(
          {ObjectId::named("a"), 10, 4, CopyState::kGrowing, false, 1, 2, NodeId{5}, NodeId{}, "name=a"});
      objects.truncated = true;
      daemon.reply(request, objects);
    } else {
      ipc::Nodes nodes;
      nodes.nodes.push_back({{NodeId{5}, 1}, {"10.0.0.1", 7411}, Life::kDead, false, 1000, 50});
      daemon.reply(request, nodes);
    }
    return true;
  });
  const auto objects = client.objects();
  ASSERT_TRUE(objects.ok());
  ASSERT_EQ(objects->size(), 1U);
  EXPECT_TRUE(objects->truncated);
  EXPECT_EQ(objects->objects[0].state, CopyState::kGrowing);
  EXPECT_EQ(objects->objects[0].parent, "0000000000000005");
  EXPECT_EQ(objects->objects[0].home, "");
  const auto nodes = client.nodes();
  ASSERT_TRUE(nodes.ok());
  EXPECT_EQ((*nodes)[0].address, "10.0.0.1:7411");
  EXPECT_FALSE((*nodes)[0].alive);
  EXPECT_EQ((*nodes)[0].rtt, 50us);
}

}  // namespace
}  // namespace hoplite::client
