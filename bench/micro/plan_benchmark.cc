// What the broadcast planner costs per request, by the number of nodes that already take part: it must not grow with it,
// or only like its logarithm.
#include <benchmark/benchmark.h>

#include "base/bytes.h"
#include "core/broadcast/plan.h"

namespace hoplite {
namespace {

constexpr Time kNow{1'000'000'000};

BroadcastPlan::Receiver newcomer(std::uint64_t node) { return {.node = NodeId{node}, .avoid = {}}; }

// One complete holder, and `receivers` that are fetching from it and from each other.
BroadcastPlan plan_with(std::uint64_t bytes, std::uint64_t receivers) {
  BroadcastPlan plan({.bytes = bytes, .links = same_for_all({200e-6, 125e6})});
  plan.add_root(NodeId{1});
  for (std::uint64_t n = 0; n < receivers; ++n) plan.choose(kNow, newcomer(2 + n));
  return plan;
}

// A node that was not there before asks for a parent, and leaves again.
void arrive(benchmark::State& state, std::uint64_t bytes) {
  const auto receivers = static_cast<std::uint64_t>(state.range(0));
  BroadcastPlan plan = plan_with(bytes, receivers);
  const BroadcastPlan::Receiver receiver = newcomer(2 + receivers);
  for (auto _ : state) {
    benchmark::DoNotOptimize(plan.choose(kNow, receiver));
    plan.remove(receiver.node);
  }
}

void arrive_large(benchmark::State& state) { arrive(state, kGiB); }
void arrive_small(benchmark::State& state) { arrive(state, kMiB); }

// One in the middle lost its parent: it has bytes and children, and avoids those that failed it.
void attach_again(benchmark::State& state) {
  const auto receivers = static_cast<std::uint64_t>(state.range(0));
  BroadcastPlan plan = plan_with(kGiB, receivers);
  const NodeId orphan{2 + receivers / 2};
  const std::vector<NodeId> avoid = {NodeId{orphan.value - 1}, NodeId{orphan.value - 2}};
  for (auto _ : state)
    benchmark::DoNotOptimize(
        plan.choose(kNow, {.node = orphan, .have_bytes = 1, .has_children = true, .avoid = avoid}));
}

// A receiver finishes and becomes a holder that needs no parent; then it starts over, so that there is something to end.
void finish(benchmark::State& state) {
  const auto receivers = static_cast<std::uint64_t>(state.range(0));
  BroadcastPlan plan = plan_with(kGiB, receivers);
  const BroadcastPlan::Receiver last = newcomer(1 + receivers);
  for (auto _ : state) {
    plan.add_root(last.node);
    plan.remove(last.node);
    plan.choose(kNow, last);
  }
}

void by_receivers(benchmark::internal::Benchmark* benchmark) { benchmark->RangeMultiplier(10)->Range(10, 100'000); }

BENCHMARK(arrive_large)->Apply(by_receivers);
BENCHMARK(arrive_small)->Apply(by_receivers);
BENCHMARK(attach_again)->Apply(by_receivers);
BENCHMARK(finish)->Apply(by_receivers);

}  // namespace
}  // namespace hoplite

BENCHMARK_MAIN();
