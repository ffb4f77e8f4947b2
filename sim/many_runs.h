// Many seeds, in worker processes: a run that aborts or hangs costs one seed, not the rest.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

#include "sim/random_run.h"

namespace hoplite::sim {

struct ManyRunsOptions {
  std::uint64_t first = 0;
  std::uint64_t last = 0;               // inclusive
  std::optional<std::uint32_t> nodes;   // instead of a drawn number
  bool twice = false;                   // run each seed twice and compare
  std::uint32_t workers = 0;            // 0 = one for each core
  std::uint64_t max_failures = 20;      // then stop
  bool coverage = false;                // print every mark and how often it was reached
  bool require_coverage = false;        // a mark that no seed reached is a failure
  std::string program = "hoplite-sim";  // for "to reproduce"
};

// Prints progress, failures and totals. True if every seed passed.
bool run_many(const ManyRunsOptions& options, std::ostream& out);

// Runs one seed in this process (twice, if asked); what is wrong, or nullopt.
std::optional<std::string> run_one(std::uint64_t seed, const ManyRunsOptions& options, std::ostream* trace,
                                   RunResult* result = nullptr);

}  // namespace hoplite::sim
