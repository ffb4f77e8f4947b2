// Reduces at scale: one source on every node, all of them there before the clock starts. Sizes only, no bytes.
//
// What is timed is the second of two alike: connections are open, as in a cluster that works. The clock runs from the call
// to the view of the result, on the node that called, or for an allreduce on the last of all nodes.
#pragma once

#include <functional>
#include <vector>

#include "sim/scale_lab.h"

namespace hoplite::sim {

// `at_most` is of what the links allow; pieces are as piece_for() says.
struct ReduceScaleOptions : Cluster {
  ReduceScaleOptions() : Cluster{.nodes = 8, .size = 32 * kMiB, .rate = 125'000'000, .latency = Duration::us(200)} {}
  std::uint32_t width = 0;  // of the tree; 0 = as the cost model says
  bool sent_along = false;  // no tree: every source comes to the caller with the answer to where it is
  bool everybody = false;   // all nodes get the result: an allreduce
  Spread spread = Spread::kByCost;
};

// A grain (cost.h), or for large objects so much more that the run is short. In a chain each of the n - 2 relays is late by
// one piece, so up to 64 nodes it is at most 1/16 S/B slower than in small pieces. Where a chain and a tree cost the same, S/B
// is about half of the time: there it is 3 %, and nowhere else does it matter.
constexpr std::uint64_t kMostPieces = 1024;
std::uint64_t piece_for(std::uint64_t size, std::uint64_t grain);

struct ReduceScaleResult : ScaleOutcome {
  double seconds = 0;
  // Into one node's link: size / rate; of an allreduce, the ring's bound 2 (n - 1) / n size / rate.
  double bound_s = 0;
  std::uint32_t width = 0;      // the most inputs that one node pulled, of all slices; 0 = all were sent along
  std::uint32_t receivers = 0;  // the most others that one node sent to
};

ReduceScaleResult run_reduce_scale(const ReduceScaleOptions& options);
void print_reduce_scale(const ReduceScaleOptions& options, const ReduceScaleResult& result, std::ostream& out);

// --- the cost model against brute force

struct ShapeTrial {
  ReduceScaleOptions point;
  std::string failure;
  double chosen_s = 0;
  std::uint32_t chosen_width = 0;  // as in ReduceScaleResult
  double best_s = 0;
  std::uint32_t best_width = 0;
  double ratio() const { return best_s > 0 ? chosen_s / best_s : 0; }
};

// Runs the model's own choice, widths 1, 2, 3, 4, 8 and n - 1, and what is small also sent along. A width that would need
// longer than the best so far for its bytes alone is not run.
ShapeTrial try_shapes(const ReduceScaleOptions& point);

struct ShapeGrid {
  std::vector<std::uint32_t> nodes{2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
  std::vector<std::uint64_t> sizes{kKiB,     4 * kKiB,  16 * kKiB, 64 * kKiB,  256 * kKiB, kMiB,
                                   4 * kMiB, 16 * kMiB, 64 * kMiB, 256 * kMiB, kGiB};
  std::vector<Duration> latencies{Duration::us(20), Duration::us(200), Duration::ms(2)};
  std::vector<std::uint64_t> rates{12'500'000, 125'000'000, 1'250'000'000};
  std::optional<std::uint64_t> grain_bytes;  // what a relay passes on, if that is not what the model believes
};

constexpr double kWithin = 1.10;  // of the best shape: what is asked of the model

void try_all_shapes(const ShapeGrid& grid, const std::function<void(const ShapeTrial&)>& judge);
// All of it, as a table; false if a choice is not within that of the best.
bool run_shape_grid(const ShapeGrid& grid, std::ostream& out);

}  // namespace hoplite::sim
