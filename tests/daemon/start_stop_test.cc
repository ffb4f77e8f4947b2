// A daemon comes and goes: what it says, what it refuses, what it leaves behind.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster.h"
#include "raw_client.h"

namespace hoplite::testing {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  return names;
}

TEST(StartStop, SigtermLeavesNothingBehind) {
  Cluster cluster;
  Daemon& daemon = cluster.start();
  ASSERT_TRUE(daemon.connect().put(pattern(1000, 1)).ok());
  const pid_t pid = daemon.pid();
  EXPECT_EQ(daemon.terminate(), 0);
  EXPECT_EQ(files_in(cluster.folder()), std::vector<std::string>{"0.log"});
  EXPECT_NE(::kill(pid, 0), 0);
  EXPECT_THAT(daemon.log(), HasSubstr("stopped"));
}

TEST(StartStop, SigintIsTheSame) {
  Cluster cluster;
  Daemon& daemon = cluster.start();
  daemon.signal(SIGINT);
  EXPECT_TRUE(eventually([&] { return !daemon.running(); }));
  EXPECT_EQ(files_in(cluster.folder()), std::vector<std::string>{"0.log"});
}

TEST(StartStop, SighupOpensTheLogAnewAndReadsTheLevel) {
  Cluster cluster;
  const std::string config = cluster.folder() + "/config";
  const std::string log = cluster.folder() + "/log";
  const auto logged = [&](std::string_view words) {
    return eventually([&] {
      std::stringstream text;
      text << std::ifstream(log).rdbuf();
      return text.str().find(words) != std::string::npos;
    });
  };
  std::ofstream(config) << "log-level = \"error\"\n";
  Daemon& daemon = cluster.start({.arguments = {"--config", config, "--log-file", log}});
  std::filesystem::rename(log, log + ".1");
  std::ofstream(config) << "log-level = \"info\"\n";
  daemon.signal(SIGHUP);
  EXPECT_TRUE(logged("log level counts from now on"));
  std::ofstream(config) << "log-level = nonsense\n";
  daemon.signal(SIGHUP);
  EXPECT_TRUE(logged("the config stays as it was"));
  EXPECT_TRUE(daemon.connect().put(pattern(10, 1)).ok()) << "it goes on";
  EXPECT_EQ(daemon.terminate(), 0);
}

TEST(StartStop, PendingRequestsAreToldWhy) {
  Cluster cluster;
  Daemon& daemon = cluster.start();
  Client client = daemon.connect();
  auto view = client.get_async(client.new_id());
  EXPECT_FALSE(view.wait_for(100ms));
  EXPECT_EQ(daemon.terminate(), 0);
  const auto result = view.get();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.code(), Code::kUnavailable) << result.error().to_string();
  EXPECT_EQ(client.put(pattern(10, 1)).code(), Code::kUnavailable);
}

// A transfer from the first of two daemons to the second that has begun and takes a while.
class Drain : public ::testing::Test {
 protected:
  void begin(const std::string& drain, std::size_t bytes) {
    cluster_.start_many(2, {.arguments = {"--max-rate", "10MB/s", "--drain", drain}});
    source_ = cluster_[0].connect();
    reader_ = cluster_[1].connect();
    const auto id = source_->put(pattern(bytes, 3), {.timeout = 30s});
    ASSERT_TRUE(id.ok());
    auto follower = reader_->follow(*id, {.timeout = 60s});
    ASSERT_TRUE(follower.ok()) << follower.error().to_string();
    follower_.emplace(std::move(*follower));
    for (std::size_t arrived = 0; arrived == 0;) {
      const auto progress = follower_->next(30s);
      ASSERT_TRUE(progress.ok()) << progress.error().to_string();
      arrived = progress->bytes.size();
    }
  }
  // How the read ends.
  Result<Follower::Progress> finish() {
    for (;;) {
      auto progress = follower_->next(60s);
      if (!progress || progress->event == Follower::Event::kComplete) return progress;
    }
  }
  bool refuses() {
    return eventually([&] { return source_->put(pattern(10, 1)).code() == Code::kUnavailable; });
  }

  Cluster cluster_;
  std::optional<Client> source_;
  std::optional<Client> reader_;
  std::optional<Follower> follower_;
};

