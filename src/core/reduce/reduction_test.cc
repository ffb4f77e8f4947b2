#include "core/reduce/reduction.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "protocol/metadata.h"

namespace hoplite {
namespace {

ObjectId source(std::uint64_t n) { return {7, n}; }
NodeRef node(std::uint64_t n) { return {NodeId{n}, 0}; }

// Nodes that obey: an output is the list of the sources in it.
class Cluster {
 public:
  explicit Cluster(std::uint32_t sources, std::uint32_t count, ReduceOp op = ReduceOp::kSum,
                   Spread spread = Spread::kNone, NodeRef self = node(1)) {
    Reduction::Options options;
    options.self = self;
    options.spec.target = {1, 1};
    for (std::uint32_t i = 1; i <= sources; ++i) options.spec.sources.push_back(source(i));
    options.spec.count = count;
    options.spec.op = op;
    options.spec.spread = spread;
    options.links = same_for_all({200e-6, 62.5e6});
    options.seed = 5;
    reduction_.emplace(std::move(options));
    run([&](auto& out) { reduction_->start(out); });
  }

  void arrive(std::uint64_t id, std::uint64_t at, std::uint64_t size = 1 << 20, const std::string& meta = {}) {
    run([&](auto& out) { reduction_->on_arrival(now_, {source(id), node(at), 100 + id, size, meta}, out); });
  }
  void die(std::uint64_t at) {
    std::erase_if(orders_, [&](const auto& item) { return item.second.first == node(at); });
    run([&](auto& out) { reduction_->on_dead(node(at), out); });
  }
  void update(const SlotOrder& order, SlotState state, Code code = Code::kOk, ObjectId culprit = {}) {
    const NodeRef from = orders_.at(order.slot).first;
    run([&](auto& out) {
      reduction_->on_update(from, {order.target, order.slot, order.version, state, code, culprit, "no", 0}, out);
    });
  }
  void wait() {
    now_ = now_ + Duration::ms(10);
    run([&](auto& out) { reduction_->tick(now_, out); });
  }
  // Everybody says that it is done.
  void finish() {
    const auto orders = orders_;
    for (const auto& [slot, order] : orders)
      if (orders_.contains(slot)) update(order.second, SlotState::kDone);
  }

  // What is in the output of `order`, each source as often as it is in it.
  std::multiset<ObjectId> contents(const SlotOrder& order) const {
    std::multiset<ObjectId> all;
    for (const SlotSource& own : order.own) all.insert(own.id);
    for (const SlotInput& input : order.inputs) {
      if (input.id != order.target) {
        all.insert(input.id);
        continue;
      }
      const auto it = std::ranges::find_if(orders_, [&](const auto& item) {
        return item.second.second.version == input.version && item.second.first == input.node &&
               item.second.second.slice == order.slice && item.second.second.role == SlotRole::kInner;
      });
      EXPECT_NE(it, orders_.end()) << "an input that nobody makes";
      if (it == orders_.end()) continue;
      const std::multiset<ObjectId> below = contents(it->second.second);
      all.insert(below.begin(), below.end());
    }
    return all;
  }
  std::vector<SlotOrder> roots() const {
    std::vector<SlotOrder> found;
    for (const auto& [slot, order] : orders_)
      if (order.second.role == SlotRole::kRoot) found.push_back(order.second);
    return found;
  }
  // The root of every slice has exactly these, once.
  void expect_result(const std::multiset<ObjectId>& expected, std::size_t slices = 1) const {
    ASSERT_EQ(roots().size(), slices);
    for (const SlotOrder& root : roots()) {
      EXPECT_EQ(contents(root), expected);
      EXPECT_EQ(root.version, reduction_->target_version());
    }
  }

  Reduction& reduction() { return *reduction_; }
  NodeRef node_of(const SlotOrder& order) const { return orders_.at(order.slot).first; }
  const std::map<std::uint64_t, std::pair<NodeRef, SlotOrder>>& orders() const { return orders_; }
  std::vector<ObjectId> watched;
  std::size_t commits = 0;

 private:
  void run(const std::function<void(Reduction::Output&)>& step) {
    Reduction::Output out;
    step(out);
    for (const Reduction::Outgoing& send : out.sends) {
      if (const auto* order = std::get_if<SlotOrder>(&send.message)) orders_[order->slot] = {send.to, *order};
      if (const auto* end = std::get_if<SlotEnd>(&send.message)) {
        commits += end->commit ? 1 : 0;
        if (!end->commit) orders_.erase(end->slot);
      }
    }
    watched.insert(watched.end(), out.watch.begin(), out.watch.end());
  }

