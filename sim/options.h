// The command line of hoplite-sim.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hoplite/error.h"
#include "sim/many_runs.h"
#include "sim/reduce_scale.h"
#include "sim/scale.h"
#include "sim/turnover.h"

namespace hoplite::sim {

struct Options {
  enum class Mode { kSeed, kSeeds, kScenario, kScale, kTurnover, kListInvariants, kHelp } mode = Mode::kHelp;
  ManyRunsOptions runs;
  bool trace = false;
  std::vector<std::string> scenarios;
  enum class Collective { kBroadcast, kReduce, kAllReduce } collective = Collective::kBroadcast;
  ScaleOptions scale;
  ReduceScaleOptions reduce;  // only what `scale` does not have: the cluster is the same
  TurnoverOptions turnover;   // its cluster is that of `scale`, too
  bool grid = false;          // the cost model of reduces against brute force
};

// kInvalidArgument with what is wrong.
Result<Options> parse_options(const std::vector<std::string>& arguments);

std::string help_text();

}  // namespace hoplite::sim
