// hoplite-sim: see sim/options.cc for what it can do.
#include <fstream>
#include <iostream>
#include <iterator>

#include "sim/invariants.h"
#include "sim/options.h"
#include "sim/scenario.h"

namespace hoplite::sim {
namespace {

int run_seed(const Options& options) {
  const auto wrong = run_one(options.runs.first, options.runs, options.trace ? &std::cout : nullptr);
  if (!wrong) {
    std::cout << "seed " << options.runs.first << ": passed\n";
    return 0;
  }
  std::cout << "seed " << options.runs.first << ": " << *wrong << "\n";
  return 1;
}

int run_scenarios(const Options& options) {
  int failed = 0;
  for (const std::string& path : options.scenarios) {
    std::ifstream file(path);
    if (!file) {
      std::cerr << "hoplite-sim: cannot read " << path << "\n";
      return 2;
    }
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto scenario = parse_scenario(text);
    if (!scenario) {
      std::cerr << "hoplite-sim: " << path << ": " << scenario.error().message << "\n";
      return 2;
    }
    std::string wrong;
    std::uint64_t seed = options.runs.first;
    do {
      wrong = run_scenario(*scenario, seed, options.trace ? &std::cout : nullptr);
    } while (wrong.empty() && seed++ < options.runs.last);
    std::cout << path << ": " << (wrong.empty() ? "passed" : "seed " + std::to_string(seed) + ", " + wrong) << "\n";
    failed += wrong.empty() ? 0 : 1;
  }
  return failed == 0 ? 0 : 1;
}

int verdict(const ScaleOutcome& outcome, double took_s, double bound_s, std::optional<double> at_most) {
  if (!at_most || took_s <= *at_most * bound_s) return outcome.failure.empty() ? 0 : 1;
  std::cout << "  too slow: at most " << *at_most << " x the bound was allowed\n";
  return 1;
}

int run_broadcast(const ScaleOptions& options) {
  const ScaleResult result = run_scale(options);
  print_scale(options, result, std::cout);
  return verdict(result, result.worst_s, options.transfer_s(), options.at_most);
}

int run_reduce(const Options& options) {
  ReduceScaleOptions reduce = options.reduce;
  static_cast<Cluster&>(reduce) = options.scale;
  reduce.everybody = options.collective == Options::Collective::kAllReduce;
  const ReduceScaleResult result = run_reduce_scale(reduce);
  print_reduce_scale(reduce, result, std::cout);
  return verdict(result, result.seconds, result.bound_s, reduce.at_most);
}

int run_with_turnover(TurnoverOptions options, const Cluster& cluster) {
  options.cluster = cluster;
  const TurnoverResult result = run_turnover(options);
  print_turnover(options, result, std::cout);
  return result.failure.empty() ? 0 : 1;
}

int run_grid(const Options& options) {
  ShapeGrid grid;
  grid.grain_bytes = options.scale.piece_bytes;
  return run_shape_grid(grid, std::cout) ? 0 : 1;
}

int main_with(Options options) {
  using Mode = Options::Mode;
  if (options.trace) options.scale.trace = &std::cout;
  switch (options.mode) {
    case Mode::kSeed: return run_seed(options);
    case Mode::kSeeds: return run_many(options.runs, std::cout) ? 0 : 1;
    case Mode::kScenario: return run_scenarios(options);
    case Mode::kScale:
      if (options.grid) return run_grid(options);
      return options.collective == Options::Collective::kBroadcast ? run_broadcast(options.scale) : run_reduce(options);
    case Mode::kTurnover: return run_with_turnover(options.turnover, options.scale);
    case Mode::kListInvariants:
      for (const Invariant& invariant : kInvariants) std::cout << invariant.name << ": " << invariant.sentence << "\n";
      return 0;
    case Mode::kHelp: std::cout << help_text(); return 0;
  }
  return 2;
}

}  // namespace
}  // namespace hoplite::sim

int main(int argc, char** argv) {
  auto options = hoplite::sim::parse_options({argv + 1, argv + argc});
  if (!options) {
    std::cerr << "hoplite-sim: " << options.error().message << "\nhoplite-sim --help says what there is.\n";
    return 2;
  }
  return hoplite::sim::main_with(std::move(*options));
}
