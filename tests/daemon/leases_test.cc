// Views and writers whose clients, connections or daemons are gone: a view shows its object as long as it is held, and what a
// writer still writes reaches nobody.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/unique_fd.h"
#include "child.h"
#include "cluster.h"

namespace hoplite::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kMiB = 1 << 20;
constexpr std::size_t kBytes = 4 * kMiB;
constexpr std::uint64_t kWatched = 1000;  // the pattern of the object that is viewed

// A store with room for eight objects.
class Leases : public ::testing::Test {
 protected:
  // As many objects as there is room for. Every byte of memory that is free is written.
  std::size_t fill() {
    while (true) {
      const auto id = other_.put(pattern(kBytes, put_.size()), {.timeout = 500ms});
      if (!id.ok()) {
        EXPECT_EQ(id.code(), Code::kStoreFull) << id.error().to_string();
        return put_.size();
      }
      put_.push_back(*id);
    }
  }
  void expect_others_whole() {
    for (std::size_t i = 0; i < put_.size(); ++i) {
      const auto view = other_.get(put_[i], {.timeout = 30s});
      ASSERT_TRUE(view.ok()) << view.error().to_string();
      EXPECT_EQ(difference(view->bytes(), kBytes, i), "") << "object " << i;
    }
  }
  void remove_all() {
    for (const ObjectId id : put_) EXPECT_TRUE(other_.remove(id, 30s).ok());
    put_.clear();
  }
  ObjectId put_watched() {
    const auto id = other_.put(pattern(kBytes, kWatched));
    EXPECT_TRUE(id.ok());
    return *id;
  }
  bool holds_nothing() {
    return eventually([&] {
      const auto status = other_.status();
      return status.ok() && status->used_bytes == 0 && status->holders.empty();
    });
  }

  Cluster cluster_;
  Daemon& daemon_ = cluster_.start({.memory = "32MiB"});
  Client other_ = daemon_.connect();
  std::vector<ObjectId> put_;
};

// The connections that this process has to the daemon.
std::vector<int> connections_to(const Daemon& daemon) {
  std::vector<int> found;
  for (int fd = 3; fd < 1024; ++fd) {
    sockaddr_un peer{};
    socklen_t size = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0 || peer.sun_family != AF_UNIX) continue;
    if (size > sizeof(sa_family_t) && daemon.socket() == peer.sun_path) found.push_back(fd);
  }
  return found;
}

TEST_F(Leases, AViewOutlivesItsClient) {
  const ObjectId id = put_watched();
  std::optional<View> view;
  {
    Client client = daemon_.connect();
    view = *client.get(id, {.timeout = 30s});
  }
  ASSERT_TRUE(other_.remove(id, 30s).ok());
  EXPECT_EQ(fill(), 7u);
  EXPECT_EQ(difference(view->bytes(), kBytes, kWatched), "");
  const auto status = other_.status();
  ASSERT_EQ(status->holders.size(), 1u);
  EXPECT_EQ(status->holders[0].pid, static_cast<std::uint64_t>(::getpid()));
  EXPECT_EQ(status->holders[0].bytes, kBytes);
  EXPECT_EQ(status->holders[0].views, 1u);
  view.reset();
  EXPECT_TRUE(eventually([&] { return fill() == 8; })) << "its memory is free again";
  expect_others_whole();
  remove_all();
  EXPECT_TRUE(holds_nothing());
}

TEST_F(Leases, OfSeveralViewsEachIsGivenBackByItself) {
  const ObjectId id = put_watched();
  const ObjectId second = *other_.put(pattern(kBytes, 2));
  std::vector<View> views;
  {
    Client client = daemon_.connect();
    for (const ObjectId wanted : {id, second, id}) views.push_back(*client.get(wanted, {.timeout = 30s}));
  }
  const auto held = [&] {
    const auto holders = other_.status()->holders;
    return holders.empty() ? 0 : holders[0].views;
  };
  EXPECT_TRUE(eventually([&] { return other_.status()->holders.at(0).attached == false; }));
  for (std::uint64_t left = 3; left > 0; --left) {
    EXPECT_EQ(held(), left);
    views.pop_back();
    EXPECT_TRUE(eventually([&] { return held() == left - 1; }));
  }
}

