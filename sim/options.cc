#include "sim/options.h"

#include <charconv>
#include <cstdlib>
#include <functional>
#include <map>

namespace hoplite::sim {
namespace {

Error wrong(const std::string& what) { return {Code::kInvalidArgument, what}; }

Result<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || text.empty())
    return wrong("'" + std::string(text) + "' is not a number");
  return value;
}

Result<void> parse_range(const std::string& text, ManyRunsOptions& runs) {
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) return wrong("--seeds takes a range as in 0..5000, not '" + text + "'");
  const auto first = parse_number(std::string_view(text).substr(0, dots));
  const auto last = parse_number(std::string_view(text).substr(dots + 2));
  if (!first || !last || *first > *last) return wrong("'" + text + "' is not a range of seeds");
  runs.first = *first;
  runs.last = *last;
  return {};
}

template <typename T>
Result<void> store(const Result<std::uint64_t>& value, T& place) {
  if (!value) return value.error();
  place = static_cast<T>(*value);
  return {};
}

Result<void> parse_collective(const std::string& text, Options& options) {
  using Collective = Options::Collective;
  if (text == "broadcast") options.collective = Collective::kBroadcast;
  else if (text == "reduce") options.collective = Collective::kReduce;
  else if (text == "allreduce") options.collective = Collective::kAllReduce;
  else return wrong("--collective is broadcast, reduce or allreduce");
  return {};
}

Result<void> parse_method(const std::string& text, Options& options) {
  if (text == "by-cost") options.method = Spread::kByCost;
  else if (text == "whole") options.method = Spread::kWhole;
  else if (text == "slices") options.method = Spread::kSlices;
  else return wrong("--method is by-cost, whole or slices");
  return {};
}

using Setter = std::function<Result<void>(const std::string& value)>;

std::map<std::string, Setter> with_value(Options& o) {
  using Mode = Options::Mode;
  return {
      {"--seed",
       [&](const std::string& v) {
         o.mode = Mode::kSeed;
         const Result<void> status = store(parse_number(v), o.runs.first);
         o.runs.last = o.runs.first;
         return status;
       }},
      {"--seeds", [&](const std::string& v) { return o.mode = Mode::kSeeds, parse_range(v, o.runs); }},
      {"--scenario",
       [&](const std::string& v) { return o.mode = Mode::kScenario, o.scenarios.push_back(v), Result<void>{}; }},
      {"--nodes",
       [&](const std::string& v) {
         const auto nodes = parse_number(v);
         if (!nodes) return Result<void>(nodes.error());
         if (*nodes == 0 || *nodes > 100'000) return Result<void>(wrong("1 to 100000 nodes"));
         o.runs.nodes = o.scale.nodes = static_cast<std::uint32_t>(*nodes);
         return Result<void>{};
       }},
      {"--workers", [&](const std::string& v) { return store(parse_number(v), o.runs.workers); }},
      {"--max-failures", [&](const std::string& v) { return store(parse_number(v), o.runs.max_failures); }},
      {"--size", [&](const std::string& v) { return store(parse_size(v), o.scale.size); }},
      {"--rate",
       [&](const std::string& v) {
         const auto rate = parse_rate(v);
         if (rate && *rate == 0) return Result<void>(wrong("--rate needs a limit: without one, bytes take no time"));
         return store(rate, o.scale.rate);
       }},
      {"--latency",
       [&](const std::string& v) {
         const auto latency = parse_duration(v);
         if (!latency) return Result<void>(latency.error());
         o.scale.latency = *latency;
         return Result<void>{};
       }},
      {"--arrivals",
       [&](const std::string& v) {
         if (v != "at-once" && v != "spread") return Result<void>(wrong("--arrivals is at-once or spread"));
         o.scale.spread = v == "spread";
         return Result<void>{};
       }},
      {"--slice-bytes", [&](const std::string& v) { return store(parse_size(v), o.scale.slice_bytes); }},
      {"--max-slices", [&](const std::string& v) { return store(parse_number(v), o.scale.max_slices); }},
      {"--at-most",
       [&](const std::string& v) {
         char* end = nullptr;
         o.scale.at_most = std::strtod(v.c_str(), &end);
         return *end == '\0' && *o.scale.at_most >= 1 ? Result<void>{}
                                                      : Result<void>(wrong("--at-most is a ratio, as 1.2"));
       }},
      {"--piece", [&](const std::string& v) { return store(parse_size(v), o.scale.piece_bytes); }},
      {"--collective", [&](const std::string& v) { return parse_collective(v, o); }},
      {"--width", [&](const std::string& v) { return store(parse_number(v), o.width); }},
      {"--method", [&](const std::string& v) { return parse_method(v, o); }},
  };
}

std::map<std::string, std::function<void()>> flags(Options& o) {
  using Mode = Options::Mode;
  return {
      {"--scale", [&] { o.mode = Mode::kScale; }},
      {"--grid", [&] { o.grid = true; }},
      {"--invariants", [&] { o.mode = Mode::kListInvariants; }},
      {"--help", [&] { o.mode = Mode::kHelp; }},
      {"--trace", [&] { o.trace = true; }},
      {"--twice", [&] { o.runs.twice = true; }},
      {"--coverage", [&] { o.runs.coverage = true; }},
      {"--require-coverage", [&] { o.runs.coverage = o.runs.require_coverage = true; }},
  };
}

}  // namespace