TEST_F(Drain, WhatOthersCopyIsFinishedFirst) {
  constexpr std::size_t kBytes = 10'000'000;
  ASSERT_NO_FATAL_FAILURE(begin("60s", kBytes));
  cluster_[0].signal(SIGTERM);
  EXPECT_TRUE(refuses()) << "nothing new";
  const auto end = finish();
  ASSERT_TRUE(end.ok()) << end.error().to_string();
  EXPECT_EQ(difference(follower_->view().bytes(), kBytes, 3), "");
  EXPECT_EQ(cluster_[0].wait_for_exit(30s), 0);
  EXPECT_TRUE(eventually([&] { return reader_->status()->members == 1; }));
}

TEST_F(Drain, WhoIsToldTwiceDoesNotWait) {
  ASSERT_NO_FATAL_FAILURE(begin("600s", 200'000'000));
  cluster_[0].signal(SIGTERM);
  EXPECT_TRUE(refuses());
  EXPECT_TRUE(cluster_[0].running());
  EXPECT_EQ(cluster_[0].terminate(), 0);
  EXPECT_EQ(finish().code(), Code::kLost);
}

TEST(StartStop, ViewsOutliveTheDaemon) {
  Cluster cluster;
  Daemon& daemon = cluster.start();
  Client client = daemon.connect();
  const auto id = client.put(pattern(100'000, 5));
  ASSERT_TRUE(id.ok());
  const auto view = client.get(*id, {.timeout = 10s});
  ASSERT_TRUE(view.ok());
  daemon.kill();
  EXPECT_EQ(difference(view->bytes(), 100'000, 5), "");
}

TEST(StartStop, ASecondStartOnTheSameSocketIsAClearError) {
  Cluster cluster;
  Daemon& first = cluster.start();
  DaemonSetup setup;
  setup.socket = first.socket();
  const auto second = cluster.try_start(setup);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().message,
            "a daemon already runs at " + first.socket() + " (pid " + std::to_string(first.pid()) + ")");
  EXPECT_TRUE(first.connect().status().ok()) << "the first is not disturbed";
}

TEST(StartStop, ASecondStartOnTheSamePortIsAClearError) {
  Cluster cluster;
  Daemon& first = cluster.start();
  DaemonSetup setup;
  setup.listen = first.address();
  const auto second = cluster.try_start(setup);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().message, HasSubstr(first.address() + " is in use"));
  EXPECT_FALSE(std::filesystem::exists(cluster.folder() + "/1.sock")) << "it must clean up after itself";
}

TEST(StartStop, TheSocketOfAKilledDaemonIsTakenOver) {
  Cluster cluster;
  Daemon& first = cluster.start();
  first.kill();
  ASSERT_TRUE(std::filesystem::exists(first.socket()));
  DaemonSetup setup;
  setup.socket = first.socket();
  EXPECT_TRUE(cluster.start(setup).connect().status().ok());
}

TEST(StartStop, TheSocketIsForThisUserOnly) {
  Cluster cluster;
  struct stat info{};
  ASSERT_EQ(::stat(cluster.start().socket().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  DaemonSetup open;
  open.arguments = {"--socket-mode", "0666"};
  ASSERT_EQ(::stat(cluster.start(open).socket().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0666u);
}

TEST(StartStop, AFullDiskForLogsIsNoReasonToStop) {
  Cluster cluster;
  DaemonSetup setup;
  setup.arguments = {"--log-file", "/dev/full", "--log-level", "debug"};
  Daemon& daemon = cluster.start(setup);
  Client client = daemon.connect();
  const auto id = client.put(pattern(1000, 3));
  ASSERT_TRUE(id.ok());
  EXPECT_TRUE(client.get(*id, {.timeout = 10s}).ok());
  EXPECT_EQ(daemon.terminate(), 0);
}

TEST(StartStop, ListeningBeyondLoopbackNeedsAToken) {
  Cluster cluster;
  DaemonSetup setup;
  setup.listen = "0.0.0.0:0";
  setup.arguments = {"--advertise", "127.0.0.1:0"};
  auto refused = cluster.try_start(setup);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("--token-file"));
  EXPECT_THAT(refused.error().message, HasSubstr("--insecure"));
}

TEST(StartStop, NobodyCanDialTheAnyAddress) {
  Cluster cluster;
  DaemonSetup setup;
  setup.listen = "0.0.0.0:0";
  const auto refused = cluster.try_start(setup);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("--advertise"));
}

TEST(StartStop, BadOptionsAreNamed) {
  Cluster cluster;
  DaemonSetup setup;
  setup.arguments = {"--max-rate", "fast"};
  const auto refused = cluster.try_start(setup);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("--max-rate"));
}

TEST(StartStop, AConfigFileIsRead) {
  Cluster cluster;
  const std::string config = cluster.folder() + "/hoplite.toml";
  std::ofstream(config) << "max-rate = \"80mbit\"\n";
  DaemonSetup setup;
  setup.arguments = {"--config", config};
  const auto status = cluster.start(setup).connect().status();
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(status->max_rate, 10'000'000u);
}

TEST(StartStop, TwoSigtermsLeaveNothingEither) {
  Cluster cluster;
  Daemon& daemon = cluster.start();
  daemon.signal(SIGTERM);
  daemon.signal(SIGINT);
  EXPECT_EQ(daemon.terminate(), 0);
  EXPECT_EQ(files_in(cluster.folder()), std::vector<std::string>{"0.log"});
}

TEST(StartStop, AClientThatNeverReadsDoesNotHoldUpTheEnd) {
  Cluster cluster;
  Daemon& daemon = cluster.start();
  Client client = daemon.connect();
  for (int i = 0; i < 256; ++i) ASSERT_TRUE(client.put(pattern(10, 1), {.metadata = std::string(4000, 'm')}).ok());
  RawClient mute(daemon.socket());
  ASSERT_TRUE(mute.ask(1, ipc::Hello{}));
  for (std::uint64_t request = 2; request < 6; ++request) ASSERT_TRUE(mute.ask(request, ipc::GetObjects{}));
  ASSERT_TRUE(client.status().ok());
  EXPECT_EQ(daemon.terminate(), 0);
  EXPECT_EQ(files_in(cluster.folder()), std::vector<std::string>{"0.log"});
}

TEST(StartStop, MoreMemoryThanThereIsIsRefused) {
  Cluster cluster;
  const auto refused = cluster.try_start({.memory = "900TiB"});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("900"));
  EXPECT_TRUE(files_in(cluster.folder()) == std::vector<std::string>{"0.log"}) << "it must clean up after itself";
}

TEST(StartStop, ATokenFileThatOthersCanReadIsWarnedAbout) {
  Cluster cluster;
  const std::string file = cluster.folder() + "/token";
  std::ofstream(file) << "correct horse\n";
  const DaemonSetup setup{.arguments = {"--token-file", file}};
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  EXPECT_THAT(cluster.start(setup).log(), ::testing::Not(HasSubstr("chmod 600")));
  ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
  EXPECT_THAT(cluster.start(setup).log(), HasSubstr("chmod 600"));
}

TEST(StartStop, BusyPollAndManyThreadsWork) {
  Cluster cluster;
  cluster.start_many(2, {.arguments = {"--busy-poll", "--io-threads", "3"}});
  Client a = cluster[0].connect();
  Client b = cluster[1].connect();
  for (const std::size_t size : {1000ul, 3'000'000ul}) {
    const auto id = a.put(pattern(size, 1));
    ASSERT_TRUE(id.ok());
    const auto view = b.get(*id, {.timeout = 60s});
    ASSERT_TRUE(view.ok()) << view.error().to_string();
    EXPECT_EQ(difference(view->bytes(), size, 1), "");
  }
  EXPECT_EQ(cluster[0].terminate(), 0);
}

TEST(StartStop, StatusTellsTheFacts) {
  Cluster cluster;
  Daemon& daemon = cluster.start();
  Client client = daemon.connect();
  ASSERT_TRUE(client.put(pattern(200'000, 3)).ok());
  const auto status = client.status();
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(status->pid, static_cast<std::uint64_t>(daemon.pid()));
  EXPECT_EQ(status->address, daemon.address());
  EXPECT_EQ(status->members, 1u);
  EXPECT_EQ(status->clients, 1u);
  EXPECT_EQ(status->objects, 1u);
  EXPECT_GE(status->used_bytes, 200'000u);
  EXPECT_EQ(status->capacity_bytes, 256u << 20);
  const auto nodes = client.nodes();
  ASSERT_TRUE(nodes.ok());
  ASSERT_EQ(nodes->size(), 1u);
  EXPECT_TRUE(nodes->front().self);
}

}  // namespace
}  // namespace hoplite::testing
