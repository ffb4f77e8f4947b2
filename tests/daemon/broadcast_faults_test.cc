// kill -9 and SIGSTOP in the middle of a broadcast. Daemons are limited in rate, so that the middle lasts for seconds.
#include <algorithm>
#include <functional>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster.h"

namespace hoplite::testing {
namespace {

constexpr std::size_t kBytes = 16 << 20;
constexpr char kRate[] = "64mbit";  // 2 s for the whole object
constexpr auto kPatience = 90s;     // of the gets; what should be fast is measured on its own
constexpr auto kQuickly = 10s;      // "as soon as the death is known" takes milliseconds; this is for a busy machine

class BroadcastFaults : public ::testing::Test {
 protected:
  void start(std::size_t count) {
    DaemonSetup setup;
    setup.arguments = {"--max-rate", kRate};
    cluster_.start_many(count, setup);
    for (std::size_t i = 0; i < count; ++i) clients_.push_back(cluster_[i].connect());
    gets_.resize(count);
  }

  // The bytes of `seed` at node `source`, under an id whose home is `home`.
  void put(std::size_t source, std::size_t home, std::uint64_t seed) {
    id_ = clients_[home].new_id();
    const auto done = clients_[source].put(pattern(kBytes, seed), {.id = id_, .timeout = 30s});
    ASSERT_TRUE(done.ok()) << done.error().to_string();
  }
  void get(const std::vector<std::size_t>& nodes, OnLost on_lost = OnLost::kFail) {
    for (const std::size_t i : nodes) gets_[i] = clients_[i].get_async(id_, {.timeout = kPatience, .on_lost = on_lost});
  }

  struct Plan {
    std::size_t source = 0;
    std::size_t home = 0;
    std::optional<std::size_t> complete = {};  // gets it before the others start
    std::vector<std::size_t> receivers = {};
    OnLost on_lost = OnLost::kFail;
  };
  // Starts a broadcast of the bytes of seed 1 and stops (SIGSTOP) the node that `choose` names when it is half done: that
  // is the middle, however busy this machine is. An object that was through before its node could be stopped is done again.
  void stop_in_the_middle(const Plan& plan, const std::function<std::optional<std::size_t>()>& choose) {
    for (int attempt = 0; attempt < 5; ++attempt) {
      ASSERT_NO_FATAL_FAILURE(put(plan.source, plan.home, 1));
      if (plan.complete) {
        get({*plan.complete});
        expect_arrives(*plan.complete, 1);
      }
      get(plan.receivers, plan.on_lost);
      ASSERT_TRUE(eventually([&] { return bytes_at(clients_[plan.receivers[0]], id_) > kBytes / 5; }));
      const auto chosen = choose();
      if (chosen) {
        stopped_ = *chosen;
        cluster_[stopped_].pause();
        const auto unfinished = [&](std::size_t i) {
          return i == stopped_ || bytes_at(clients_[i], id_) < kBytes * 4 / 5;
        };
        if (std::all_of(plan.receivers.begin(), plan.receivers.end(), unfinished)) return;
        cluster_[stopped_].resume();
      }
      for (const std::size_t i : plan.receivers) (void)gets_[i].get();
    }
    FAIL() << "the middle was missed five times";
  }
  static std::function<std::optional<std::size_t>()> node(std::size_t i) {
    return [i] { return i; };
  }
  // A receiver that others receive from, or (`relaying` false) one that nobody receives from.
  std::optional<std::size_t> find_receiver(const std::vector<std::size_t>& nodes, bool relaying) {
    for (const std::size_t i : nodes) {
      const auto objects = clients_[i].objects();
      if (!objects) continue;
      for (const ObjectStatus& object : *objects) {
        if (object.id == id_ && object.state == CopyState::kGrowing && (object.receivers > 0) == relaying) return i;
      }
    }
    return std::nullopt;
  }

  void expect_arrives(std::size_t node, std::uint64_t seed) {
    const auto view = gets_[node].get();
    ASSERT_TRUE(view.ok()) << "node " << node << ": " << view.error().to_string();
    EXPECT_EQ(difference(view->bytes(), kBytes, seed), "") << "node " << node;
  }
  void expect_lost_quickly(std::size_t node) {
    ASSERT_TRUE(gets_[node].wait_for(kQuickly)) << "node " << node << " still waits";
    const auto view = gets_[node].get();
    ASSERT_FALSE(view.ok());
    EXPECT_EQ(view.code(), Code::kLost) << view.error().to_string();
    EXPECT_THAT(view.error().message, ::testing::HasSubstr(id_.to_string()));
  }

