// Sums into an accumulator beside plain loops over the same memory.
//
// Everything here names three arrays in each pass, two that are read and one that is written, and counts them as STREAM
// does: 3 x the size of an array. In `triad` the processor may read the written one too before it writes; in
// `triad_in_place` and `sum` it has been read already, so those two move the same bytes. The faster triad is the bound.
#include <benchmark/benchmark.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/bytes.h"
#include "base/check.h"
#include "kernels/kernels.h"
#include "triad.h"

namespace hoplite {
namespace {

// Bytes of one array that no cache can hold, even alone.
std::size_t beyond_the_cache() {
  const long cache = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  return round_up(std::clamp<std::size_t>(cache > 0 ? 2 * static_cast<std::size_t>(cache) : 0, 128 * kMiB, kGiB), kMiB);
}

// Three arrays for all benchmarks, in huge pages if they can be had, as the store's are.
std::byte* array(std::size_t which) {
  static std::byte* const arrays = [] {
    const std::size_t bytes = 3 * beyond_the_cache();
    void* const map = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(map != MAP_FAILED, bytes);
    ::madvise(map, bytes, MADV_HUGEPAGE);
    std::memset(map, 0x3C, bytes);  // in every type a number of ordinary size
    return static_cast<std::byte*>(map);
  }();
  return arrays + which * beyond_the_cache();
}
float* floats(std::size_t which) { return reinterpret_cast<float*>(array(which)); }

void count(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(static_cast<std::int64_t>(3 * bytes) * state.iterations());
}

void plain_triad(benchmark::State& state, std::size_t bytes) {
  array(0);
  for (auto _ : state) triad(floats(0), floats(1), floats(2), 0.5F, bytes / sizeof(float));
  count(state, bytes);
}

void plain_triad_in_place(benchmark::State& state, std::size_t bytes) {
  array(0);
  for (auto _ : state) triad_in_place(floats(0), floats(1), 0.5F, bytes / sizeof(float));
  count(state, bytes);
}

void sum(benchmark::State& state, DType type, std::size_t bytes) {
  const std::array<const std::byte*, 2> inputs = {array(0), array(1)};
  // Sums of earlier runs would grow to inf, and what one type wrote may be denormal in another.
  std::memset(array(0), 0x3C, bytes);
  for (auto _ : state) combine(ReduceOp::kSum, type, array(0), inputs, bytes);
  count(state, bytes);
  state.SetLabel(std::string(simd_target()));
}

// What a worker takes at a time is still in the cache.
constexpr std::size_t kWarmBytes = 64 * kKiB;

BENCHMARK_CAPTURE(plain_triad, large, beyond_the_cache());
BENCHMARK_CAPTURE(plain_triad_in_place, large, beyond_the_cache());
BENCHMARK_CAPTURE(sum, f32_large, DType::kF32, beyond_the_cache());
BENCHMARK_CAPTURE(sum, f16_large, DType::kF16, beyond_the_cache());
BENCHMARK_CAPTURE(sum, bf16_large, DType::kBF16, beyond_the_cache());
BENCHMARK_CAPTURE(sum, i32_large, DType::kI32, beyond_the_cache());
BENCHMARK_CAPTURE(plain_triad_in_place, warm, kWarmBytes);
BENCHMARK_CAPTURE(sum, f32_warm, DType::kF32, kWarmBytes);
BENCHMARK_CAPTURE(sum, f16_warm, DType::kF16, kWarmBytes);
BENCHMARK_CAPTURE(sum, bf16_warm, DType::kBF16, kWarmBytes);

}  // namespace
}  // namespace hoplite

BENCHMARK_MAIN();
