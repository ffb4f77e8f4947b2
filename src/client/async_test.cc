// Many calls at once: futures, callbacks, cancellation, several threads, and a daemon that misbehaves meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "base/random.h"
#include "client/test_daemon.h"

namespace hoplite::client {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(Async, ManyPutsAndGetsFromOneThread) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  constexpr std::size_t kObjects = 500;
  std::vector<Future<ObjectId>> puts;
  const std::size_t before = daemon.receives();
  for (std::size_t i = 0; i < kObjects; ++i) puts.push_back(client.put_async(as_bytes(std::to_string(i))));
  std::vector<Future<hoplite::View>> gets;
  for (auto& put : puts) gets.push_back(client.get_async(*put.get()));
  for (std::size_t i = 0; i < kObjects; ++i) EXPECT_EQ(text_of(gets[i].get()->bytes()), std::to_string(i));
  // They travelled in batches.
  EXPECT_LT(daemon.receives() - before, kObjects);
}

TEST(Async, ARequestIsSentAlthoughNobodyWaits) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  auto first = client.put_async(as_bytes("1"));
  auto second = client.put_async(as_bytes("2"));
  EXPECT_EQ(daemon.await<ipc::Put>(2).size(), 2U);
  EXPECT_TRUE(second.get().ok());
  EXPECT_TRUE(first.get().ok());
}

TEST(Async, AFutureCanBePolled) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  const ObjectId id = ObjectId::named("later");
  auto future = client.get_async(id);
  EXPECT_FALSE(future.ready());
  EXPECT_FALSE(future.wait_for(2ms));
  daemon.await<ipc::Get>(1);
  daemon.store(id, "now");
  const auto give_up = std::chrono::steady_clock::now() + 20s;
  while (!future.ready() && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
  EXPECT_TRUE(future.ready());
  EXPECT_TRUE(future.wait_for(0ns));
  EXPECT_EQ(text_of(future.get()->bytes()), "now");
  EXPECT_FALSE(future.valid());
}

TEST(Async, ADroppedFutureGivesItsViewBack) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  const ObjectId id = *client.put(as_bytes("x"));
  {
    auto done = client.get_async(id);
    EXPECT_TRUE(done.wait_for(20s));
  }
  EXPECT_EQ(daemon.await_releases(1).size(), 1U);
  const ObjectId missing = ObjectId::named("missing");
  {
    auto pending = client.get_async(missing);
    daemon.await<ipc::Get>(2);
  }
  EXPECT_EQ(daemon.await<ipc::Cancel>(1).size(), 1U);
}

TEST(Async, ManyViewsAreGivenBackInMessagesThatTheDaemonTakes) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  const ObjectId id = *client.put(as_bytes("x"));
  constexpr std::size_t kViews = 9000;
  {
    std::vector<Future<hoplite::View>> gets;
    for (std::size_t i = 0; i < kViews; ++i) gets.push_back(client.get_async(id));
    std::vector<hoplite::View> views;
    for (auto& get : gets) views.push_back(*get.get());
  }
  EXPECT_EQ(daemon.await_releases(kViews).begin()->second, static_cast<int>(kViews));
  for (const auto& [request, release] : daemon.await<ipc::Release>(1)) EXPECT_LE(release.copies.size(), 4000U);
}

TEST(Async, ADroppedPutIsStillAPut) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  const ObjectId id = ObjectId::named("dropped");
  { auto dropped = client.put_async(as_bytes("here"), {.id = id}); }
  EXPECT_EQ(text_of(client.get(id)->bytes()), "here");
}

TEST(Async, APutJustBeforeTheClientEndsIsSent) {
  FakeDaemon daemon;
  {
    auto client = daemon.connect();
    auto first = client.put_async(as_bytes("1"));
    auto second = client.put_async(as_bytes("2"));
  }
  EXPECT_EQ(daemon.await<ipc::Put>(2).size(), 2U);
}