TEST_F(Leases, AWriterThatOutlivesItsClientHarmsNobody) {
  std::optional<ObjectWriter> writer;
  {
    Client client = daemon_.connect();
    auto created = client.create(kBytes, {.timeout = 30s});
    ASSERT_TRUE(created.ok()) << created.error().to_string();
    writer = *std::move(created);
  }
  EXPECT_EQ(fill(), 7u) << "the writer has its memory still";
  std::ranges::fill(writer->buffer(), std::byte{0xee});
  expect_others_whole();
  const auto advanced = writer->advance(kBytes);
  EXPECT_EQ(advanced.code(), Code::kUnavailable);
  EXPECT_THAT(advanced.error().message, HasSubstr(writer->id().to_string()));
  EXPECT_EQ(writer->as<float>().code(), Code::kUnavailable);
  EXPECT_EQ(writer->seal(30s).code(), Code::kUnavailable);
  EXPECT_TRUE(writer->buffer().empty());
  EXPECT_TRUE(eventually([&] { return fill() == 8; })) << "a writer that was told is done";
  expect_others_whole();
  remove_all();
  EXPECT_TRUE(holds_nothing());
}

TEST_F(Leases, ABrokenConnectionTakesNothingFromThoseWhoHoldIt) {
  const ObjectId id = put_watched();
  const std::vector<int> others = connections_to(daemon_);
  Client client = daemon_.connect();
  std::optional<View> view = *client.get(id, {.timeout = 30s});
  auto writer = client.create(kBytes, {.timeout = 30s});
  ASSERT_TRUE(writer.ok());
  for (const int fd : connections_to(daemon_))
    if (std::ranges::count(others, fd) == 0) ::shutdown(fd, SHUT_RDWR);
  ASSERT_TRUE(eventually([&] { return other_.status()->clients == 1; }));
  ASSERT_TRUE(other_.remove(id, 30s).ok());
  EXPECT_EQ(fill(), 6u);
  std::ranges::fill(writer->buffer(), std::byte{0xee});
  EXPECT_EQ(writer->advance(1).code(), Code::kUnavailable);
  EXPECT_EQ(difference(view->bytes(), kBytes, kWatched), "");
  expect_others_whole();
  EXPECT_EQ(writer->seal(30s).code(), Code::kUnavailable);
  EXPECT_TRUE(eventually([&] { return fill() == 7; }));
  view.reset();
  EXPECT_TRUE(eventually([&] { return fill() == 8; }));
}

// Nobody has noticed that it is broken when the view is given back.
TEST_F(Leases, AViewOfABrokenConnectionIsGivenBack) {
  const ObjectId id = put_watched();
  const std::vector<int> others = connections_to(daemon_);
  Client client = daemon_.connect();
  std::optional<View> view = *client.get(id, {.timeout = 30s});
  for (const int fd : connections_to(daemon_))
    if (std::ranges::count(others, fd) == 0) ::shutdown(fd, SHUT_RDWR);
  ASSERT_TRUE(eventually([&] { return other_.status()->clients == 1; }));
  ASSERT_TRUE(other_.remove(id, 30s).ok());
  view.reset();
  EXPECT_TRUE(holds_nothing());
}

TEST_F(Leases, AKilledProcessHoldsNothing) {
  const ObjectId id = put_watched();
  Child reader([&] {
    Client client = daemon_.connect();
    const auto view = client.get(id, {.timeout = 30s});
    auto writer = client.create(kBytes, {.timeout = 30s});
    if (!view.ok() || !writer.ok()) return 1;
    wait_to_be_killed();
  });
  ASSERT_TRUE(eventually([&] { return other_.status()->holders.size() == 1 && other_.status()->growing == 1; }));
  EXPECT_EQ(other_.status()->holders[0].pid, static_cast<std::uint64_t>(reader.pid()));
  reader.kill();
  ASSERT_TRUE(other_.remove(id, 30s).ok());
  EXPECT_TRUE(holds_nothing());
}

