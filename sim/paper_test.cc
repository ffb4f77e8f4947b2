// What the paper (Zhuang et al., SIGCOMM 2021) says of reduces, one test for each claim, and what its artifact gets
// wrong (design.md section 12). Simulated, so that times mean something; the judge compares every byte that a client
// sees.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/reduce/cost.h"
#include "sim/clients.h"
#include "sim/quiet_checks.h"

namespace hoplite::sim {
namespace {

struct LabOptions {
  NodeIndex nodes = 9;
  std::uint64_t size = 32 * kMiB;  // of each source
  bool bytes = false;              // carried and compared; without them large runs are quick
  std::uint64_t piece_bytes = 64 * kKiB;
  std::uint32_t width = 0;  // of the tree; 0: by cost
};

constexpr double kRate = 62.5e6;  // 500 Mbit/s
constexpr Duration kLatency = Duration::us(100);
constexpr Duration kPatience = Duration::s(60);

constexpr LabOptions with_bytes(std::uint64_t size, NodeIndex nodes = 9) { return {nodes, size, true, 4 * kKiB, 0}; }

// A cluster that has been running, one client on each node, sources that arrive when a test says so, and one reduce.
class Lab final : public WorldObserver {
 public:
  explicit Lab(const LabOptions& options)
      : options_(options),
        world_(world_options(options)),
        judge_(world_, ledger_, {Duration::s(5), Duration::s(1)}),
        clients_(world_, ledger_, judge_) {
    world_.observe(this);
    LinkSpec link;
    link.up = link.down = kRate;
    link.latency = kLatency;
    std::vector<Address> addresses;
    for (NodeIndex i = 0; i < options.nodes; ++i) addresses.push_back({"10.0.0." + std::to_string(i + 1), 7411});
    for (const Address& address : addresses) world_.add_node({address, link, options.size * 12 + kMiB, addresses});
    world_.start_acquainted();
    for (NodeIndex i = 0; i < options.nodes; ++i) at_.push_back(clients_.attach(i));
  }

  // --- sources, in the order in which they are made
  // Room for one on each of these nodes; it arrives when it is sealed.
  void make_sources(const std::vector<NodeIndex>& nodes) {
    for (const NodeIndex node : nodes) {
      const ObjectId id = clients_.new_id(at_[node]);
      const RequestNumber create = clients_.create(at_[node], id, options_.size, kNoTimeout);
      wait_for([&] { return ledger_.requests[create].ended; });
      sources_.push_back(id);
      creates_.push_back(create);
    }
  }
  void arrive(std::size_t source) { clients_.seal(creates_[source], kNoTimeout); }
  void arrive_all() {
    for (std::size_t i = 0; i < sources_.size(); ++i) arrive(i);
    world_.run_for(Duration::ms(10));
  }
  void arrive_later(std::size_t source, Duration from_now) {
    world_.at(world_.now() + from_now, [this, source] { arrive(source); });
  }

  // --- the reduce
  // The node that asks mints the target, and so coordinates.
  void reduce(NodeIndex asks, std::size_t count, Spread spread = Spread::kNone) {
    began_ = world_.now();
    bytes_before_ = world_.links().bytes_delivered();
    target_ = clients_.new_id(at_[asks]);
    coordinator_ = asks;
    ReduceSpec record;
    record.target = target_;
    record.sources = sources_;
    record.count = static_cast<std::uint32_t>(count);
    record.type = DType::kU64;
    record.spread = spread;
    clients_.reduce(at_[asks], record, options_.size);
  }
  RequestNumber get(NodeIndex node, bool follow = false) {
    return clients_.get(at_[node], {target_, kNoTimeout, false, follow});
  }
  // When it had the result, in seconds from the call of reduce().
  double finish(RequestNumber get) {
    const RequestRecord& request = ledger_.requests[get];
    wait_for([&] { return request.ended; });
    EXPECT_EQ(request.code, Code::kOk) << request.message;
    return (request.ended_at - began_).seconds();
  }
  // Told by the coordinator. After the end the judge compares it with the bytes that were read.
  ReduceReport report() {
    const RequestNumber number = clients_.report(at_[coordinator_], target_);
    wait_for([&] { return ledger_.requests[number].ended; });
    EXPECT_TRUE(ledger_.requests[number].report.has_value()) << ledger_.requests[number].message;
    return ledger_.requests[number].report.value_or(ReduceReport{});
  }
  std::uint64_t bytes_moved() const { return world_.links().bytes_delivered() - bytes_before_; }

