#include "sim/network.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hoplite::sim {
namespace {

struct Heard {
  NodeIndex at;
  std::uint64_t from;
  std::string what;
  Time when;
};

class NetworkTest : public ::testing::Test, public NetworkSink {
 protected:
  NetworkTest() : hosts_(random_), network_(queue_, hosts_, random_, *this) {}

  void make(NodeIndex count, Duration jitter = {}) {
    for (NodeIndex node = 0; node < count; ++node) {
      LinkSpec link;
      link.latency = Duration::ms(1);
      link.jitter = jitter;
      link.up = link.down = 1e15;  // sizes do not matter here
      hosts_.add({"host" + std::to_string(node), 1}, link);
      network_.add_node();
      start(node);
    }
  }
  void start(NodeIndex node) {
    hosts_[node].powered = hosts_[node].running = true;
    ++hosts_[node].start;
    hosts_[node].ref = {NodeId{node + 1 + 100ULL * hosts_[node].start}, 0};
  }
  void crash(NodeIndex node, bool with_machine) {
    network_.process_died(node, with_machine);
    hosts_[node].running = false;
    hosts_[node].powered = !with_machine;
  }
  void send(NodeIndex from, NodeIndex to, const std::string& what) {
    network_.send(from, hosts_[to].ref, hosts_[to].address, what);
  }
  void run(Duration time = Duration::s(10)) {
    const Time end = queue_.now() + time;
    while (queue_.next_time() <= end) queue_.run_next();
    queue_.advance_to(end);
  }
  std::vector<std::string> texts(NodeIndex at) const {
    std::vector<std::string> found;
    for (const Heard& heard : heard_)
      if (heard.at == at) found.push_back(heard.what);
    return found;
  }

  void message_arrived(NodeIndex at, NodeRef from, const std::string& bytes) override {
    heard_.push_back({at, from.id.value, bytes, queue_.now()});
  }
  void peer_lost(NodeIndex at, NodeRef peer, Loss why) override {
    static constexpr const char* kNames[] = {"closed", "refused", "timed out", "replaced", "rejected"};
    heard_.push_back({at, peer.id.value, kNames[static_cast<int>(why)], queue_.now()});
  }