TEST(LeasesOfTheDead, ADaemonThatIsGoneIsNoticedByTheNextCall) {
  Cluster cluster;
  Daemon& first = cluster.start({.memory = "32MiB"});
  const std::string socket = first.socket();
  Client client = first.connect();
  const auto id = client.put(pattern(kBytes, kWatched));
  const auto view = client.get(*id, {.timeout = 30s});
  ASSERT_TRUE(view.ok());
  auto writer = client.create(kBytes, {.timeout = 30s});
  ASSERT_TRUE(writer.ok());
  first.kill();
  EXPECT_EQ(writer->advance(1).code(), Code::kUnavailable);
  Daemon& second = cluster.start({.socket = socket, .memory = "32MiB"});
  Client other = second.connect();
  std::vector<ObjectId> ids;
  for (std::uint64_t i = 0; i < 8; ++i) ids.push_back(*other.put(pattern(kBytes, i), {.timeout = 30s}));
  std::ranges::fill(writer->buffer(), std::byte{0xee});
  EXPECT_EQ(writer->seal(30s).code(), Code::kUnavailable);
  EXPECT_EQ(difference(view->bytes(), kBytes, kWatched), "");
  for (std::uint64_t i = 0; i < 8; ++i)
    EXPECT_EQ(difference(other.get(ids[i], {.timeout = 30s})->bytes(), kBytes, i), "") << i;
}

// --- forked children

// Two processes that wait for each other.
class Signal {
 public:
  Signal() {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    hears_ = UniqueFd(ends[0]);
    speaks_ = UniqueFd(ends[1]);
  }
  void give() const { ASSERT_EQ(::write(speaks_.get(), "x", 1), 1); }
  void await() {
    speaks_.reset();  // so that it ends with the other process
    char byte = 0;
    [[maybe_unused]] const ssize_t got = ::read(hears_.get(), &byte, 1);
  }

 private:
  UniqueFd hears_, speaks_;
};

TEST_F(Leases, AViewOfAForkedChildStaysWhenTheParentGivesItBack) {
  const ObjectId id = put_watched();
  Client client = daemon_.connect();
  std::optional<View> view = *client.get(id, {.timeout = 30s});
  Signal go;
  Child child([&] {
    go.await();
    return difference(view->bytes(), kBytes, kWatched).empty() ? 0 : 1;
  });
  view.reset();
  ASSERT_TRUE(other_.remove(id, 30s).ok());
  EXPECT_EQ(fill(), 7u);
  go.give();
  EXPECT_EQ(child.wait(), 0);
  EXPECT_TRUE(eventually([&] { return fill() == 8; })) << "the parent is told that the child has ended";
  remove_all();
  EXPECT_TRUE(holds_nothing());
}

TEST_F(Leases, AViewOfAForkedChildStaysWhenTheParentHasClosedItsClient) {
  const ObjectId id = put_watched();
  std::optional<Client> client = daemon_.connect();
  std::optional<View> view = *client->get(id, {.timeout = 30s});
  Signal go, seen;
  Child child([&] {
    go.await();
    const bool same = difference(view->bytes(), kBytes, kWatched).empty();
    view.reset();  // from here on it holds nothing, though it lives on
    seen.give();
    if (!same) return 1;
    wait_to_be_killed();
  });
  view.reset();
  client.reset();
  ASSERT_TRUE(other_.remove(id, 30s).ok());
  EXPECT_EQ(fill(), 7u);
  go.give();
  seen.await();
  EXPECT_TRUE(eventually([&] { return fill() == 8; }));
  remove_all();
  EXPECT_TRUE(holds_nothing());
}

// What was not held at the fork is none of the child's.
TEST_F(Leases, AChildKeepsOnlyWhatItMaySee) {
  const ObjectId id = put_watched();
  Client client = daemon_.connect();
  std::optional<View> shared = *client.get(id, {.timeout = 30s});
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < 100; ++i)
    children.push_back(std::make_unique<Child>([] {
      wait_to_be_killed();
      return 0;
    }));
  const ObjectId later = *client.put(pattern(kBytes, 7), {.timeout = 30s});
  std::optional<View> own = *client.get(later, {.timeout = 30s});
  const auto views = [&] {
    const auto holders = other_.status()->holders;
    return holders.empty() ? 0 : holders[0].views;
  };
  EXPECT_EQ(views(), 2u);
  own.reset();
  EXPECT_TRUE(eventually([&] { return views() == 1; }));
  shared.reset();
  EXPECT_EQ(client.put(pattern(100, 1), {.timeout = 30s}).code(), Code::kOk);
  EXPECT_EQ(views(), 1u);
  children.clear();
}