TEST(Async, CallbacksRunOnTheClientsOwnThread) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  std::promise<std::pair<std::thread::id, std::string>> got;
  client.put_async(as_bytes("payload")).then([&](Result<ObjectId> id) {
    // Another call from inside a callback.
    client.get_async(*id).then(
        [&](Result<hoplite::View> view) { got.set_value({std::this_thread::get_id(), text_of(view->bytes())}); });
  });
  const auto [thread, text] = got.get_future().get();
  EXPECT_NE(thread, std::this_thread::get_id());
  EXPECT_EQ(text, "payload");
}

TEST(Async, CallbacksRunWhileAnotherThreadWaitsInACall) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  const ObjectId never = ObjectId::named("late");
  std::thread waiting([&] { EXPECT_TRUE(client.get(never).ok()); });
  daemon.await<ipc::Get>(1);
  for (int i = 0; i < 20; ++i) {
    std::promise<std::thread::id> ran;
    client.put_async(as_bytes("x")).then([&](Result<ObjectId> id) {
      EXPECT_TRUE(id.ok());
      ran.set_value(std::this_thread::get_id());
    });
    EXPECT_NE(ran.get_future().get(), waiting.get_id());
  }
  daemon.store(never, "x");
  waiting.join();
}

TEST(Async, CancelEndsACall) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  auto future = client.get_async(ObjectId::named("never"));
  future.cancel();
  EXPECT_EQ(future.get().code(), Code::kCancelled);

  std::promise<Code> code;
  RunningCall running =
      client.get_async(ObjectId::named("never")).then([&](Result<hoplite::View> view) { code.set_value(view.code()); });
  running.cancel();
  EXPECT_EQ(code.get_future().get(), Code::kCancelled);
  running.cancel();        // ended already
  RunningCall().cancel();  // nobody's
  EXPECT_TRUE(client.put(as_bytes("still works")).ok());
}

TEST(Async, EverythingThatWaitsHasAFuture) {
  FakeDaemon daemon({.arena_bytes = 16 * kMiB, .inline_bytes = 64});
  auto client = daemon.connect();
  const ObjectId there = *client.put(as_bytes("x"));
  auto created = client.create_async(1000, {.array = {DType::kF32}});
  auto waited = client.wait_async({there, ObjectId::named("missing")}, 1);
  auto gathered = client.gather_async({there, there});
  auto status = client.status_async();
  auto writer = created.get();
  ASSERT_TRUE(writer.ok()) << writer.error().to_string();
  auto sealed = writer->seal_async();
  EXPECT_EQ(writer->seal_async().get().code(), Code::kInvalidArgument) << "it is being sealed";
  EXPECT_EQ(*sealed.get(), writer->id());
  EXPECT_THAT(*waited.get(), ::testing::ElementsAre(there));
  EXPECT_EQ(gathered.get()->size(), 2U);
  EXPECT_EQ(status.get()->incarnation, 3U);
  auto removed = client.remove_async(there);
  EXPECT_TRUE(*removed.get());
}

TEST(Async, AFutureIsUsedOnce) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  auto future = client.put_async(as_bytes("x"));
  EXPECT_TRUE(future.get().ok());
  EXPECT_FALSE(future.valid());
  EXPECT_TRUE(future.ready());
  EXPECT_EQ(future.get().code(), Code::kInvalidArgument);
  future.cancel();  // of nothing
  Code code = Code::kOk;
  future.then([&](const Result<ObjectId>& id) { code = id.code(); });
  EXPECT_EQ(code, Code::kInvalidArgument);
}

TEST(Async, ACallbackForAResultThatIsThereRunsOnTheClientsThread) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  auto future = client.put_async(as_bytes("x"));
  EXPECT_TRUE(future.wait_for(20s));
  std::promise<std::thread::id> ran;
  future.then([&](const Result<ObjectId>& id) {
    EXPECT_TRUE(id.ok());
    ran.set_value(std::this_thread::get_id());
  });
  EXPECT_NE(ran.get_future().get(), std::this_thread::get_id());
}

