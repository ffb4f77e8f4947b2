#include "transport/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace hoplite {
namespace {

using testing::ElementsAre;

Time in(Duration d) { return monotonic_now() + d; }
constexpr Duration kLong = Duration::s(20);  // reached only when something is broken

class SocketPair {
 public:
  SocketPair() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds_.data()), 0); }
  ~SocketPair() {
    for (const int fd : fds_) close(fd);
  }
  SocketPair(const SocketPair&) = delete;
  SocketPair& operator=(const SocketPair&) = delete;
  int ours() const { return fds_[0]; }
  void say_something() const { EXPECT_EQ(write(fds_[1], "x", 1), 1); }
  void read_it() const {
    char byte = 0;
    EXPECT_EQ(read(fds_[0], &byte, 1), 1);
  }

 private:
  std::array<int, 2> fds_{};
};

enum class Idle { kSleeps, kLingers, kSpins };

class LoopTest : public testing::TestWithParam<Idle> {
 protected:
  LoopTest() {
    loop.set_busy_poll(GetParam() == Idle::kSpins);
    if (GetParam() == Idle::kLingers) loop.set_linger(Duration::ms(1));
  }
  Loop loop;
};
INSTANTIATE_TEST_SUITE_P(SleepingAndSpinning, LoopTest, testing::Values(Idle::kSleeps, Idle::kLingers, Idle::kSpins));

TEST_P(LoopTest, CallsBackWhenReadable) {
  const SocketPair pair;
  int calls = 0;
  loop.add(pair.ours(), EPOLLIN, [&](std::uint32_t events) {
    EXPECT_TRUE(events & EPOLLIN);
    pair.read_it();
    ++calls;
  });
  loop.run_once(in(Duration::ms(1)));
  EXPECT_EQ(calls, 0);
  pair.say_something();
  loop.run_once(in(kLong));
  EXPECT_EQ(calls, 1);
  loop.run_once(in(Duration::ms(1)));
  EXPECT_EQ(calls, 1);
  loop.remove(pair.ours());
}

TEST_P(LoopTest, ModifyChoosesTheEvents) {
  const SocketPair pair;
  std::vector<std::uint32_t> seen;
  loop.add(pair.ours(), EPOLLIN, [&](std::uint32_t events) { seen.push_back(events); });
  loop.modify(pair.ours(), EPOLLIN | EPOLLOUT);
  loop.run_once(in(kLong));
  loop.modify(pair.ours(), EPOLLIN);
  loop.run_once(in(Duration::ms(1)));
  EXPECT_THAT(seen, ElementsAre(EPOLLOUT));
  loop.remove(pair.ours());
}

TEST_P(LoopTest, ARemovedDescriptorIsNotCalledEvenIfItsEventWasFetched) {
  const SocketPair a;
  const SocketPair b;
  int calls = 0;
  const auto first_removes_both = [&](std::uint32_t) {
    ++calls;
    loop.remove(a.ours());
    loop.remove(b.ours());
  };
  loop.add(a.ours(), EPOLLIN, first_removes_both);
  loop.add(b.ours(), EPOLLIN, first_removes_both);
  a.say_something();
  b.say_something();
  loop.run_once(in(kLong));
  loop.run_once(in(Duration::ms(1)));
  EXPECT_EQ(calls, 1);
}

TEST_P(LoopTest, AnEventOfARemovedDescriptorIsNotGivenToItsSuccessor) {
  const SocketPair a;
  const SocketPair b;
  int successor_calls = 0;
  bool replaced = false;
  const auto replace_other = [&](int other) {
    if (std::exchange(replaced, true)) return;
    loop.remove(other);
    loop.add(other, EPOLLOUT, [&](std::uint32_t events) {
      ++successor_calls;
      EXPECT_FALSE(events & EPOLLIN);
    });
  };
  loop.add(a.ours(), EPOLLIN, [&](std::uint32_t) { replace_other(b.ours()); });
  loop.add(b.ours(), EPOLLIN, [&](std::uint32_t) { replace_other(a.ours()); });
  a.say_something();
  b.say_something();
  loop.run_once(in(kLong));
  EXPECT_EQ(successor_calls, 0);
  loop.run_once(in(kLong));
  EXPECT_EQ(successor_calls, 1);
  loop.remove(a.ours());
  loop.remove(b.ours());
}

