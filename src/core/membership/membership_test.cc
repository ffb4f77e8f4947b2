#include "core/membership/membership.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

namespace hoplite {
namespace {

// A few nodes whose messages arrive at once, unless one of the two is down or they are cut off from each other.
class Cluster {
 public:
  explicit Cluster(std::uint64_t nodes) {
    for (std::uint64_t n = 1; n <= nodes; ++n) add(n, {address(1)});
  }

  static Address address(std::uint64_t n) { return {"10.0.0." + std::to_string(n), 7411}; }

  void add(std::uint64_t n, std::vector<Address> seeds) {
    MembershipOptions options;
    options.self = {NodeId{n}, 0};
    options.address = address(n);
    options.seeds = std::move(seeds);
    options.seed = n;
    nodes_[n] = std::make_unique<Membership>(options, now_);
  }
  Membership& at(std::uint64_t n) { return *nodes_.at(n); }
  void kill(std::uint64_t n) { dead_.insert(n); }
  void cut(std::set<std::uint64_t> side) { side_ = std::move(side); }

  void refuse(std::uint64_t low, std::uint64_t high) { refused_.insert({low, high}); }
  void run(Duration time) {
    const Time end = now_ + time;
    while (now_ < end) {
      now_ = now_ + Duration::ms(10);
      for (auto& [n, member] : nodes_) {
        if (dead_.contains(n)) continue;
        Membership::Output out;
        if (member->next_wakeup() <= now_) member->tick(now_, out);
        carry(n, out);
      }
    }
  }

  bool sees(std::uint64_t who, std::uint64_t whom) { return at(who).is_alive(at(whom).self()); }
  Time now() const { return now_; }
  void lose(std::uint64_t who, std::uint64_t whom, Loss why) {
    Membership::Output out;
    at(who).on_peer_lost(now_, at(whom).self(), why, out);
    carry(who, out);
  }

 private:
  void carry(std::uint64_t from, Membership::Output& out) {
    const NodeRef self = at(from).self();
    for (auto& send : out.sends) deliver(self, send.to.id.value, send.message);
    for (auto& [to, message] : out.dials)
      for (auto& [n, member] : nodes_)
        if (address(n) == to) deliver(self, n, message);
  }
  void deliver(NodeRef from, std::uint64_t to, const Message& message) {
    const std::uint64_t sender = from.id.value;
    if (!nodes_.contains(to) || side_.contains(sender) != side_.contains(to)) return;
    if (refused_.contains({std::min(sender, to), std::max(sender, to)})) return lose(sender, to, Loss::kRefused);
    Membership::Output out;
    if (dead_.contains(to)) {
      at(sender).on_peer_lost(now_, at(to).self(), Loss::kRefused, out);
      return carry(sender, out);
    }
    Membership& m = at(to);
    m.on_heard(now_, from, out);
    if (const auto* ping = std::get_if<Ping>(&message)) m.on_ping(now_, from, *ping, out);
    if (const auto* ack = std::get_if<Ack>(&message)) m.on_ack(now_, from, *ack, out);
    if (const auto* request = std::get_if<PingRequest>(&message)) m.on_ping_request(now_, from, *request, out);
    if (const auto* answer = std::get_if<Unreached>(&message)) m.on_unreached(now_, from, *answer, out);
    if (const auto* news = std::get_if<News>(&message)) m.on_news(now_, from, news->news, out);
    if (const auto* sync = std::get_if<Sync>(&message)) m.on_sync(now_, from, *sync, out);
    carry(to, out);
  }