Result<Options> parse_options(const std::vector<std::string>& arguments) {
  Options options;
  const auto valued = with_value(options);
  const auto plain = flags(options);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string name = arguments[i];
    std::optional<std::string> value;
    if (const std::size_t equals = name.find('='); equals != std::string::npos) {
      value = name.substr(equals + 1);
      name.resize(equals);
    }
    if (const auto flag = plain.find(name); flag != plain.end() && !value) {
      flag->second();
      continue;
    }
    const auto option = valued.find(name);
    if (option == valued.end()) return wrong("there is no option '" + arguments[i] + "'");
    if (!value) {
      if (++i >= arguments.size()) return wrong(name + " needs a value");
      value = arguments[i];
    }
    if (const Result<void> status = option->second(*value); !status) return status.error();
  }
  if (!options.scenarios.empty()) options.mode = Options::Mode::kScenario;
  return options;
}

ReduceScaleOptions reduce_options(const Options& options) {
  ReduceScaleOptions reduce;
  reduce.nodes = options.scale.nodes;
  reduce.size = options.scale.size;
  reduce.rate = options.scale.rate;
  reduce.latency = options.scale.latency;
  reduce.width = options.width;
  reduce.everybody = options.collective == Options::Collective::kAllReduce;
  reduce.spread = options.method;
  reduce.piece_bytes = options.scale.piece_bytes;
  reduce.at_most = options.scale.at_most;
  return reduce;
}

std::string help_text() {
  return R"(hoplite-sim drives the agents of a Hoplite cluster through a simulated network: virtual time, seeded faults.

  hoplite-sim --seeds 0..5000           random runs: load and faults, then liveness; invariants are checked throughout
  hoplite-sim --seed 123 --trace        one of them, exactly as before, and what happened in words
  hoplite-sim --scenario FILE           a story from a text file (tests/scenarios/*.txt; sim/scenario.h has the words);
                                        with --seed S or --seeds A..B in other worlds: ids, homes and delays differ
  hoplite-sim --scale --nodes 1000      one object on one node, all others get it: how long, compared with the wire
  hoplite-sim --scale --collective reduce --nodes 64    one source on every node, node 0 gets their sum
  hoplite-sim --scale --grid            which tree the cost model of reduces chooses, against the best one by brute force
  hoplite-sim --invariants              what is checked

random runs
  --seed S           run seed S in this process
  --seeds A..B       run seeds A to B in worker processes; exit code 1 if any fails
  --nodes N          N nodes, instead of a number drawn from the seed (1 to 12)
  --twice            run each seed twice and compare everything that happened
  --workers W        worker processes (default: one for each core)
  --max-failures N   stop after N failed seeds (default 20)
  --coverage         print how often each coverage mark was reached
  --require-coverage a mark that no seed reached is a failure, too
  --trace            what happened, in words (with --seed, --scenario and --scale)

scale
  --nodes N          (default 1000)
  --size BYTES       of the object (default 1GiB)
  --rate RATE        of every link, each way (default 10gbit)
  --latency TIME     one way (default 50us)
  --arrivals HOW     at-once (default), or spread: each receiver comes at its own time
  --slice-bytes B, --max-slices N   cut the object (default: the product's own limits)
  --at-most RATIO    exit code 1 if a receiver takes longer than that times size/rate, from its own arrival
  --piece BYTES      what one turn on a link sends (default 64KiB; for reduces what the cost model believes, or a share)
  --collective WHAT  broadcast (default), reduce, or allreduce: all nodes get the sum
  --width W          of the tree of a reduce: 1 is a chain, N - 1 a star (default: what the cost model chooses)
  --method HOW       of an allreduce: by-cost (default), whole, or slices
)";
}

}  // namespace hoplite::sim
