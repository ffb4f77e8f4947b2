// What taking and giving back an extent costs in an arena with many live ones, in random order and sizes.
#include <benchmark/benchmark.h>

#include <bit>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "core/objects/extent_allocator.h"

namespace hoplite {
namespace {

// Keeps `live` extents; each step frees a random one and takes another in its place.
void churn(benchmark::State& state, std::uint64_t smallest, std::uint64_t largest) {
  const auto live = static_cast<std::uint64_t>(state.range(0));
  ExtentAllocator allocator(live * largest * 2);
  Random random(1);
  // All magnitudes between the two are equally likely.
  const auto draw = [&] {
    return random.between(smallest, largest) >> random.below(std::bit_width(largest / smallest));
  };
  std::vector<Extent> extents;
  for (std::uint64_t i = 0; i < live; ++i) extents.push_back(*allocator.allocate(draw(), Alignment::kCacheLine));
  for (auto _ : state) {
    Extent& one = extents[random.below(live)];
    allocator.free(one);
    const auto taken = allocator.allocate(draw(), Alignment::kCacheLine);
    if (!taken) {
      state.SkipWithError("a half-empty arena refuses");
      break;
    }
    one = *taken;
  }
}

void by_live_extents(benchmark::internal::Benchmark* benchmark) { benchmark->RangeMultiplier(10)->Range(100, 100'000); }

BENCHMARK_CAPTURE(churn, of_1_kib, kKiB, kKiB)->Apply(by_live_extents);
BENCHMARK_CAPTURE(churn, of_4_kib_to_16_mib, 4 * kKiB, 16 * kMiB)->Apply(by_live_extents);

}  // namespace
}  // namespace hoplite

BENCHMARK_MAIN();