  Cluster cluster_;
  std::vector<Client> clients_;
  std::vector<Future<View>> gets_;
  ObjectId id_;
  std::size_t stopped_ = 0;
};

TEST_F(BroadcastFaults, TheSourceDiesAndAnotherCopyIsComplete) {
  start(4);
  stop_in_the_middle({.source = 0, .home = 3, .complete = 1, .receivers = {2, 3}}, node(0));
  cluster_[0].kill();
  expect_arrives(2, 1);
  expect_arrives(3, 1);
}

TEST_F(BroadcastFaults, TheSourceWhichIsAlsoTheHomeDiesAndAnotherCopyIsComplete) {
  start(4);
  stop_in_the_middle({.source = 0, .home = 0, .complete = 1, .receivers = {2, 3}}, node(0));
  cluster_[0].kill();
  expect_arrives(2, 1);
  expect_arrives(3, 1);
}

TEST_F(BroadcastFaults, TheOnlyCopyDiesAndGetsEndAsLost) {
  start(4);
  stop_in_the_middle({.source = 0, .home = 3, .receivers = {1, 2}}, node(0));
  cluster_[0].kill();
  expect_lost_quickly(1);
  expect_lost_quickly(2);
  EXPECT_EQ(clients_[3].get(id_, {.timeout = kPatience}).code(), Code::kLost) << "and those that come later, too";
}

TEST_F(BroadcastFaults, TheOnlyCopyDiesWithItsHomeAndGetsEndAsLost) {
  start(4);
  stop_in_the_middle({.source = 0, .home = 0, .receivers = {1, 2}}, node(0));
  cluster_[0].kill();
  expect_lost_quickly(1);
  expect_lost_quickly(2);
}

TEST_F(BroadcastFaults, WhoChoseToWaitGoesOnWithTheBytesOfTheNextPut) {
  start(4);
  stop_in_the_middle({.source = 0, .home = 3, .receivers = {1, 2}, .on_lost = OnLost::kWait}, node(0));
  cluster_[0].kill();
  EXPECT_FALSE(gets_[1].wait_for(2s));
  const auto again = clients_[3].put(pattern(kBytes, 2), {.id = id_, .timeout = 30s});
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  expect_arrives(1, 2);
  expect_arrives(2, 2);
}

TEST_F(BroadcastFaults, ARelayDies) {
  start(5);
  const std::vector<std::size_t> receivers = {1, 2, 3};
  stop_in_the_middle({.source = 0, .home = 4, .receivers = receivers}, [&] { return find_receiver(receivers, true); });
  cluster_[stopped_].kill();
  for (const std::size_t i : receivers)
    if (i != stopped_) expect_arrives(i, 1);
  EXPECT_EQ(gets_[stopped_].get().code(), Code::kUnavailable) << "its own client is told";
}

TEST_F(BroadcastFaults, AReceiverDies) {
  start(4);
  const std::vector<std::size_t> receivers = {1, 2, 3};
  stop_in_the_middle({.source = 0, .home = 0, .receivers = receivers}, [&] { return find_receiver(receivers, false); });
  cluster_[stopped_].kill();
  for (const std::size_t i : receivers)
    if (i != stopped_) expect_arrives(i, 1);
}

TEST_F(BroadcastFaults, TheHomeDies) {
  start(5);
  stop_in_the_middle({.source = 0, .home = 4, .receivers = {1, 2}}, node(4));
  cluster_[4].kill();
  get({3});  // asks the new home
  expect_arrives(1, 1);
  expect_arrives(2, 1);
  expect_arrives(3, 1);
}

TEST_F(BroadcastFaults, AStoppedRelayIsRoutedAroundAndComesBack) {
  start(5);
  const std::vector<std::size_t> receivers = {1, 2, 3};
  stop_in_the_middle({.source = 0, .home = 4, .receivers = receivers}, [&] { return find_receiver(receivers, true); });
  for (const std::size_t i : receivers)
    if (i != stopped_) expect_arrives(i, 1);
  // Long enough to have been given up; its own get goes on all the same, and it is a member again.
  EXPECT_TRUE(eventually([&] { return clients_[0].status()->members == 4; }));
  cluster_[stopped_].resume();
  expect_arrives(stopped_, 1);
  cluster_.wait_for_members(5);
}

TEST_F(BroadcastFaults, ShortPausesOfARelayChangeNothing) {
  start(4);
  const std::vector<std::size_t> receivers = {1, 2, 3};
  stop_in_the_middle({.source = 0, .home = 0, .receivers = receivers}, [&] { return find_receiver(receivers, true); });
  for (int i = 0; i < 5; ++i) {
    gets_[stopped_].wait_for(100ms);
    cluster_[stopped_].resume();
    gets_[stopped_].wait_for(50ms);
    cluster_[stopped_].pause();
  }
  cluster_[stopped_].resume();
  for (const std::size_t i : receivers) expect_arrives(i, 1);
}

}  // namespace
}  // namespace hoplite::testing