  Time now_{Duration::s(1).ns};
  std::map<std::uint64_t, std::unique_ptr<Membership>> nodes_;
  std::set<std::uint64_t> dead_;
  std::set<std::uint64_t> side_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> refused_;
};

TEST(Membership, EverybodyLearnsOfEverybodyThroughOneSeed) {
  Cluster cluster(10);
  cluster.run(Duration::s(5));
  for (std::uint64_t a = 1; a <= 10; ++a) EXPECT_EQ(cluster.at(a).alive_count(), 10u) << "node " << a;
}

TEST(Membership, ANodeWhoseProcessIsGoneIsDeadForAllInASecond) {
  Cluster cluster(8);
  cluster.run(Duration::s(5));
  cluster.kill(3);
  cluster.lose(1, 3, Loss::kClosed);  // one peer notices: it dials, and nobody listens
  cluster.run(Duration::s(1));
  for (std::uint64_t a : {1, 2, 4, 5, 6, 7, 8}) EXPECT_FALSE(cluster.sees(a, 3)) << "node " << a;
}

TEST(Membership, WhomOneIsRefusedByAndOthersReachIsAliveAndReachedByWayOfThem) {
  Cluster cluster(3);
  cluster.run(Duration::s(5));
  cluster.refuse(1, 2);
  cluster.at(1).touch(cluster.now(), NodeId{2});
  for (int look = 0; look < 60; ++look) {
    cluster.run(Duration::s(1));
    ASSERT_TRUE(cluster.sees(1, 2) && cluster.sees(2, 1) && cluster.sees(3, 1)) << "second " << look;
  }
  EXPECT_EQ(cluster.at(1).self().incarnation, 0u);
  EXPECT_EQ(cluster.at(1).helper_for(NodeId{2}).id, NodeId{3});
  EXPECT_TRUE(cluster.at(1).paths().is_blocked(NodeId{2}));
  EXPECT_FALSE(cluster.at(1).paths().is_blocked(NodeId{3}));
}

TEST(Membership, OfTwoTheSecondRefusedDialIsADeath) {
  MembershipOptions options;
  options.self = {NodeId{1}, 0};
  options.address = Cluster::address(1);
  options.initial_members = {{{NodeId{2}, 0}, Cluster::address(2), Life::kAlive}};
  Membership member(options, Time{});
  Membership::Output out;
  member.on_peer_lost(Time{}, {NodeId{2}, 0}, Loss::kRefused, out);
  EXPECT_TRUE(member.is_alive({NodeId{2}, 0}));
  EXPECT_EQ(out.sends.size(), 1u) << "the second dial";
  member.on_peer_lost(Time{}, {NodeId{2}, 0}, Loss::kRefused, out);
  EXPECT_FALSE(member.is_alive({NodeId{2}, 0}));
}

TEST(Membership, ASilentPeerThatIsDependedOnIsDeadInAboutASecond) {
  Cluster cluster(4);
  cluster.run(Duration::s(5));
  cluster.cut({4});
  cluster.at(1).touch(cluster.now(), NodeId{4});
  cluster.run(Duration::ms(1400));
  EXPECT_FALSE(cluster.sees(1, 4));
}

TEST(Membership, WhoIsCutOffComesBackAsAnotherIncarnation) {
  Cluster cluster(6);
  cluster.run(Duration::s(5));
  cluster.cut({5, 6});
  cluster.run(Duration::s(40));
  EXPECT_FALSE(cluster.sees(1, 5));
  EXPECT_FALSE(cluster.sees(5, 1));
  EXPECT_TRUE(cluster.sees(5, 6));
  cluster.cut({});
  cluster.run(Duration::s(30));
  for (std::uint64_t a = 1; a <= 6; ++a)
    for (std::uint64_t b = 1; b <= 6; ++b) EXPECT_TRUE(cluster.sees(a, b)) << a << " " << b;
  EXPECT_GT(cluster.at(5).self().incarnation, 0u);
}

TEST(Membership, AVerdictIsFinalForItsIncarnation) {
  Cluster cluster(2);
  cluster.run(Duration::s(3));
  const NodeRef first = cluster.at(2).self();
  Membership::Output out;
  cluster.at(1).on_news(cluster.now(), {}, {{first, Cluster::address(2), Life::kDead}}, out);
  cluster.at(1).on_news(cluster.now(), {}, {{first, Cluster::address(2), Life::kAlive}}, out);
  EXPECT_FALSE(cluster.at(1).is_alive(first));
  cluster.at(1).on_news(cluster.now(), {}, {{{first.id, 1}, Cluster::address(2), Life::kAlive}}, out);
  EXPECT_TRUE(cluster.at(1).is_alive({first.id, 1}));
}

TEST(Membership, SomebodyElseAtTheAddressMeansDead) {
  Cluster cluster(3);
  cluster.run(Duration::s(3));
  Membership::Output out;
  cluster.at(1).on_peer_lost(cluster.now(), cluster.at(2).self(), Loss::kReplaced, out);
  EXPECT_FALSE(cluster.at(1).is_alive({NodeId{2}, 0}));
}

TEST(Membership, AHomeThatIsWaitedForIsWatchedBetweenTwoRefreshes) {
  MembershipOptions options;
  options.self = {NodeId{1}, 0};
  options.address = Cluster::address(1);
  options.limits.gossip_every = options.limits.sync_every = Duration::s(1000);  // nobody else looks
  options.initial_members = {{{NodeId{2}, 0}, Cluster::address(2), Life::kAlive}};
  Membership member(options, Time{});
  member.touch(Time{}, NodeId{2});
  Membership::Output out;
  member.tick(Time{} + options.limits.want_refresh, out);
  const bool pinged =
      std::ranges::any_of(out.sends, [](const auto& send) { return std::holds_alternative<Ping>(send.message); });
  EXPECT_TRUE(pinged);
}

TEST(Membership, ALifeWhoseEndCouldNotBeRefutedIsNotBelieved) {
  MembershipOptions options;
  options.self = {NodeId{1}, 0};
  options.address = Cluster::address(1);
  Membership member(options, Time{});
  Membership::Output out;
  member.on_news(Time{}, {NodeId{2}, 0}, {{{NodeId{1}, ~0U}, Cluster::address(1), Life::kDead}}, out);
  EXPECT_FALSE(out.refuted);
  EXPECT_EQ(member.self(), options.self);
}

TEST(Membership, AVerdictDoesNotMoveAnAddress) {
  MembershipOptions options;
  options.self = {NodeId{1}, 0};
  options.address = Cluster::address(1);
  options.initial_members = {{{NodeId{2}, 0}, Cluster::address(2), Life::kAlive}};
  Membership member(options, Time{});
  Membership::Output out;
  member.on_news(Time{}, {NodeId{3}, 0}, {{{NodeId{2}, 0}, Cluster::address(9), Life::kDead}}, out);
  EXPECT_FALSE(member.is_alive({NodeId{2}, 0}));
  EXPECT_EQ(*member.address_of(NodeId{2}), Cluster::address(2)) << "where it is told of it";
}

}  // namespace
}  // namespace hoplite
