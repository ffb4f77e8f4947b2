#include "node/unix_listener.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hoplite {
namespace {

using testing::HasSubstr;

class UnixListenerTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(dir_), nullptr); }
  void TearDown() override {
    ::unlink(path().c_str());
    ::unlink((path() + ".lock").c_str());
    EXPECT_EQ(::rmdir(dir_), 0) << "something was left behind in " << dir_;
  }

  std::string path() const { return std::string(dir_) + "/sock"; }
  bool exists(const std::string& file) const { return ::access(file.c_str(), F_OK) == 0; }

  // What a daemon that was killed leaves behind: a socket file that nobody listens to, and a lock file without a lock.
  void leave_dead_socket() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path().c_str());
    const int dead = ::socket(AF_UNIX, SOCK_STREAM, 0);
    ASSERT_EQ(::bind(dead, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ::close(dead);
    ::close(::open((path() + ".lock").c_str(), O_CREAT | O_RDWR, 0600));
  }

  char dir_[40] = "/tmp/hoplite-listener-XXXXXX";
};

TEST_F(UnixListenerTest, FilesComeWithTheModeAskedForAndGo) {
  {
    auto listener = UnixListener::open(path(), 0600);
    ASSERT_TRUE(listener.ok()) << listener.error().message;
    struct stat info{};
    ASSERT_EQ(::stat(path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
    EXPECT_TRUE(exists(path() + ".lock"));
  }
  EXPECT_FALSE(exists(path()));
  EXPECT_FALSE(exists(path() + ".lock"));
}

TEST_F(UnixListenerTest, ALiveDaemonIsAnErrorWithItsPid) {
  auto first = UnixListener::open(path(), 0600);
  ASSERT_TRUE(first.ok());
  auto second = UnixListener::open(path(), 0600);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().message, "a daemon already runs at " + path() + " (pid " + std::to_string(::getpid()) + ")");
  EXPECT_TRUE(exists(path()));
}

TEST_F(UnixListenerTest, ALiveDaemonWhoseLockFileWasRemovedIsFoundByConnecting) {
  auto first = UnixListener::open(path(), 0600);
  ASSERT_TRUE(first.ok());
  ASSERT_EQ(::unlink((path() + ".lock").c_str()), 0);
  auto second = UnixListener::open(path(), 0600);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().message, HasSubstr("(pid " + std::to_string(::getpid()) + ")"));
  EXPECT_TRUE(exists(path()));
}

TEST_F(UnixListenerTest, TheSocketOfADeadDaemonIsReplaced) {
  leave_dead_socket();
  auto listener = UnixListener::open(path(), 0600);
  EXPECT_TRUE(listener.ok()) << listener.error().message;
}

TEST_F(UnixListenerTest, AFileThatIsNoSocketIsLeftAlone) {
  ::close(::open(path().c_str(), O_CREAT | O_RDWR, 0600));
  auto listener = UnixListener::open(path(), 0600);
  ASSERT_FALSE(listener.ok());
  EXPECT_THAT(listener.error().message, HasSubstr("is not a socket"));
  EXPECT_TRUE(exists(path()));
  EXPECT_FALSE(exists(path() + ".lock"));
}

TEST_F(UnixListenerTest, TooLongAPathIsAnError) {
  auto listener = UnixListener::open(std::string(dir_) + "/" + std::string(120, 'x'), 0600);
  ASSERT_FALSE(listener.ok());
  EXPECT_EQ(listener.code(), Code::kInvalidArgument);
}

TEST_F(UnixListenerTest, OfManyStartsAtOnceExactlyOneWins) {
  for (int round = 0; round < 50; ++round) {
    leave_dead_socket();
    std::atomic<int> won = 0;
    std::vector<std::unique_ptr<UnixListener>> winners(4);
    std::vector<std::thread> starts;
    for (auto& winner : winners) {
      starts.emplace_back([&] {
        auto listener = UnixListener::open(path(), 0600);
        if (!listener) return;
        ++won;
        winner = std::move(*listener);
      });
    }
    for (auto& start : starts) start.join();
    EXPECT_EQ(won, 1);
  }
}

}  // namespace
}  // namespace hoplite
