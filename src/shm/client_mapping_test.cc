#include "shm/client_mapping.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "shm/test_helpers.h"

namespace hoplite {
namespace {

// As if it had come over a socket.
UniqueFd duplicate(int fd) { return UniqueFd(fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

std::size_t mapping_count() {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  std::size_t count = 0;
  while (std::getline(maps, line)) ++count;
  return count;
}

// Sanitizers turn the signal into an exit of their own.
bool died_of_a_fault(int status) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return !testing::ExitedWithCode(0)(status);
#else
  return testing::KilledBySignal(SIGSEGV)(status);
#endif
}

void write_byte(const std::byte* at) { *const_cast<volatile std::byte*>(at) = std::byte{1}; }

class ClientViewTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  std::unique_ptr<Arena> arena_ = make_arena(4 * kMiB);
  std::unique_ptr<ClientMapping> client_ = ClientMapping::create(arena_->read_only_fd(), arena_->size()).value();
};

TEST_F(ClientViewTest, SeesWhatTheDaemonWrites) {
  std::memcpy(arena_->base() + 128, "hoplite", 7);
  const ByteView view = client_->view({128, 7}).value();
  EXPECT_EQ(std::memcmp(view.data(), "hoplite", 7), 0);
  EXPECT_EQ(client_->view({4 * kMiB, 0}).value().size(), 0u);
}

TEST_F(ClientViewTest, RefusesWhatLiesOutside) {
  EXPECT_EQ(client_->view({4 * kMiB, 1}).code(), Code::kInvalidArgument);
  EXPECT_EQ(client_->view({1, 4 * kMiB}).code(), Code::kInvalidArgument);
  EXPECT_EQ(client_->view({~std::uint64_t{0}, 2}).code(), Code::kInvalidArgument);
  EXPECT_EQ(client_->view({2, ~std::uint64_t{0}}).code(), Code::kInvalidArgument);
}

TEST_F(ClientViewTest, CannotBeMadeWritable) {
  const ByteView view = client_->view({0, kPageBytes}).value();
  EXPECT_NE(mprotect(const_cast<std::byte*>(view.data()), view.size(), PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(errno, EACCES);
}

TEST_F(ClientViewTest, StaysReadableWhenTheArenaIsGone) {
  std::memset(arena_->base(), 0x42, arena_->size());
  arena_.reset();
  const ByteView view = client_->view({0, 4 * kMiB}).value();
  EXPECT_TRUE(std::all_of(view.begin(), view.end(), [](std::byte b) { return b == std::byte{0x42}; }));
}

TEST_F(ClientViewTest, RefusesDescriptorsThatAreNoArena) {
  const UniqueFd unsealed(memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), 4 * static_cast<off_t>(kMiB)), 0);
  EXPECT_EQ(ClientMapping::create(unsealed.get(), 4 * kMiB).code(), Code::kInvalidArgument);
  EXPECT_EQ(ClientMapping::create(arena_->read_only_fd(), 5 * kMiB).code(), Code::kInvalidArgument);
  EXPECT_EQ(ClientMapping::create(-1, 4 * kMiB).code(), Code::kUnavailable);
}

using ClientViewDeathTest = ClientViewTest;

TEST_F(ClientViewDeathTest, WritingThroughAViewFaults) {
  const ByteView view = client_->view({0, 64}).value();
  EXPECT_EXIT(write_byte(view.data()), died_of_a_fault, "");
}

class ClientWindowTest : public testing::TestWithParam<ClientMapping::Windows> {
 protected:
  static constexpr std::uint64_t kArenaBytes = 16 * kMiB + 5 * kPageBytes;

  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    ASSERT_TRUE(client_->accept_writable(duplicate(arena_->writable_fd()), GetParam()));
  }

  std::unique_ptr<Arena> arena_ = make_arena(kArenaBytes);
  std::unique_ptr<ClientMapping> client_ = ClientMapping::create(arena_->read_only_fd(), arena_->size()).value();
};

// From one page to all of it, cut at page tables and not.
const std::vector<Extent> kWindows = {{0, 1},
                                      {0, kPageBytes},
                                      {kPageBytes, 3 * kPageBytes - 1},
                                      {2 * kMiB, 2 * kMiB},
                                      {3 * kPageBytes, 9 * kMiB + 17},
                                      {2 * kMiB - kPageBytes, 4 * kMiB + 2 * kPageBytes},
                                      {16 * kMiB + 4 * kPageBytes, kPageBytes},
                                      {0, 16 * kMiB + 5 * kPageBytes}};

TEST_P(ClientWindowTest, WhatIsWrittenIsSeenByDaemonAndViews) {
  int value = 1;
  for (int round = 0; round < 3; ++round) {
    for (const Extent& extent : kWindows) {
      const ByteSpan window = client_->open_window(extent).value();
      ASSERT_EQ(window.size(), extent.size);
      std::memset(window.data(), value, window.size());
      client_->close_window(extent);
      const ByteView view = client_->view(extent).value();
      ASSERT_EQ(view.front(), static_cast<std::byte>(value));
      ASSERT_EQ(std::memcmp(view.data(), arena_->base() + extent.offset, extent.size), 0);
      ASSERT_EQ(view.back(), static_cast<std::byte>(value));
      ++value;
    }
  }
}

TEST_P(ClientWindowTest, ManyWindowsAtOnceKeepApart) {
  constexpr std::uint64_t kEach = 3 * kPageBytes;
  std::vector<ByteSpan> windows;
  for (std::uint64_t at = 0; at + kEach <= kArenaBytes; at += kEach) {
    windows.push_back(client_->open_window({at, kEach}).value());
  }
  for (std::size_t i = 0; i < windows.size(); ++i) std::memset(windows[i].data(), static_cast<int>(i), kEach);
  for (std::size_t i = 0; i < windows.size(); i += 2) client_->close_window({i * kEach, kEach});
  for (std::size_t i = 1; i < windows.size(); i += 2) {
    windows[i][7] = std::byte{0xee};  // still open between two that are closed
    client_->close_window({i * kEach, kEach});
  }
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const ByteView view = client_->view({i * kEach, kEach}).value();
    ASSERT_EQ(view[8], static_cast<std::byte>(i));
    ASSERT_EQ(view[7], i % 2 == 0 ? static_cast<std::byte>(i) : std::byte{0xee});
  }
}

