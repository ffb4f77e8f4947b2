// Daemons find each other, and get over the loss of each other.
#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster.h"

namespace hoplite::testing {
namespace {

using ::testing::HasSubstr;

// A port that was free a moment ago; both sides must know it before either starts.
std::string free_address() {
  Cluster scratch;
  return scratch.start().address();
}

TEST(Membership, TwoDaemonsStartedAtOnceJoinEachOther) {
  const std::string first = free_address();
  const std::string second = free_address();
  ASSERT_NE(first, second);
  Cluster cluster;
  // The first is started when nobody listens at the address that it is to join; it must go on trying.
  cluster.start({.listen = first, .join = {second}});
  cluster.start({.listen = second, .join = {first}});
  cluster.wait_for_members(2);
  Client a = cluster[0].connect();
  Client b = cluster[1].connect();
  const auto id = a.put(pattern(1000, 1));
  ASSERT_TRUE(id.ok());
  EXPECT_TRUE(b.get(*id, {.timeout = 10s}).ok());
  EXPECT_TRUE(eventually([&] { return cluster[0].log().find("joined a cluster") != std::string::npos; }));
}

TEST(Membership, AnyMemberCanBeJoinedThrough) {
  Cluster cluster;
  cluster.start();
  for (std::size_t i = 1; i < 5; ++i) cluster.start({.join = {cluster[i - 1].address()}});
  cluster.wait_for_members(5);
}

TEST(Membership, AKilledDaemonIsNoticedAndAnotherTakesItsAddress) {
  Cluster cluster;
  cluster.start_many(3);
  const std::string address = cluster[2].address();
  Client a = cluster[0].connect();
  const auto kept = a.put(pattern(3 << 20, 1));
  const auto lost = cluster[2].connect().put(pattern(3 << 20, 2));
  ASSERT_TRUE(kept.ok() && lost.ok());
  cluster[2].kill();
  cluster.start({.listen = address, .join = {cluster[0].address()}});
  cluster.wait_for_members(3);

  Client restarted = cluster[3].connect();
  const auto view = restarted.get(*kept, {.timeout = 30s});
  ASSERT_TRUE(view.ok()) << view.error().to_string();
  EXPECT_EQ(difference(view->bytes(), 3 << 20, 1), "");
  // The new process is another node: it does not have, or pretend to have, what the dead one had.
  EXPECT_EQ(a.get(*lost, {.timeout = 5s}).ok(), false);
  const auto fresh = restarted.put(pattern(100'000, 3));
  ASSERT_TRUE(fresh.ok());
  EXPECT_TRUE(a.get(*fresh, {.timeout = 30s}).ok());
}

TEST(Membership, ADaemonThatStopsTellsTheOthers) {
  Cluster cluster;
  cluster.start_many(3);
  EXPECT_EQ(cluster[1].terminate(), 0);
  cluster.wait_for_members(2);
}

TEST(Membership, ASilentDaemonIsGivenUpAndComesBack) {
  Cluster cluster;
  cluster.start_many(3);
  Client a = cluster[0].connect();
  Client c = cluster[2].connect();
  const auto id = c.put(pattern(2 << 20, 1));
  ASSERT_TRUE(id.ok());
  cluster[2].pause();
  ASSERT_TRUE(eventually([&] { return a.status()->members == 2; }));
  cluster[2].resume();
  cluster.wait_for_members(3);
  const auto view = a.get(*id, {.timeout = 30s});
  ASSERT_TRUE(view.ok()) << "what it had is there again: " << view.error().to_string();
  EXPECT_EQ(difference(view->bytes(), 2 << 20, 1), "");
}

TEST(Membership, OnlyThoseWithTheTokenMayJoin) {
  Cluster cluster;
  const DaemonSetup right{.environment = {{"HOPLITE_TOKEN", "correct horse"}}};
  cluster.start_many(2, right);
  DaemonSetup wrong{.environment = {{"HOPLITE_TOKEN", "battery staple"}}};
  cluster.start(wrong);
  DaemonSetup none{};
  none.environment = {{"HOPLITE_TOKEN", ""}};
  cluster.start(none);
  // Once for each peer, although they keep trying.
  const auto complaints = [&] {
    const std::string log = cluster[0].log();
    std::size_t count = 0;
    for (std::size_t at = log.find("token"); at != std::string::npos; at = log.find("token", at + 1)) ++count;
    return count;
  };
  EXPECT_TRUE(eventually([&] { return complaints() > 0; })) << "it is logged";
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(cluster[i].connect().status()->members, i < 2 ? 2u : 1u) << i;
  std::this_thread::sleep_for(3s);  // they try again every two seconds
  EXPECT_LE(complaints(), 2u) << cluster[0].log();
  EXPECT_THAT(cluster[0].log(), ::testing::Not(HasSubstr("correct horse")));
}

}  // namespace
}  // namespace hoplite::testing