  std::optional<Reduction> reduction_;
  std::map<std::uint64_t, std::pair<NodeRef, SlotOrder>> orders_;
  Time now_;
};

TEST(Reduction, AllThereAtOnceIsAChainThatEndsAtTheAsker) {
  Cluster cluster(4, 4);
  for (std::uint64_t i = 1; i <= 4; ++i) cluster.arrive(i, i);
  cluster.expect_result({source(1), source(2), source(3), source(4)});
  EXPECT_EQ(cluster.node_of(cluster.roots().front()), node(1));
  EXPECT_EQ(cluster.roots().front().inputs.size(), 1u) << "a chain";
  cluster.finish();
  EXPECT_EQ(cluster.reduction().phase(), ReducePhase::kDone);
  EXPECT_EQ(cluster.commits, 1u);
}

TEST(Reduction, ArrivalsStreamAtOnceAndTheLastIsTheRoot) {
  Cluster cluster(4, 4);
  cluster.arrive(3, 3);
  cluster.arrive(1, 5);
  EXPECT_TRUE(cluster.orders().empty()) << "others may come at any moment";
  cluster.wait();
  EXPECT_EQ(cluster.orders().size(), 2u);
  cluster.arrive(4, 4);
  EXPECT_EQ(cluster.orders().size(), 3u);
  EXPECT_TRUE(cluster.roots().empty());
  cluster.arrive(2, 2);
  cluster.expect_result({source(1), source(2), source(3), source(4)});
  EXPECT_EQ(cluster.node_of(cluster.roots().front()), node(2));
}

TEST(Reduction, TheAskersOwnSourceWaitsForThePlaceAtTheRoot) {
  Cluster cluster(3, 3);
  cluster.arrive(1, 1);
  cluster.arrive(2, 2);
  cluster.wait();
  EXPECT_EQ(cluster.orders().size(), 1u);
  cluster.arrive(3, 3);
  cluster.expect_result({source(1), source(2), source(3)});
  EXPECT_EQ(cluster.node_of(cluster.roots().front()), node(1));
}

TEST(Reduction, SourcesOfOneNodeAreCombinedThere) {
  Cluster cluster(4, 4);
  cluster.arrive(1, 2);
  cluster.arrive(2, 3);
  cluster.arrive(3, 2);
  cluster.arrive(4, 3);
  EXPECT_EQ(cluster.orders().size(), 2u);
  cluster.expect_result({source(1), source(2), source(3), source(4)});
}

TEST(Reduction, TheFirstCountAndNotTheLaterOnes) {
  Cluster cluster(5, 2);
  cluster.arrive(4, 4);
  cluster.arrive(2, 2);
  cluster.arrive(1, 1);
  cluster.expect_result({source(4), source(2)});
  EXPECT_EQ(cluster.reduction().report().sources[0].state, SourceState::kSpare);
  EXPECT_EQ(cluster.reduction().report().sources[3].order, 1u);
}

TEST(Reduction, ASpareTakesADeadSlotInItsPlace) {
  Cluster cluster(5, 4);
  for (std::uint64_t i = 1; i <= 5; ++i) cluster.arrive(i, i);
  const SlotOrder before = cluster.roots().front();
  const NodeRef root = cluster.node_of(before);
  cluster.die(2);
  cluster.expect_result({source(1), source(3), source(4), source(5)});
  EXPECT_EQ(cluster.node_of(cluster.roots().front()), root);
  EXPECT_NE(cluster.roots().front().version, before.version);
  EXPECT_EQ(std::ranges::count(cluster.watched, source(2)), 2) << "it may have another copy";
}

TEST(Reduction, WithoutASpareTheNextArrivalCompletesIt) {
  Cluster cluster(5, 4);
  for (std::uint64_t i = 1; i <= 4; ++i) cluster.arrive(i, i);
  cluster.die(3);
  EXPECT_TRUE(cluster.roots().empty());
  cluster.arrive(5, 6);
  cluster.expect_result({source(1), source(2), source(4), source(5)});
  cluster.die(6);
  cluster.arrive(3, 7);
  cluster.expect_result({source(1), source(2), source(3), source(4)});
  cluster.finish();
  EXPECT_EQ(cluster.commits, 1u);
}

TEST(Reduction, OldVersionsDoNotCount) {
  Cluster cluster(3, 2);
  for (std::uint64_t i = 1; i <= 3; ++i) cluster.arrive(i, i);
  const SlotOrder old = cluster.roots().front();
  cluster.die(2);
  Reduction::Output out;
  cluster.reduction().on_update(node(1), {old.target, old.slot, old.version, SlotState::kDone, Code::kOk, {}, {}, 0},
                                out);
  EXPECT_EQ(cluster.reduction().phase(), ReducePhase::kRunning);
}

TEST(Reduction, NoRoomForAnOutputMakesALeaf) {
  Cluster cluster(4, 4);
  for (std::uint64_t i = 1; i <= 4; ++i) cluster.arrive(i, i);
  const auto inner = std::ranges::find_if(cluster.orders(),
                                          [](const auto& item) { return item.second.second.role == SlotRole::kInner; });
  ASSERT_NE(inner, cluster.orders().end());
  cluster.update(inner->second.second, SlotState::kRefused, Code::kStoreFull);
  cluster.expect_result({source(1), source(2), source(3), source(4)});
  cluster.update(cluster.roots().front(), SlotState::kRefused, Code::kStoreFull);
  cluster.expect_result({source(1), source(2), source(3), source(4)});
  for (int i = 0; i < 2; ++i) cluster.update(cluster.roots().front(), SlotState::kRefused, Code::kStoreFull);
  EXPECT_EQ(cluster.reduction().phase(), ReducePhase::kFailed);
  EXPECT_EQ(cluster.reduction().error().code, Code::kStoreFull);
}

TEST(Reduction, ASourceThatIsNotThereIsLookedForAgain) {
  Cluster cluster(3, 3);
  for (std::uint64_t i = 1; i <= 3; ++i) cluster.arrive(i, i);
  const auto second =
      std::ranges::find_if(cluster.orders(), [](const auto& item) { return item.second.first == node(2); });
  cluster.update(second->second.second, SlotState::kRefused, Code::kUnavailable, source(2));
  EXPECT_TRUE(cluster.roots().empty());
  cluster.arrive(2, 3);
  cluster.expect_result({source(1), source(2), source(3)});
}

TEST(Reduction, AnInputThatIsNotThereIsMadeAgain) {
  Cluster cluster(3, 3);
  for (std::uint64_t i = 1; i <= 3; ++i) cluster.arrive(i, i);
  const SlotOrder before = cluster.roots().front();
  ASSERT_EQ(before.inputs.front().id, before.target);
  cluster.update(before, SlotState::kRefused, Code::kUnavailable, before.inputs.front().id);
  cluster.expect_result({source(1), source(2), source(3)});
  EXPECT_NE(cluster.roots().front().version, before.version);
  EXPECT_NE(cluster.roots().front().inputs.front().version, before.inputs.front().version);
}

TEST(Reduction, MismatchesNameTheSource) {
  Cluster sizes(2, 2);
  sizes.arrive(1, 1, 64);
  sizes.arrive(2, 2, 128);
  EXPECT_EQ(sizes.reduction().error().code, Code::kSizeMismatch);
  EXPECT_NE(sizes.reduction().error().message.find(source(2).to_string()), std::string::npos);
  Cluster types(2, 2);
  types.arrive(1, 1, 64, encode_metadata({DType::kF64, {}, "", ""}));  // f64, where f32 is reduced
  EXPECT_EQ(types.reduction().error().code, Code::kTypeMismatch);
  Cluster odd(2, 2);
  odd.arrive(1, 1, 66);
  EXPECT_EQ(odd.reduction().error().code, Code::kSizeMismatch);
}

TEST(Reduction, FewerThanCountPossibleIsAFailureThatNamesOne) {
  Cluster cluster(3, 2);
  Reduction::Output out;
  cluster.reduction().on_missing(source(1), Code::kDeleted, "", out);
  EXPECT_EQ(cluster.reduction().phase(), ReducePhase::kWaiting);
  cluster.reduction().on_missing(source(3), Code::kLost, "", out);
  EXPECT_EQ(cluster.reduction().phase(), ReducePhase::kFailed);
  EXPECT_NE(cluster.reduction().error().message.find(source(3).to_string()), std::string::npos);
}

TEST(Reduction, AFailureInPlaceOfASourceDoesNotCount) {
  const std::string failure = encode_metadata({DType::kBytes, {}, "", "out of cheese", true});
  Cluster cluster(3, 2);
  cluster.arrive(2, 2, 5, failure);
  EXPECT_EQ(cluster.reduction().phase(), ReducePhase::kWaiting);
  cluster.arrive(1, 1);
  cluster.arrive(3, 3);
  cluster.expect_result({source(1), source(3)});
  EXPECT_EQ(cluster.reduction().report().sources[1].state, SourceState::kFailed);

  Cluster needed(2, 2);
  needed.arrive(1, 1);
  needed.arrive(2, 2, 5, failure);
  EXPECT_EQ(needed.reduction().error().code, Code::kFailed);
  EXPECT_NE(needed.reduction().error().message.find(source(2).to_string() + " failed: out of cheese"),
            std::string::npos);
}

TEST(Reduction, MedianIsAStar) {
  Cluster cluster(4, 4, ReduceOp::kMedian);
  for (std::uint64_t i = 1; i <= 4; ++i) cluster.arrive(i, i);
  cluster.expect_result({source(1), source(2), source(3), source(4)});
  EXPECT_EQ(cluster.roots().front().inputs.size(), 3u);
}

TEST(Reduction, SlicesHaveRootsOfTheirOwnAndOneSetOfSources) {
  Cluster cluster(5, 4, ReduceOp::kSum, Spread::kSlices);
  for (std::uint64_t i = 1; i <= 5; ++i) cluster.arrive(i, i);
  cluster.expect_result({source(1), source(2), source(3), source(4)}, 4);
  std::set<NodeId> nodes;
  for (const SlotOrder& root : cluster.roots()) nodes.insert(cluster.node_of(root).id);
  EXPECT_EQ(nodes.size(), 4u);
  cluster.die(3);
  cluster.expect_result({source(1), source(2), source(4), source(5)}, 4);
  cluster.finish();
  EXPECT_EQ(cluster.commits, 4u);
}

// From whom to whom, and how often.
std::map<std::pair<NodeId, NodeId>, int> links_of(const Cluster& cluster) {
  std::map<std::pair<NodeId, NodeId>, int> links;
  for (const auto& [slot, order] : cluster.orders())
    for (const SlotInput& input : order.second.inputs) ++links[{input.node.id, order.first.id}];
  return links;
}

TEST(Reduction, AllSlicesGoRoundTheSameRingInTheOrderOfTheNodes) {
  Cluster cluster(5, 5, ReduceOp::kSum, Spread::kSlices, node(3));
  for (const std::uint64_t i : {4, 2, 5, 1, 3}) cluster.arrive(i, i);
  cluster.expect_result({source(1), source(2), source(3), source(4), source(5)}, 5);
  auto links = links_of(cluster);
  EXPECT_EQ(links.size(), 5u);
  for (std::uint64_t i = 1; i <= 5; ++i)
    EXPECT_EQ((links[{node(i).id, node(i % 5 + 1).id}]), 4) << "slices, from " << i;
}

TEST(Reduction, AChainIsTheSameRingAndEndsAtTheAsker) {
  Cluster cluster(5, 5, ReduceOp::kSum, Spread::kNone, node(3));
  for (const std::uint64_t i : {4, 3, 2, 5, 1}) cluster.arrive(i, i);
  cluster.expect_result({source(1), source(2), source(3), source(4), source(5)});
  auto links = links_of(cluster);
  EXPECT_EQ(links.size(), 4u);
  for (const std::uint64_t i : {4, 5, 1, 2}) EXPECT_EQ((links[{node(i).id, node(i % 5 + 1).id}]), 1) << "from " << i;
}

TEST(Reduction, SourcesCanBeAddedWhileSomeAreMissing) {
  Cluster cluster(2, 2);
  cluster.arrive(1, 1);
  Reduction::Output out;
  EXPECT_FALSE(cluster.reduction().add_sources({source(9)}, {}, out));
  EXPECT_TRUE(cluster.reduction().add_sources({source(9)}, {}, out));
  cluster.arrive(9, 2);
  cluster.expect_result({source(1), source(9)});
  EXPECT_TRUE(cluster.reduction().add_sources({source(10)}, {}, out)) << "all have arrived";
}

TEST(Reduction, NamesAreToldByItsAskerAndByArrivals) {
  const ObjectId target = ObjectId::named("total");
  const ObjectId early = ObjectId::named("early");
  const ObjectId late = ObjectId::named("late");
  Reduction::Options options;
  options.self = node(1);
  options.spec.target = target;
  options.spec.sources = {early, late};
  options.spec.count = 2;
  options.spec.names = {"late", "total", "somebody else's"};
  options.links = same_for_all({200e-6, 62.5e6});
  Reduction reduction(std::move(options));
  Reduction::Output out;
  reduction.start(out);
  EXPECT_NE(reduction.awaited().find("late = " + late.to_string()), std::string::npos) << reduction.awaited();
  EXPECT_EQ(reduction.awaited().find("early"), std::string::npos) << "nobody has said so yet";
  EXPECT_EQ(reduction.report().names.size(), 2U);

  reduction.on_arrival({}, {early, node(2), 7, 64, encode_metadata({DType::kBytes, {}, "early", ""})}, out);
  reduction.on_arrival({}, {late, node(2), 8, 128, encode_metadata({DType::kBytes, {}, "total", ""})}, out);
  EXPECT_EQ(reduction.error().code, Code::kSizeMismatch);
  EXPECT_NE(reduction.error().message.find("late = " + late.to_string()), std::string::npos);
  EXPECT_NE(reduction.error().message.find("early = " + early.to_string()), std::string::npos);
}

TEST(Reduction, TheTargetGetsItsName) {
  Reduction::Options options;
  options.self = node(1);
  options.spec.target = ObjectId::named("total");
  options.spec.sources = {source(1)};
  options.spec.count = 1;
  options.spec.names = {"total"};
  options.links = same_for_all({200e-6, 62.5e6});
  Reduction reduction(std::move(options));
  Reduction::Output out;
  reduction.start(out);
  reduction.on_arrival({}, {source(1), node(2), 7, 64, encode_metadata({DType::kF32, {4, 4}, "", "its own text"})},
                       out);
  reduction.tick({}, out);
  ASSERT_FALSE(out.sends.empty());
  const Metadata meta = decode_metadata(std::get<SlotOrder>(out.sends.front().message).meta);
  EXPECT_EQ(meta, (Metadata{DType::kF32, {4, 4}, "total", ""}));
}

// Whatever happens, the roots have `count` sources, each once.
TEST(Reduction, RandomArrivalsDeathsAndRefusals) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    const auto sources = static_cast<std::uint32_t>(random.between(1, 8));
    const auto count = static_cast<std::uint32_t>(random.between(1, sources));
    const Spread spread = random.chance(0.3) ? Spread::kSlices : Spread::kNone;
    Cluster cluster(sources, count, random.chance(0.2) ? ReduceOp::kMedian : ReduceOp::kSum, spread);
    std::map<std::uint64_t, std::uint64_t> where;
    for (int step = 0; step < 40 && cluster.reduction().phase() != ReducePhase::kFailed; ++step) {
      const std::uint64_t id = random.between(1, sources);
      const double dice = random.uniform();
      if (dice < 0.5 && !where.contains(id)) {
        where[id] = random.between(1, 5);
        cluster.arrive(id, where[id], 256);
      } else if (dice < 0.6) {
        const std::uint64_t dead = random.between(1, 5);
        std::erase_if(where, [&](const auto& item) { return item.second == dead; });
        cluster.die(dead);
      } else if (dice < 0.65 && !cluster.orders().empty()) {
        const auto orders = cluster.orders();
        const auto victim = std::next(orders.begin(), static_cast<std::ptrdiff_t>(random.below(orders.size())));
        const SlotOrder order = victim->second.second;
        if (order.role != SlotRole::kKeep && random.chance(0.3)) {
          cluster.update(order, SlotState::kRefused, Code::kStoreFull);
        } else if (!order.own.empty()) {
          where.erase(order.own.front().id.lo);
          cluster.update(order, SlotState::kRefused, Code::kUnavailable, order.own.front().id);
        }
      } else {
        cluster.wait();
      }
      const std::vector<SlotOrder> roots = cluster.roots();
      if (where.size() < count || roots.empty()) {
        EXPECT_TRUE(where.size() >= count || roots.empty()) << seed;
        continue;
      }
      for (const SlotOrder& root : roots) {
        const std::multiset<ObjectId> in = cluster.contents(root);
        ASSERT_EQ(in.size(), count) << "seed " << seed;
        ASSERT_EQ(std::set<ObjectId>(in.begin(), in.end()).size(), count) << "seed " << seed;
        ASSERT_EQ(in, cluster.contents(roots.front())) << "one set for all slices, seed " << seed;
        for (const ObjectId& used : in) ASSERT_TRUE(where.contains(used.lo)) << "seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace hoplite
