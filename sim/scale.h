// Scale: one large object on one of very many nodes, and everybody else gets it. Sizes only, no bytes.
#pragma once

#include "sim/scale_lab.h"

namespace hoplite::sim {

// `at_most` is of size / rate, for each receiver from its own arrival; pieces are of 64 KiB.
struct ScaleOptions : Cluster {
  ScaleOptions() : Cluster{.nodes = 1000, .size = kGiB} {}
  bool spread = false;                       // arrivals over five times the ideal time; otherwise all at once
  std::optional<std::uint64_t> slice_bytes;  // instead of the product's limits
  std::optional<std::uint32_t> max_slices;
};

struct ScaleResult : ScaleOutcome {
  double last_s = 0;   // from the first request until the last receiver has it
  double worst_s = 0;  // the longest that one receiver took from its own arrival
  double median_s = 0;
  std::uint32_t depth = 0;  // of the deepest tree: hops from the source
  std::uint32_t slices = 1;
  double want_mean_us = 0;   // what the home's agent spends on one request, in real time
  double want_early_us = 0;  // mean of the first tenth and of the last tenth: growth would show
  double want_late_us = 0;
};

ScaleResult run_scale(const ScaleOptions& options);
void print_scale(const ScaleOptions& options, const ScaleResult& result, std::ostream& out);

}  // namespace hoplite::sim