TEST(Async, ACallbackForAClientThatIsGoneRunsAtOnce) {
  FakeDaemon daemon;
  Future<hoplite::View> future;
  {
    auto client = daemon.connect();
    future = client.get_async(ObjectId::named("never"));
  }
  Code code = Code::kOk;
  future.then([&](const Result<hoplite::View>& view) { code = view.code(); });
  EXPECT_EQ(code, Code::kUnavailable);
}

TEST(Async, OnlyCallsThatChangeNothingEndWithTheirFuture) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  daemon.intercept([&](std::uint64_t, const ipc::Request& message, ByteView) {
    return std::holds_alternative<ipc::Reduce>(message) || std::holds_alternative<ipc::Remove>(message);
  });
  const ObjectId missing = ObjectId::named("missing");
  { auto reduce = client.reduce_async({missing, ObjectId::named("other")}); }
  { auto remove = client.remove_async(missing); }
  { auto wait = client.wait_async({missing}, 1); }
  { auto gather = client.gather_async({missing, ObjectId::named("other")}); }
  std::vector<std::uint64_t> expected = {daemon.await<ipc::Wait>(1)[0].first};
  for (const auto& [request, get] : daemon.await<ipc::Get>(2)) expected.push_back(request);
  std::vector<std::uint64_t> cancelled;
  for (const auto& [request, cancel] : daemon.await<ipc::Cancel>(3)) cancelled.push_back(cancel.target);
  EXPECT_THAT(cancelled, ::testing::UnorderedElementsAreArray(expected));
}

TEST(Async, AGatherCanBeCancelledAndHasACallback) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  const auto ids = {ObjectId::named("a"), ObjectId::named("b")};
  std::promise<Code> code;
  RunningCall running = client.gather_async(ids).then(
      [&](const Result<std::vector<hoplite::View>>& views) { code.set_value(views.code()); });
  daemon.await<ipc::Get>(2);
  running.cancel();
  EXPECT_EQ(code.get_future().get(), Code::kCancelled);
  daemon.pause();
  EXPECT_EQ(client.gather(ids, {.timeout = 1ms}).code(), Code::kTimedOut) << "the daemon does not answer";
  daemon.resume();
  for (const ObjectId id : ids) daemon.store(id, "there");
  EXPECT_EQ(client.gather(ids)->size(), 2U);
}

TEST(Async, EveryPendingCallFailsWhenTheDaemonDies) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  const ObjectId id = ObjectId::named("never");
  auto future = client.get_async(id);
  std::promise<Result<hoplite::View>> called;
  client.get_async(id).then([&](Result<hoplite::View> view) { called.set_value(std::move(view)); });
  auto follower = client.follow(id);
  auto gather = client.gather_async({id, id});
  std::thread blocked([&] {
    const auto view = client.get(id);
    EXPECT_EQ(view.code(), Code::kUnavailable);
    EXPECT_THAT(view.error().message, HasSubstr(id.to_string()));
    EXPECT_THAT(view.error().message, HasSubstr(daemon.socket_path()));
  });
  daemon.await<ipc::Get>(6);
  daemon.hang_up();
  blocked.join();
  EXPECT_EQ(future.get().code(), Code::kUnavailable);
  EXPECT_EQ(called.get_future().get().code(), Code::kUnavailable);
  EXPECT_EQ(follower->next().code(), Code::kUnavailable);
  EXPECT_EQ(gather.get().code(), Code::kUnavailable);
  EXPECT_EQ(client.put(as_bytes("x")).code(), Code::kUnavailable);
  EXPECT_EQ(client.put_async(as_bytes("x")).get().code(), Code::kUnavailable);
}

