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

TEST(Membership, WhoWasToldToJoinIsNotAloneAndSaysWhy) {
  const std::string first = free_address();
  const std::string second = free_address();
  Cluster cluster;
  Daemon& daemon = cluster.start({.listen = second, .join = {first, second}});
  Client client = daemon.connect();
  const std::string why = first + " refused the connection";
  EXPECT_TRUE(eventually([&] { return client.status()->join_problems == why; })) << client.status()->join_problems;
  EXPECT_TRUE(client.status()->joining && client.nodes()->front().joining);
  EXPECT_TRUE(eventually([&] { return daemon.log().find("not joined yet: " + why) != std::string::npos; }));
  const auto id = ObjectId::named("waits for the cluster");
  const auto early = client.put(pattern(10, 1), {.id = id, .timeout = 5s});
  ASSERT_FALSE(early.ok());
  EXPECT_THAT(early.error().message, HasSubstr("no member has let it in yet"));

  auto waiting = client.put_async(pattern(10, 2), {.id = id, .timeout = 60s});
  Daemon& founder = cluster.start({.listen = first, .join = {first, second}});
  const auto put = waiting.get();
  EXPECT_TRUE(put.ok()) << put.error().to_string();
  EXPECT_TRUE(eventually([&] { return !client.status()->joining; }));
  EXPECT_TRUE(eventually([&] { return founder.log().find("at " + second + " has joined") != std::string::npos; }));
  EXPECT_EQ(daemon.terminate(), 0);
  EXPECT_TRUE(eventually([&] { return founder.log().find("at " + second + " has left") != std::string::npos; }));
}

TEST(Membership, TheFirstOfTheListIsAClusterByItself) {
  const std::string first = free_address();
  Cluster cluster;
  Client client = cluster.start({.listen = first, .join = {first, free_address()}}).connect();
  EXPECT_TRUE(client.put(pattern(10, 1), {.id = ObjectId::named("alone"), .timeout = 60s}).ok());
  EXPECT_FALSE(client.status()->joining);
}

TEST(Membership, NamesAreResolved) {
  Cluster cluster;
  const std::string address = cluster.start().address();
  const std::string port = address.substr(address.find(':'));
  Daemon& unknown = cluster.start({.listen = "0.0.0.0:0",
                                   .join = {"no-such-host.invalid" + port},
                                   .arguments = {"--advertise", "192.0.2.1:0", "--insecure"}});
  EXPECT_TRUE(eventually([&] { return unknown.log().find("cannot be resolved") != std::string::npos; }))
      << unknown.log();
  EXPECT_EQ(unknown.terminate(), 0);
  cluster.start({.join = {"localhost" + port}});
  cluster.wait_for_members(2);
}

TEST(Membership, WhomMembersCouldNotReachIsNotStarted) {
  Cluster cluster;
  const auto refused = cluster.try_start({.listen = "127.0.0.1:0", .join = {"192.0.2.1:7411"}});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("--listen ADDRESS:0"));
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
