// One random run: a cluster, load and faults (safety), then no more faults (liveness), all drawn from one seed.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>

#include "sim/failovers.h"

namespace hoplite::sim {

struct RunOptions {
  std::uint64_t seed = 0;
  std::optional<std::uint32_t> nodes;  // instead of a drawn number
  std::ostream* trace = nullptr;
};

struct RunResult {
  std::optional<Violation> violation;
  std::uint64_t digest = 0;  // of everything that happened: equal for equal seeds
  std::uint64_t events = 0;
  std::uint64_t repairs = 0;
  std::vector<Failover> failovers;  // that have ended
};

RunResult run_random(const RunOptions& options);

}  // namespace hoplite::sim