TEST(Async, ClosingTheClientEndsWhatIsUnderWay) {
  FakeDaemon daemon;
  std::promise<Code> code;
  Future<hoplite::View> future;
  {
    auto client = daemon.connect();
    future = client.get_async(ObjectId::named("never"));
    client.get_async(ObjectId::named("never")).then([&](Result<hoplite::View> view) { code.set_value(view.code()); });
  }
  EXPECT_EQ(code.get_future().get(), Code::kUnavailable);
  EXPECT_THAT(future.get().error().message, HasSubstr("the client was closed"));
}

TEST(Async, ACallbackMayDestroyTheClient) {
  FakeDaemon daemon;
  auto client = std::make_unique<hoplite::Client>(daemon.connect());
  std::promise<void> done;
  client->put_async(as_bytes("x")).then([&](Result<ObjectId> id) {
    EXPECT_TRUE(id.ok());
    client.reset();
    done.set_value();
  });
  done.get_future().get();
}

TEST(Async, HostileRepliesEndTheConnectionNotTheProcess) {
  std::string malformed;
  ipc::encode_reply(1, ipc::PutDone{}, malformed);
  malformed[ipc::ClientFrameHeader::kSize] = '\x7f';  // a type that there is not
  const std::string huge("\xff\xff\xff\x7f\1\0\0\0\0\0\0\0", 12);
  for (const std::string& bytes : {malformed, huge}) {
    FakeDaemon daemon;
    auto client = daemon.connect();
    daemon.intercept([&](std::uint64_t, const ipc::Request&, ByteView) {
      daemon.send_raw(bytes);
      return true;
    });
    EXPECT_EQ(client.get(ObjectId::named("x")).code(), Code::kInternal);
    EXPECT_FALSE(client.put(as_bytes("x")).ok());
  }
}

TEST(Async, HostileRepliesOfTheRightShapeAreErrors) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  const std::vector<ipc::Reply> replies = {ipc::View{1, 1, 1ULL << 40, 10, ""},
                                           ipc::View{1, 1, ~0ULL - 4, 10, ""},
                                           ipc::PutDone{},
                                           ipc::Created{{}, 1, 0, 5},
                                           ipc::Created{{}, 1, 1ULL << 50, 1ULL << 50},
                                           ipc::Grown{5},
                                           ipc::Failed{Code::kOk, "ok?"},
                                           ipc::Welcome{}};
  for (const ipc::Reply& hostile : replies) {
    daemon.intercept([&](std::uint64_t request, const ipc::Request& message, ByteView) {
      if (std::holds_alternative<ipc::Get>(message) || std::holds_alternative<ipc::Create>(message))
        daemon.reply(request, hostile);
      return true;
    });
    EXPECT_FALSE(client.get(ObjectId::named("x")).ok()) << hostile.index();
    EXPECT_FALSE(client.create(1 << 20).ok()) << hostile.index();
  }
  // Replies to nobody are dropped.
  daemon.intercept([&](std::uint64_t, const ipc::Request&, ByteView) {
    daemon.reply(99999, ipc::PutDone{});
    return false;
  });
  EXPECT_TRUE(client.put(as_bytes("x")).ok());
}

TEST(Async, ATruncatedReplyIsAnEnd) {
  std::string whole;
  encode_reply(1, ipc::View{1, 1, 0, 10, "some metadata"}, whole);
  for (std::size_t length = 1; length < whole.size(); length += 7) {
    FakeDaemon daemon;
    auto client = daemon.connect();
    daemon.intercept([&](std::uint64_t, const ipc::Request&, ByteView) {
      daemon.send_raw(whole.substr(0, length));
      daemon.hang_up();
      return true;
    });
    EXPECT_EQ(client.get(ObjectId::named("x")).code(), Code::kUnavailable) << length;
  }
}