  EventQueue queue_;
  Random random_{1};
  Hosts hosts_;
  Network network_;
  std::vector<Heard> heard_;
};

using Texts = std::vector<std::string>;

TEST_F(NetworkTest, TheFirstMessageDialsTheNextDoNot) {
  make(2);
  send(0, 1, "a");
  run();
  ASSERT_EQ(texts(1), Texts{"a"});
  EXPECT_EQ(heard_[0].when, Time{} + Duration::ms(3));  // there and back, and there
  const Time before = queue_.now();
  send(0, 1, "b");
  run();
  ASSERT_EQ(texts(1), (Texts{"a", "b"}));
  EXPECT_EQ(heard_[1].when, before + Duration::ms(1));
  EXPECT_EQ(network_.open_connections(), 1u);
}

TEST_F(NetworkTest, OneConnectionKeepsOrderWhateverTheJitter) {
  make(2, Duration::ms(20));
  for (int i = 0; i < 100; ++i) {
    send(0, 1, std::to_string(i));
    run(Duration::us(500));
  }
  run();
  ASSERT_EQ(heard_.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(heard_[i].what, std::to_string(i));
}

TEST_F(NetworkTest, DialsFailForTheRightReason) {
  make(3);
  crash(1, false);
  send(0, 1, "a");
  crash(2, true);
  send(0, 2, "b");
  run();
  ASSERT_EQ(texts(0), (Texts{"refused", "timed out"}));
  EXPECT_EQ(heard_[0].when, Time{} + Duration::ms(2));
  EXPECT_EQ(heard_[1].when, Time{} + Duration::s(1));
  const NodeRef old = hosts_[1].ref;
  start(1);
  network_.send(0, old, hosts_[1].address, "c");
  run();
  EXPECT_EQ(texts(0).back(), "replaced");
  EXPECT_TRUE(texts(1).empty());
}

TEST_F(NetworkTest, APausedProcessHearsEverythingLater) {
  make(2);
  send(0, 1, "a");
  run();
  hosts_[1].paused = true;
  send(0, 1, "b");
  send(0, 1, "c");
  run();
  EXPECT_EQ(texts(1), Texts{"a"});
  hosts_[1].paused = false;
  auto inbox = std::move(hosts_[1].inbox);
  for (Task& task : inbox) task();
  EXPECT_EQ(texts(1), (Texts{"a", "b", "c"}));
}

TEST_F(NetworkTest, ADialToAPausedProcessTimesOut) {
  make(2);
  hosts_[1].paused = true;
  send(0, 1, "a");
  run();
  EXPECT_EQ(texts(0), Texts{"timed out"});
}

TEST_F(NetworkTest, ABlockedPathHoldsBackAndHealingDelivers) {
  make(2);
  send(0, 1, "a");
  run();
  hosts_.block(0, 1);
  send(0, 1, "b");
  send(0, 1, "c");
  run();
  EXPECT_EQ(texts(1), Texts{"a"});
  EXPECT_TRUE(texts(0).empty());  // silence, no news
  hosts_.unblock_all();
  network_.paths_changed();
  send(0, 1, "d");
  run();
  EXPECT_EQ(texts(1), (Texts{"a", "b", "c", "d"}));
}

TEST_F(NetworkTest, ABrokenConnectionLosesATailAndTellsBothSides) {
  bool lost_something = false;
  bool kept_something = false;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    EventQueue queue;
    Random random(seed);
    Hosts hosts(random);
    heard_.clear();
    Network network(queue, hosts, random, *this);
    for (NodeIndex node = 0; node < 2; ++node) {
      hosts.add({"host" + std::to_string(node), 1}, {});
      network.add_node();
      hosts[node].running = true;
      hosts[node].ref = {NodeId{node + 1}, 0};
    }
    for (int i = 0; i < 10; ++i) network.send(0, hosts[1].ref, hosts[1].address, std::to_string(i));
    while (queue.now() < Time{} + Duration::us(100)) queue.run_next();
    network.break_between(0, 1);
    network.send(0, hosts[1].ref, hosts[1].address, "too late");
    while (!queue.empty()) queue.run_next();
    Texts receiver = texts(1);
    ASSERT_FALSE(receiver.empty());
    EXPECT_EQ(receiver.back(), "closed");
    receiver.pop_back();
    for (std::size_t i = 0; i < receiver.size(); ++i) EXPECT_EQ(receiver[i], std::to_string(i));
    EXPECT_EQ(texts(0), Texts{"closed"});
    lost_something = lost_something || receiver.size() < 10;
    kept_something = kept_something || !receiver.empty();
  }
  EXPECT_TRUE(lost_something);
  EXPECT_TRUE(kept_something);
}

TEST_F(NetworkTest, WhoDisconnectsHearsNothingAndTheOtherDoes) {
  make(2);
  send(0, 1, "a");
  send(1, 0, "b");
  run();
  heard_.clear();
  network_.disconnect(0, hosts_[1].ref.id);
  run();
  EXPECT_TRUE(texts(0).empty());
  EXPECT_EQ(texts(1), (Texts{"closed", "closed"}));  // one for each direction
  send(1, 0, "again");
  run();
  EXPECT_EQ(texts(0), Texts{"again"});
}

TEST_F(NetworkTest, ADeadMachineIsSilentUntilItIsBack) {
  make(2);
  send(0, 1, "a");
  send(1, 0, "b");
  run();
  heard_.clear();
  crash(1, true);
  send(0, 1, "c");
  run();
  EXPECT_TRUE(heard_.empty());
  start(1);
  network_.paths_changed();
  run();
  EXPECT_EQ(texts(0), (Texts{"closed", "closed"}));
  EXPECT_TRUE(texts(1).empty());
}

TEST_F(NetworkTest, SendToAddressReachesWhoeverIsThereAndIsSilentOtherwise) {
  make(2);
  network_.send_to_address(0, hosts_[1].address, "hello");
  network_.send_to_address(0, {"nowhere", 1}, "hello");
  run();
  EXPECT_EQ(texts(1), Texts{"hello"});
  crash(1, false);
  network_.send_to_address(0, hosts_[1].address, "hello");
  run();
  EXPECT_TRUE(texts(0).empty());
}

}  // namespace
}  // namespace hoplite::sim
