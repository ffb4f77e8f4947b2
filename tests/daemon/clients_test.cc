// Client processes that die, misbehave or are not who they should be.
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "child.h"
#include "cluster.h"
#include "raw_client.h"

namespace hoplite::testing {
namespace {

constexpr std::size_t kMiB = 1 << 20;

TEST(Clients, OneKilledWhileItWritesLeavesNothing) {
  Cluster cluster;
  cluster.start_many(2);
  const ObjectId id = ObjectId::named("half written");
  Child writer([&] {
    Client client = cluster[0].connect();
    auto object = client.create(8 * kMiB, {.id = id, .timeout = 30s});
    if (!object.ok()) return 1;
    std::fill_n(object->buffer().data(), 4 * kMiB, std::byte{1});
    if (!object->advance(4 * kMiB)) return 1;
    wait_to_be_killed();
  });
  Client client = cluster[0].connect();
  Client reader = cluster[1].connect();
  auto waiting = reader.get_async(id, {.timeout = 60s, .on_lost = OnLost::kWait});
  ASSERT_TRUE(eventually([&] { return bytes_at(reader, id) == 4 * kMiB; })) << "readers follow while it is written";
  writer.kill();
  EXPECT_TRUE(eventually([&] { return client.status()->used_bytes == 0; })) << "its room is given back";
  EXPECT_EQ(client.status()->clients, 1u);
  // It never was an object, so the id is free, and who waits gets the bytes of the one that is.
  const auto again = client.put(pattern(2 * kMiB, 5), {.id = id, .timeout = 30s});
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  const auto view = waiting.get();
  ASSERT_TRUE(view.ok()) << view.error().to_string();
  EXPECT_EQ(difference(view->bytes(), 2 * kMiB, 5), "");
}

TEST(Clients, TheViewsOfOneThatWasKilledAreGivenBack) {
  Cluster cluster;
  Client client = cluster.start({.memory = "32MiB"}).connect();
  const auto id = client.put(pattern(4 * kMiB, 1));
  ASSERT_TRUE(id.ok());
  const auto views = [&]() -> std::uint32_t {
    const auto objects = client.objects();
    if (!objects) return 99;
    for (const ObjectStatus& object : *objects)
      if (object.id == *id) return object.views;
    return 99;
  };
  Child reader([&] {
    Client other = cluster[0].connect();
    const auto view = other.get(*id, {.timeout = 30s});
    if (!view.ok()) return 1;
    wait_to_be_killed();
  });
  ASSERT_TRUE(eventually([&] { return views() == 1; }));
  reader.kill();
  EXPECT_TRUE(eventually([&] { return views() == 0; }));
}

TEST(Clients, AStrayWriteThroughAViewFaults) {
  Cluster cluster;
  Client client = cluster.start().connect();
  const auto id = client.put(pattern(kMiB, 1));
  ASSERT_TRUE(id.ok());
  Child vandal([&] {
    ::signal(SIGSEGV, [](int) { ::_exit(42); });
    Client other = cluster[0].connect();
    const auto view = other.get(*id, {.timeout = 30s});
    if (!view.ok()) return 1;
    const_cast<std::byte&>(*view->data()) = std::byte{0};
    return 0;
  });
  EXPECT_EQ(vandal.wait(), 42);
  EXPECT_EQ(difference(client.get(*id, {.timeout = 30s})->bytes(), kMiB, 1), "");
}

TEST(Clients, OneThatNeverReadsIsNotReadEither) {
  Cluster cluster;
  Daemon& daemon = cluster.start();
  Client client = daemon.connect();
  // A list of objects that takes about 1 MiB, asked for again and again.
  const std::string metadata(4000, 'm');
  for (int i = 0; i < 256; ++i) ASSERT_TRUE(client.put(pattern(10, 1), {.metadata = metadata}).ok());
  const std::uint64_t before = anonymous_kib(daemon.pid());
  RawClient mute(daemon.socket());
  ASSERT_TRUE(mute.ask(1, ipc::Hello{}));
  const std::string frame = RawClient::frame(7, ipc::GetObjects{});
  std::string frames;
  for (int i = 0; i < 1000; ++i) frames += frame;
  // In the end its socket is full, and nobody reads it.
  std::size_t sent = 0;
  auto last_taken = std::chrono::steady_clock::now();
  EXPECT_TRUE(eventually([&] {
    const std::size_t taken = mute.send_some(std::string_view(frames).substr(sent));
    sent = (sent + taken) % frames.size();
    const auto now = std::chrono::steady_clock::now();
    if (taken > 0) last_taken = now;
    return now - last_taken > 1s;
  }));
  EXPECT_LT(anonymous_kib(daemon.pid()), before + 64 * 1024) << "its replies do not pile up";
  EXPECT_EQ(client.status()->clients, 2u);
  EXPECT_TRUE(client.put(pattern(kMiB, 1)).ok()) << "others are not disturbed";
  // Now it reads, and hears what it has asked for: more than was waiting for it.
  std::size_t heard = 0;
  EXPECT_TRUE(eventually([&] { return mute.closed() || (heard += mute.forget(7)) > 20; }));
  EXPECT_GT(heard, 20u);
}

TEST(Clients, RandomBytesEndOnlyTheirOwnConnection) {
  Cluster cluster;
  Daemon& daemon = cluster.start();
  Client client = daemon.connect();
  Random random(1);
  for (int i = 0; i < 200; ++i) {
    RawClient stranger(daemon.socket());
    if (random.chance(0.5)) stranger.ask(1, ipc::Hello{});
    std::string bytes(random.below(200), '\0');
    for (char& c : bytes) c = static_cast<char>(random.next());
    if (random.chance(0.5) && bytes.size() > 13) {  // a frame of the right length with nonsense in it
      const auto length = static_cast<std::uint32_t>(bytes.size() - 12);
      std::memcpy(bytes.data(), &length, sizeof length);
      bytes[12] = static_cast<char>(random.below(20));
    }
    stranger.send(bytes);
  }
  ASSERT_TRUE(daemon.running());
  EXPECT_TRUE(client.put(pattern(kMiB, 1)).ok());
  const std::string log = daemon.log();
  EXPECT_LE(std::count(log.begin(), log.end(), '\n'), 10) << "logged once per process: " << log;
}

TEST(Clients, FiveThousandIdleConnectionsAreBounded) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_cur < 6000) GTEST_SKIP() << "needs 6,000 descriptors";
  Cluster cluster;
  Daemon& daemon = cluster.start();
  std::vector<std::unique_ptr<RawClient>> idle;
  while (idle.size() < 5000) {
    auto client = std::make_unique<RawClient>(daemon.socket());
    if (client->connected()) idle.push_back(std::move(client));
  }
  Client served = daemon.connect();
  EXPECT_TRUE(served.put(pattern(kMiB, 1)).ok()) << "others are served";
  const auto still_open = [&] { return std::count_if(idle.begin(), idle.end(), [](auto& c) { return !c->closed(); }); };
  EXPECT_TRUE(eventually([&] { return still_open() <= 256; }));
  EXPECT_TRUE(eventually([&] { return still_open() == 0; })) << "and none may stay for long";
}

// Another user's process needs the token.
TEST(Clients, AnotherUserNeedsTheToken) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  constexpr uid_t kNobody = 65534;
  Cluster cluster;
  ASSERT_EQ(::chmod(cluster.folder().c_str(), 0755), 0);
  const DaemonSetup open{.arguments = {"--socket-mode", "0666"}};
  DaemonSetup with_token = open;
  with_token.environment = {{"HOPLITE_TOKEN", "correct horse"}};
  Daemon& daemon = cluster.start(with_token);
  Daemon& without_token = cluster.start(open);

  const auto outcome = [&](const Daemon& target, const std::string& token) {
    Child other([&] {
      if (::setuid(kNobody) != 0) return 99;
      return static_cast<int>(target.try_connect(token).code());
    });
    return static_cast<Code>(other.wait());
  };
  EXPECT_EQ(outcome(daemon, ""), Code::kNotAuthorised);
  EXPECT_EQ(outcome(daemon, "battery staple"), Code::kNotAuthorised);
  EXPECT_EQ(outcome(daemon, "correct horse"), Code::kOk);
  EXPECT_EQ(outcome(without_token, "correct horse"), Code::kNotAuthorised);
}

}  // namespace
}  // namespace hoplite::testing