  // --- time and faults
  void run_for(double seconds) { ASSERT_TRUE(world_.run_for(Duration::from_seconds(seconds))) << violation(); }
  template <typename Condition>
  void wait_for(Condition condition) {
    const Time end = world_.now() + kPatience;
    while (!condition() && world_.now() < end && world_.run_for(Duration::us(50))) {}
    ASSERT_TRUE(condition()) << "it does not happen; " << violation();
  }
  void kill(NodeIndex node) { world_.crash(node, Crash::kProcess); }
  std::string violation() const {
    const auto& found = world_.violation();
    return found ? found->invariant + ": " + found->text : "";
  }
  // Everything is given back and deleted, and nothing may be left.
  void expect_nothing_left() {
    wait_for([&] { return members_converged(world_); });
    while (!ledger_.held.empty()) clients_.release(ledger_.held.begin()->first);
    std::vector<ObjectId> ids = sources_;
    ids.push_back(target_);
    while (!ledger_.writing.empty()) clients_.abort(ledger_.writing.begin()->first);
    for (const ObjectId& id : ids) clients_.remove(at_[coordinator_], id, kNoTimeout);
    wait_for([&] { return leftovers(world_).empty(); });
    EXPECT_EQ(leftovers(world_), "");
    EXPECT_EQ(violation(), "");
  }

  // --- facts
  double ideal() const { return static_cast<double>(options_.size) / kRate; }  // S / B
  double seconds() const { return (world_.now() - began_).seconds(); }
  World& world() { return world_; }
  NodeIndex node_of(NodeId id) const {
    for (NodeIndex node = 0; node < options_.nodes; ++node)
      if (world_.hosts()[node].ref.id == id) return node;
    return kNobody;
  }
  struct Following {  // of a get, as its client sees it
    std::uint64_t shown = 0;
    Version version = 0;
    int resets = 0;
  };
  const Following& following(RequestNumber get) { return following_[get]; }

  // --- WorldObserver
  void on_reply(ClientKey client, std::uint64_t request, const ipc::Reply& reply) override {
    Following& following = following_[request];
    if (const auto* opened = std::get_if<ipc::Opened>(&reply))
      following.shown = opened->bytes, following.version = opened->version;
    if (const auto* grown = std::get_if<ipc::Grown>(&reply)) following.shown = grown->bytes;
    if (std::holds_alternative<ipc::Reset>(reply)) following.shown = 0, ++following.resets;
    if (const auto* view = std::get_if<ipc::View>(&reply))
      following.shown = view->size, following.version = view->version;
    clients_.on_reply(client, request, reply);
  }
  void on_transfer(const Transfer& transfer) override { clients_.on_transfer(transfer); }
  void on_step(NodeIndex node) override { clients_.on_step(node); }
  void on_leave(NodeIndex node) override { clients_.on_leave(node); }
  void on_death(NodeIndex node) override { clients_.on_death(node); }
  void on_rename(NodeIndex node, NodeRef before) override { clients_.on_rename(node, before); }

 private:
  static WorldOptions world_options(const LabOptions& options) {
    WorldOptions world;
    world.seed = 1;
    world.carry_bytes = options.bytes;
    world.limits.default_rate = static_cast<std::uint64_t>(kRate);  // as measured by earlier transfers
    world.limits.hop_latency = kLatency;
    world.limits.tree_work = Duration{};  // the paper's formula knows no such cost
    world.limits.reduce_width = options.width;
    world.links.piece_bytes = options.piece_bytes;
    world.links.window_bytes = 8 * options.piece_bytes;
    world.max_events = 20'000'000;
    return world;
  }