TEST_F(Leases, AForkedChildCannotHarmTheParent) {
  Client client = daemon_.connect();
  auto writer = client.create(kBytes, {.timeout = 30s});
  ASSERT_TRUE(writer.ok());
  std::byte* const memory = writer->buffer().data();
  const ObjectId id = put_watched();
  auto early = client.get_async(id, {.timeout = 30s});
  ASSERT_TRUE(early.wait_for(30s));
  Child tidy([&] {
    if (!writer->buffer().empty()) return 1;
    if (writer->advance(1).code() != Code::kUnavailable) return 2;
    if (client.put(pattern(10, 1), {.timeout = 30s}).code() != Code::kUnavailable) return 3;
    if (early.get().code() != Code::kUnavailable) return 4;
    { const ObjectWriter dropped = *std::move(writer); }
    { const Client closed = std::move(client); }
#ifndef __SANITIZE_THREAD__  // which takes no new threads in a forked child
    if (!daemon_.connect().put(pattern(10, 1), {.timeout = 30s}).ok()) return 5;
#endif
    return 0;
  });
  EXPECT_EQ(tidy.wait(), 0);
  Child vandal([&] {
    ::signal(SIGSEGV, [](int) { ::_exit(42); });
    std::fill_n(memory, kBytes, std::byte{0xee});
    return 0;
  });
  EXPECT_EQ(vandal.wait(), 42);
  const auto bytes = pattern(kBytes, 5);
  std::memcpy(memory, bytes.data(), kBytes);
  ASSERT_TRUE(writer->advance(kBytes).ok());
  const auto sealed = writer->seal(30s);
  ASSERT_TRUE(sealed.ok()) << sealed.error().to_string();
  EXPECT_EQ(difference(client.get(*sealed, {.timeout = 30s})->bytes(), kBytes, 5), "");
  EXPECT_TRUE(early.get().ok());
}

// Replies of 21 MB, which nobody reads before all are asked for.
TEST(Replies, ThatPileUpSlowTheAskerDownAndNothingElse) {
  Cluster cluster;
  Daemon& daemon = cluster.start();
  Client client = daemon.connect();
  const std::string metadata(4000, 'm');
  std::vector<ObjectId> ids;
  std::vector<Future<ObjectId>> puts;
  for (std::uint64_t i = 0; i < 5000; ++i) puts.push_back(client.put_async(pattern(64, i), {.metadata = metadata}));
  for (auto& put : puts) {
    const auto id = put.get();
    ASSERT_TRUE(id.ok()) << id.error().to_string();
    ids.push_back(*id);
  }
  std::vector<Future<View>> gets;
  for (int round = 0; round < 4; ++round)
    for (const ObjectId id : ids) gets.push_back(client.get_async(id, {.timeout = 120s}));
  for (std::size_t i = 0; i < gets.size(); ++i) {
    const auto view = gets[i].get();
    ASSERT_TRUE(view.ok()) << i << ": " << view.error().to_string();
    ASSERT_EQ(difference(view->bytes(), 64, i % ids.size()), "") << i;
    ASSERT_EQ(view->metadata(), metadata);
  }
  EXPECT_EQ(client.status()->clients, 1u);
}

// The process may not open anything more, then it may.
TEST(Descriptors, APutAtTheLimitFailsClearlyAndTheNextOneWorks) {
  Cluster cluster;
  Daemon& daemon = cluster.start();
  Child poor([&] {
    Client client = daemon.connect();
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const rlim_t before = limit.rlim_cur;
    const int lowest_free = ::dup(0);
    ::close(lowest_free);
    limit.rlim_cur = static_cast<rlim_t>(lowest_free);
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
    for (int i = 0; i < 3; ++i) {
      const auto refused = client.put(pattern(kMiB, 1), {.timeout = 30s});
      if (refused.code() != Code::kUnavailable) return 2;
      if (refused.error().message.find("ulimit -n") == std::string::npos) return 3;
    }
    if (!client.put(pattern(100, 1), {.timeout = 30s}).ok()) return 4;  // small ones need no descriptor
    limit.rlim_cur = before;
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return 5;
    const auto id = client.put(pattern(kMiB, 2), {.timeout = 30s});
    if (!id.ok()) return 6;
    return difference(client.get(*id, {.timeout = 30s})->bytes(), kMiB, 2).empty() ? 0 : 7;
  });
  EXPECT_EQ(poor.wait(), 0);
  Client client = daemon.connect();
  EXPECT_TRUE(eventually([&] { return client.status()->growing == 0; })) << "what failed leaves nothing";
}

}  // namespace
}  // namespace hoplite::testing