TEST(Async, RandomBytesFromTheDaemonNeverCrash) {
  Random random(7);
  for (int round = 0; round < 50; ++round) {
    std::string bytes;
    ipc::encode_reply(1, ipc::Opened{1, 1, random.next(), random.next(), "m", random.next()}, bytes);
    encode_reply(1, ipc::View{1, 1, random.next(), random.next(), "m"}, bytes);
    for (int flips = static_cast<int>(random.below(4)); flips >= 0; --flips)
      bytes[random.below(bytes.size())] = static_cast<char>(random.next());
    FakeDaemon daemon;
    auto client = daemon.connect();
    daemon.intercept([&](std::uint64_t, const ipc::Request& message, ByteView) {
      if (std::holds_alternative<ipc::Get>(message)) daemon.send_raw(bytes);
      return true;
    });
    auto follower = client.follow(ObjectId::named("x"));
    for (int step = 0; step < 4; ++step) static_cast<void>(follower->next(1ms));
  }
}

TEST(Async, ADaemonThatDoesNotReadHoldsCallersBack) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  daemon.pause();
  const std::string bytes(4000, 'x');
  std::atomic<int> submitted = 0;
  std::vector<Future<ObjectId>> puts;
  std::thread putting([&] {
    for (int i = 0; i < 2000; ++i) {  // 8 MB: more than the queue and the socket take
      puts.push_back(client.put_async(as_bytes(bytes)));
      ++submitted;
    }
  });
  const auto give_up = std::chrono::steady_clock::now() + 20s;
  while (submitted < 1000 && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(50ms);
  EXPECT_LT(submitted, 2000);
  daemon.resume();
  putting.join();
  for (auto& put : puts) EXPECT_TRUE(put.get().ok());
}

TEST(Async, AStuckDaemonDoesNotHoldAPutWithADeadline) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  daemon.pause();
  const std::string bytes(4000, 'x');
  std::vector<Future<ObjectId>> puts;
  do {
    puts.push_back(client.put_async(as_bytes(bytes), {.timeout = 1ms}));
  } while (puts.size() < 2000 && !puts.back().ready());  // the first one that finds no room waits, in vain
  EXPECT_LT(puts.size(), 2000U);
  EXPECT_EQ(puts.back().get().code(), Code::kTimedOut);
  EXPECT_EQ(puts.front().get().code(), Code::kTimedOut);
  daemon.resume();
}

// Threads that block, threads that use futures and callbacks, all at once: nobody is forgotten.
TEST(Async, ManyThreadsShareOneClient) {
  FakeDaemon daemon({.arena_bytes = 256 * kMiB});
  auto client = daemon.connect();
  constexpr int kRounds = 300;
  std::atomic<int> callbacks = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        const std::string text = std::to_string(t * 1000 + i);
        const auto id = client.put(as_bytes(text));
        ASSERT_TRUE(id.ok());
        ASSERT_EQ(text_of(client.get(*id)->bytes()), text);
      }
    });
  threads.emplace_back([&] {
    std::vector<Future<ObjectId>> puts;
    for (int i = 0; i < kRounds; ++i) {
      puts.push_back(client.put_async(as_bytes("future")));
      if (puts.size() == 16) {
        for (auto& put : puts) ASSERT_TRUE(put.get().ok());
        puts.clear();
      }
    }
  });
  threads.emplace_back([&] {
    for (int i = 0; i < kRounds; ++i)
      client.put_async(as_bytes("callback")).then([&](Result<ObjectId> id) {
        EXPECT_TRUE(id.ok());
        ++callbacks;
      });
  });
  for (auto& thread : threads) thread.join();
  const auto give_up = std::chrono::steady_clock::now() + 20s;
  while (callbacks < kRounds && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(callbacks, kRounds);
}

TEST(Async, BlockingCallsGoOnWhileALongGetIsOutstanding) {
  FakeDaemon daemon;
  auto client = daemon.connect();
  auto future = client.get_async(ObjectId::named("late"));
  std::this_thread::sleep_for(10ms);  // the service has begun to read for it
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(client.put(as_bytes("x")).ok());
  daemon.store(ObjectId::named("late"), "there");
  EXPECT_EQ(text_of(future.get()->bytes()), "there");
}

}  // namespace
}  // namespace hoplite::client
