// Scale: one large object on one of very many nodes, and everybody else gets it. Sizes only, no bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "base/time.h"
#include "sim/hosts.h"

namespace hoplite::sim {

struct ScaleOptions {
  std::uint32_t nodes = 1000;
  std::uint64_t size = kGiB;
  std::uint64_t rate = 1'250'000'000;  // bytes per second, each way
  Duration latency = Duration::us(50);
  bool spread = false;                       // arrivals over five times the ideal time; otherwise all at once
  std::optional<std::uint64_t> slice_bytes;  // instead of the product's limits
  std::optional<std::uint32_t> max_slices;
  std::optional<std::uint64_t> piece_bytes;  // what one turn on a link sends; 64 KiB
  std::optional<double> at_most;             // of size / rate, for each receiver from its own arrival
  std::ostream* trace = nullptr;
};

struct ScaleResult {
  std::string failure;  // empty: everybody has it
  double ideal_s = 0;   // size / rate
  double last_s = 0;    // from the first request until the last receiver has it
  double worst_s = 0;   // the longest that one receiver took from its own arrival
  double median_s = 0;
  std::uint32_t depth = 0;  // of the deepest tree: hops from the source
  std::uint32_t slices = 1;
  double want_mean_us = 0;   // what the home's agent spends on one request, in real time
  double want_early_us = 0;  // mean of the first tenth and of the last tenth: growth would show
  double want_late_us = 0;
  std::uint64_t events = 0;
  double wall_s = 0;
};

// Of host number `node` in a cluster that may have very many.
Address scale_address(NodeIndex node);
// Of every one of them: as fast each way.
LinkSpec scale_link(std::uint64_t rate, Duration latency);

ScaleResult run_scale(const ScaleOptions& options);
void print_scale(const ScaleOptions& options, const ScaleResult& result, std::ostream& out);

}  // namespace hoplite::sim