TEST_P(LoopTest, TimersRunInOrderOfTimeAndNotEarly) {
  std::vector<int> order;
  const Time start = monotonic_now();
  loop.at(start + Duration::ms(6), [&] { order.push_back(3); });
  loop.at(start + Duration::ms(2), [&] { order.push_back(1); });
  loop.at(start + Duration::ms(4), [&] { order.push_back(2); });
  while (order.size() < 3) loop.run_once(in(kLong));
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
  EXPECT_GE(loop.now(), start + Duration::ms(6));
}

TEST_P(LoopTest, ACancelledTimerDoesNotRun) {
  int calls = 0;
  Loop::TimerId second = 0;
  const Time due = monotonic_now();
  loop.at(due, [&] {
    ++calls;
    loop.cancel(second);
  });
  second = loop.at(due, [&] { ++calls; });
  loop.cancel(0);
  loop.run_once(in(Duration::ms(5)));
  loop.run_once(in(Duration::ms(5)));
  EXPECT_EQ(calls, 1);
}

TEST_P(LoopTest, ATimerThatIsAlwaysDueDoesNotStarveOthers) {
  const SocketPair pair;
  bool heard = false;
  std::function<void()> again = [&] { loop.at(loop.now(), again); };
  loop.at(loop.now(), again);
  loop.add(pair.ours(), EPOLLIN, [&](std::uint32_t) { heard = true; });
  pair.say_something();
  for (int i = 0; i < 3 && !heard; ++i) loop.run_once(in(kLong));
  EXPECT_TRUE(heard);
  loop.remove(pair.ours());
}

TEST_P(LoopTest, RunOnceReturnsAtItsLimit) {
  const Time until = in(Duration::ms(3));
  loop.run_once(until);
  EXPECT_GE(monotonic_now(), until);
}

TEST_P(LoopTest, PostsFromOtherThreadsArriveInOrderAndAllOfThem) {
  constexpr int kThreads = 4;
  constexpr int kPosts = 2000;
  std::vector<std::vector<int>> seen(kThreads);
  int total = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kPosts; ++i) {
        loop.post([&, t, i] {
          seen[static_cast<std::size_t>(t)].push_back(i);
          ++total;
        });
      }
    });
  }
  while (total < kThreads * kPosts) loop.run_once(in(kLong));
  for (auto& thread : threads) thread.join();
  for (const auto& numbers : seen) EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
}

TEST_P(LoopTest, APostWakesASleepingLoop) {
  std::atomic<bool> done = false;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    loop.post([&] { done = true; });
  });
  const Time start = monotonic_now();
  while (!done) loop.run_once(in(kLong));
  EXPECT_LT(monotonic_now() - start, kLong);
  other.join();
}

TEST_P(LoopTest, WorkPostedByWorkRunsInTheNextBatch) {
  std::vector<int> order;
  loop.post([&] {
    order.push_back(1);
    loop.post([&] { order.push_back(2); });
  });
  loop.run_once(in(kLong));
  EXPECT_THAT(order, ElementsAre(1));
  loop.run_once(in(kLong));
  EXPECT_THAT(order, ElementsAre(1, 2));
}

TEST_P(LoopTest, AfterBatchRunsAfterTheCallbacksAndBeforeSleeping) {
  std::vector<int> order;
  bool queued = true;  // before the first batch: as by a caller outside of the loop
  loop.after_batch([&] {
    if (std::exchange(queued, false)) order.push_back(2);
  });
  loop.post([&] {
    order.push_back(1);
    queued = true;
  });
  loop.run_once(in(kLong));
  EXPECT_THAT(order, ElementsAre(2, 1, 2));
}

TEST_P(LoopTest, StopEndsRunAlsoWhenItCameFirst) {
  loop.stop();
  loop.run();
  std::thread other([&] { loop.stop(); });
  loop.run();
  other.join();
}

}  // namespace
}  // namespace hoplite