  LabOptions options_;
  Ledger ledger_;
  World world_;
  Judge judge_;
  Clients clients_;
  std::vector<ClientKey> at_;
  std::vector<ObjectId> sources_;
  std::vector<RequestNumber> creates_;
  ObjectId target_;
  NodeIndex coordinator_ = 0;
  Time began_;
  std::uint64_t bytes_before_ = 0;
  std::map<RequestNumber, Following> following_;
};

const std::vector<NodeIndex> kEight = {1, 2, 3, 4, 5, 6, 7, 8};  // node 0 coordinates, and has no source

// From the root to the deepest slot; empty if it is no chain.
std::vector<NodeId> chain_of(const ReduceReport& report) {
  std::vector<NodeId> chain;
  std::vector<std::uint32_t> level;
  for (std::uint32_t i = 0; i < report.slots.size(); ++i)
    if (report.slots[i].parent == i) level.push_back(i);
  while (level.size() == 1) {
    const std::uint32_t above = level.front();
    chain.push_back(report.slots[above].node);
    level.clear();
    for (std::uint32_t i = 0; i < report.slots.size(); ++i)
      if (i != above && report.slots[i].parent == above) level.push_back(i);
  }
  return level.empty() ? chain : std::vector<NodeId>{};
}
std::size_t hops(const ReduceReport& report) {
  std::size_t most = 0;
  for (std::uint32_t slot = 0; slot < report.slots.size(); ++slot) {
    std::size_t depth = 0;
    for (std::uint32_t i = slot; report.slots[i].parent != i; i = report.slots[i].parent) ++depth;
    most = std::max(most, depth);
  }
  return most;
}
std::vector<std::size_t> used_of(const ReduceReport& report) {
  std::vector<std::size_t> used;
  for (std::size_t i = 0; i < report.sources.size(); ++i)
    if (report.sources[i].state == SourceState::kUsed) used.push_back(i);
  return used;
}

// --- the claims

// Objects that become ready early are reduced early, and those that come late sit near the root: what is left to do
// after the last arrival is one transfer.
TEST(Paper, ALateSourceCostsOneTransfer) {
  struct Case {
    double over;                   // so many times S/B; evenly
    std::optional<NodeIndex> own;  // which of the arrivals is the coordinator's own
  };
  for (const Case& c :
       {Case{1.5, {}}, Case{1.5, 0}, Case{1.5, 5}, Case{1.5, 7}, Case{4, {}}, Case{4, 0}, Case{4, 4}, Case{4, 7}}) {
    SCOPED_TRACE("over " + std::to_string(c.over) +
                 " x S/B, the coordinator's: " + (c.own ? std::to_string(*c.own) : "none"));
    Lab lab({});
    std::vector<NodeIndex> nodes = kEight;
    if (c.own) nodes[*c.own] = 0;
    lab.make_sources(nodes);
    lab.reduce(0, 8);
    const RequestNumber get = lab.get(0);
    const double over = c.over * lab.ideal();
    for (std::size_t i = 0; i < 8; ++i)
      lab.arrive_later(i, Duration::from_seconds(over * static_cast<double>(i + 1) / 8));
    EXPECT_LE(lab.finish(get) - over, 1.15 * lab.ideal());
    const ReduceReport report = lab.report();
    std::map<NodeId, std::uint32_t> order;
    for (const SourceReport& source : report.sources) order[source.node] = source.order;
    for (const SlotReport& slot : report.slots) {
      const SlotReport& parent = report.slots[slot.parent];
      if (&parent == &slot) continue;
      // The coordinator's own source waits for the place at the root.
      const bool at_root = &report.slots[parent.parent] == &parent && parent.node == report.coordinator;
      if (at_root) continue;
      EXPECT_GT(order[parent.node], order[slot.node]) << "what is below arrived before";
    }
    lab.expect_nothing_left();
  }
}

// The degree d of the tree follows from latency, bandwidth and size.
TEST(Paper, TheShapeFollowsFromTheCost) {
  const auto report_of = [](std::uint64_t size) {
    Lab lab({.size = size});
    lab.make_sources(kEight);
    lab.arrive_all();
    lab.reduce(0, 8);
    lab.finish(lab.get(0));
    const ReduceReport report = lab.report();
    lab.expect_nothing_left();
    return report;
  };
  const ReduceReport small = report_of(kKiB);
  EXPECT_LE(hops(small), 1U) << "a star: everything is sent to one place";
  std::size_t sources = 0;
  for (const SlotReport& slot : small.slots) sources += slot.sources;
  EXPECT_EQ(sources, 8U);

  const ReduceReport large = report_of(32 * kMiB);
  EXPECT_EQ(chain_of(large).size(), 8U) << "a chain: every link carries the bytes once";

  // Between the two, the tree is as wide as the formula says.
  const std::uint64_t between = 16 * kKiB;
  const std::uint32_t width = best_width(8, static_cast<double>(between), {kLatency.seconds(), kRate});
  ASSERT_GT(width, 1U);
  ASSERT_LT(width, 7U);
  const ReduceReport middle = report_of(between);
  EXPECT_EQ(middle.slots.size(), 8U);
  EXPECT_EQ(hops(middle), tree_depth(8, width));
}

// Reduce is pipelined: the root's first byte leaves before the last source's last byte arrives.
TEST(Paper, TheResultLeavesWhileTheSourcesArrive) {
  Lab lab({.nodes = 10});
  lab.make_sources(kEight);
  lab.arrive_all();
  lab.reduce(0, 8);
  const RequestNumber get = lab.get(9, true);  // it has no source
  lab.wait_for([&] { return lab.following(get).shown > 0; });
  const double first_byte = lab.seconds();
  const NodeIndex root = lab.node_of(chain_of(lab.report()).at(0));
  ASSERT_NE(root, 9U);
  EXPECT_EQ(lab.world().plane(root).data().active_pulls(), 1U) << "what comes from the rest of the chain";
  EXPECT_LT(first_byte, 0.1 * lab.ideal());
  EXPECT_LE(lab.finish(get), 1.1 * lab.ideal()) << "all hops together take one transfer";
  lab.expect_nothing_left();
}

// The first k objects are reduced: those that do not come cost no time, and those that come later are not in it.
TEST(Paper, TheFirstKAreEnough) {
  const auto seconds_of_four = [](bool others_wanted, bool others_come) {
    Lab lab({});
    lab.make_sources(others_wanted ? kEight : std::vector<NodeIndex>{1, 2, 3, 4});
    for (std::size_t i = 0; i < 4; ++i) lab.arrive(i);
    lab.run_for(0.01);
    lab.reduce(0, 4);
    for (std::size_t i = 4; others_come && i < 8; ++i)
      lab.arrive_later(i, Duration::from_seconds(lab.ideal() * 0.2 * static_cast<double>(i - 3)));
    const double seconds = lab.finish(lab.get(0));
    lab.run_for(0.1);
    EXPECT_EQ(used_of(lab.report()), (std::vector<std::size_t>{0, 1, 2, 3}));
    lab.expect_nothing_left();
    return seconds;
  };
  const double alone = seconds_of_four(false, false);
  EXPECT_LE(seconds_of_four(true, false), 1.05 * alone);
  EXPECT_LE(seconds_of_four(true, true), 1.05 * alone);
}

// After a failure the outputs of the subtrees are kept, and only the ancestors of what failed start over.
TEST(Paper, AFailureDoesNotStartTheWholeAgain) {
  const auto prepare = [](Lab& lab) {
    lab.make_sources(kEight);
    lab.arrive_all();
    lab.reduce(0, 7);
    return lab.get(0);
  };
  Lab calm({});
  const double undisturbed = calm.finish(prepare(calm));
  const std::uint64_t moved = calm.bytes_moved();
  EXPECT_LE(undisturbed, 1.06 * calm.ideal());

  Lab lab({});
  const RequestNumber get = prepare(lab);
  lab.run_for(undisturbed / 2);
  const std::vector<NodeId> chain = chain_of(lab.report());
  ASSERT_EQ(chain.size(), 7U);
  std::set<NodeIndex> below;
  for (std::size_t i = 4; i < chain.size(); ++i) below.insert(lab.node_of(chain[i]));
  const std::size_t transfers = lab.world().transfers().size();
  lab.kill(lab.node_of(chain[3]));
  EXPECT_LE(lab.finish(get), 1.6 * undisturbed);
  EXPECT_LE(static_cast<double>(lab.bytes_moved()), 1.6 * static_cast<double>(moved))
      << "two reduces move twice as many";
  for (std::size_t i = transfers; i < lab.world().transfers().size(); ++i) {
    const Transfer& transfer = lab.world().transfers()[i];
    EXPECT_FALSE(below.contains(transfer.child.node)) << "what is below the dead one goes on as it was";
  }
  EXPECT_EQ(lab.report().attempts, 1U);
  EXPECT_EQ(used_of(lab.report()).size(), 7U);
  lab.expect_nothing_left();
}

// --- what the artifact gets wrong

// Two of three die in the middle; two spares take their places, each once. They were there before, or come at that
// moment, or later.
TEST(Paper, ASpareIsAcceptedOnce) {
  for (const double when : {0.1, 0.5, 0.9})
    for (const double spares_come : {0.0, 0.5, 0.9, 3.0})
      for (const double apart : {0.0, 0.02, 0.5}) {
        SCOPED_TRACE("deaths at " + std::to_string(when) + ", spares at " + std::to_string(spares_come) + ", apart " +
                     std::to_string(apart));
        Lab lab(with_bytes(256 * kKiB, 6));
        lab.make_sources({1, 2, 3, 4, 5});
        for (std::size_t i = 0; i < 3; ++i) lab.arrive(i);
        lab.run_for(0.01);
        lab.reduce(0, 3);
        const RequestNumber get = lab.get(0);
        for (std::size_t i = 3; i < 5; ++i) lab.arrive_later(i, Duration::from_seconds(lab.ideal() * spares_come));
        lab.run_for(0.001 + lab.ideal() * when);  // they have been found after a millisecond
        const std::vector<NodeId> chain = chain_of(lab.report());
        ASSERT_EQ(chain.size(), 3U);
        lab.kill(lab.node_of(chain[1]));
        lab.run_for(lab.ideal() * apart);
        const std::vector<NodeId> mended = chain_of(lab.report());
        const NodeIndex second = lab.node_of(apart == 0 || mended.empty() ? chain[0] : mended[0]);
        lab.kill(second);
        lab.finish(get);
        EXPECT_EQ(used_of(lab.report()).size(), 3U);
        EXPECT_GE(lab.report().attempts, 1U);
        lab.expect_nothing_left();
      }
}

// Six have come, and make two subtrees; the seventh will be above both. One head dies with its output, or making it.
TEST(Paper, TheHeadOfASubtreeDiesWhileThereIsAnother) {
  for (const double when : {0.5, 1.0, 5.0})
    for (const std::size_t head : {0U, 1U}) {
      SCOPED_TRACE("head " + std::to_string(head) + " dies at " + std::to_string(when));
      LabOptions options = with_bytes(256 * kKiB);
      options.width = 2;
      Lab lab(options);
      lab.make_sources(kEight);
      lab.reduce(0, 7);
      const RequestNumber get = lab.get(0);
      for (std::size_t i = 0; i < 6; ++i) lab.arrive(i);
      lab.run_for(0.004 + lab.ideal() * when);
      const ReduceReport before = lab.report();
      std::vector<NodeId> heads;
      for (std::uint32_t i = 0; i < before.slots.size(); ++i)
        if (before.slots[i].parent == i) heads.push_back(before.slots[i].node);
      ASSERT_EQ(heads.size(), 2U);
      lab.kill(lab.node_of(heads[head]));
      lab.run_for(lab.ideal());
      lab.arrive(6);
      lab.arrive(7);
      lab.finish(get);
      EXPECT_EQ(used_of(lab.report()).size(), 7U);
      EXPECT_EQ(lab.report().attempts, 1U);
      lab.expect_nothing_left();
    }
}

TEST(Paper, TwoSourcesOnOneNodeAreCombinedThere) {
  Lab lab(with_bytes(512 * kKiB, 4));
  lab.make_sources({1, 2, 3, 1, 2, 3});
  lab.arrive_all();
  lab.reduce(0, 6);
  lab.finish(lab.get(0));
  EXPECT_LE(lab.bytes_moved(), 3 * 512 * kKiB) << "two hops, and to the reader";
  EXPECT_EQ(used_of(lab.report()).size(), 6U);
  lab.expect_nothing_left();
}

TEST(Paper, TwoSourcesOnOneNodeThatComeApart) {
  for (const bool dies : {false, true}) {
    Lab lab(with_bytes(512 * kKiB, 4));
    lab.make_sources({1, 2, 3, 1, 2, 3});
    lab.reduce(0, dies ? 4 : 6);
    const RequestNumber get = lab.get(0);
    for (std::size_t i = 0; i < 6; ++i)
      lab.arrive_later(i, Duration::from_seconds(lab.ideal() * 0.5 * static_cast<double>(i)));
    if (dies) {
      lab.run_for(lab.ideal() * 1.8);  // four have come, both of node 1 among them
      lab.kill(1);
    }
    lab.finish(get);
    EXPECT_EQ(used_of(lab.report()).size(), dies ? 4U : 6U);
    lab.expect_nothing_left();
  }
}

// Readers on every node follow the result of an allreduce, and have a part of it, when a node dies. Each is told to
// drop it, and then gets the bytes of the next attempt.
TEST(Paper, ReadersOfAnAllReduceAreResetAndThenGetTheRightBytes) {
  for (const Spread spread : {Spread::kWhole, Spread::kSlices}) {
    SCOPED_TRACE(spread == Spread::kWhole ? "whole" : "slices");
    Lab lab(with_bytes(256 * kKiB, 6));
    lab.make_sources({0, 1, 2, 3, 4, 5});
    lab.arrive_all();
    lab.reduce(0, 5, spread);
    std::vector<RequestNumber> gets;
    for (NodeIndex node = 0; node < 6; ++node) gets.push_back(lab.get(node, true));
    // Slices go one after the other: when the last reader sees the first one, the last one may be committed.
    lab.wait_for(
        [&] { return std::ranges::any_of(gets, [&](RequestNumber get) { return lab.following(get).shown > 0; }); });
    EXPECT_EQ(lab.report().slots.back().slice > 0, spread == Spread::kSlices);
    const NodeIndex victim = lab.node_of(lab.report().sources.at(used_of(lab.report()).back()).node);
    ASSERT_NE(victim, 0U);
    std::map<RequestNumber, Lab::Following> before;
    for (const RequestNumber get : gets) before[get] = lab.following(get);
    lab.kill(victim);
    for (NodeIndex node = 0; node < 6; ++node) {
      if (node == victim) continue;
      lab.finish(gets[node]);
      const int resets = before[gets[node]].shown > 0 ? 1 : 0;
      EXPECT_GE(lab.following(gets[node]).resets, resets) << "node " << node;
      EXPECT_NE(lab.following(gets[node]).version, before[gets[node]].version) << "node " << node;
    }
    EXPECT_EQ(used_of(lab.report()).size(), 5U);
    lab.expect_nothing_left();
  }
}

}  // namespace
}  // namespace hoplite::sim