TEST_P(ClientWindowTest, ThreadsPutSideBySide) {
  constexpr std::uint64_t kEach = 4 * kMiB;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (std::uint64_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 50; ++round) {
        const Extent extent{i * kEach, kEach - static_cast<std::uint64_t>(round) * kPageBytes};
        const ByteSpan window = client_->open_window(extent).value();
        std::memset(window.data(), round + static_cast<int>(i), window.size());
        client_->close_window(extent);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(arena_->base()[i * kEach], static_cast<std::byte>(49 + i));
    EXPECT_EQ(arena_->base()[(i + 1) * kEach - 1], static_cast<std::byte>(i));  // only the first round came this far
  }
}

TEST_P(ClientWindowTest, LeavesNoMappingsBehind) {
  client_->close_window((client_->open_window({kPageBytes, kPageBytes}).value(), Extent{kPageBytes, kPageBytes}));
  const std::size_t before = mapping_count();
  for (std::uint64_t i = 0; i < 200; ++i) {
    const Extent extent{(i * 37 % 1000) * kPageBytes, (i % 90 + 1) * kPageBytes};
    ASSERT_TRUE(client_->open_window(extent));
    client_->close_window(extent);
  }
  EXPECT_LE(mapping_count(), before + 4);
}

TEST_P(ClientWindowTest, EmptyExtentNeedsNoWindow) {
  EXPECT_EQ(client_->open_window({0, 0}).value().size(), 0u);
  client_->close_window({0, 0});
}

TEST_P(ClientWindowTest, RefusesExtentsItCannotOpen) {
  EXPECT_EQ(client_->open_window({0, kArenaBytes + 1}).code(), Code::kInvalidArgument);
  EXPECT_EQ(client_->open_window({64, 64}).code(), Code::kInvalidArgument);
}

using ClientWindowDeathTest = ClientWindowTest;

TEST_P(ClientWindowDeathTest, ClosedWindowFaults) {
  for (const Extent& extent : kWindows) {
    const ByteSpan window = client_->open_window(extent).value();
    std::memset(window.data(), 1, window.size());
    client_->close_window(extent);
    EXPECT_EXIT(write_byte(&window.front()), died_of_a_fault, "");
    EXPECT_EXIT(write_byte(&window.back()), died_of_a_fault, "");
  }
}

TEST_P(ClientWindowDeathTest, RunningOverTheEndOfAWindowFaults) {
  const ByteSpan window = client_->open_window({4 * kPageBytes, kPageBytes}).value();
  EXPECT_EXIT(write_byte(window.data() + window.size()), died_of_a_fault, "");
  EXPECT_EXIT(write_byte(window.data() - 1), died_of_a_fault, "");
  client_->close_window({4 * kPageBytes, kPageBytes});
}

TEST_P(ClientWindowDeathTest, OpeningOrClosingTwiceIsABug) {
  const Extent extent{0, kPageBytes};
  EXPECT_DEATH(client_->close_window(extent), "not open");
  ASSERT_TRUE(client_->open_window(extent));
  EXPECT_DEATH({ (void)client_->open_window(extent); }, "opened twice");
  client_->close_window(extent);
}

INSTANTIATE_TEST_SUITE_P(Schemes, ClientWindowTest,
                         testing::Values(ClientMapping::Windows::kMove, ClientMapping::Windows::kProtect),
                         [](const auto& scheme) {
                           return scheme.param == ClientMapping::Windows::kMove ? "Move" : "Protect";
                         });
INSTANTIATE_TEST_SUITE_P(Schemes, ClientWindowDeathTest,
                         testing::Values(ClientMapping::Windows::kMove, ClientMapping::Windows::kProtect),
                         [](const auto& scheme) {
                           return scheme.param == ClientMapping::Windows::kMove ? "Move" : "Protect";
                         });

}  // namespace
}  // namespace hoplite
