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
  if (!first) return first.error();
  if (!last || *first > *last) return wrong("'" + text + "' is not a range of seeds");
  runs.first = *first;
  runs.last = *last;
  return {};
}

using Setter = std::function<Result<void>(const std::string& value)>;

template <typename T, typename Value>
Setter parsed(Result<Value> (*parse)(std::string_view), T& place) {
  return [parse, &place](const std::string& text) -> Result<void> {
    const Result<Value> value = parse(text);
    if (!value) return value.error();
    place = static_cast<T>(*value);
    return {};
  };
}

template <typename T>
Setter one_of(const char* option, T& place, std::vector<std::pair<std::string, T>> choices) {
  return [=, &place](const std::string& text) -> Result<void> {
    std::string all;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      if (choices[i].first == text) return place = choices[i].second, Result<void>{};
      all += (i == 0 ? "" : i + 1 < choices.size() ? ", " : " or ") + choices[i].first;
    }
    return wrong(std::string(option) + " is " + all);
  };
}

// What `set` has stored is wrong if `sane` says so.
Setter checked(Setter set, std::function<bool()> sane, const char* otherwise) {
  return [=](const std::string& text) {
    const Result<void> status = set(text);
    return !status || sane() ? status : wrong(otherwise);
  };
}

Result<double> parse_amount(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const double amount = std::strtod(copy.c_str(), &end);
  if (text.empty() || *end != '\0' || !(amount >= 0 && amount <= 1e6)) return wrong("'" + copy + "' is not an amount");
  return amount;
}

Result<double> parse_ratio(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const double ratio = std::strtod(copy.c_str(), &end);
  if (*end != '\0' || ratio < 1) return wrong("--at-most is a ratio, as 1.2");
  return ratio;
}

std::map<std::string, Setter> with_value(Options& o) {
  using Mode = Options::Mode;
  using Collective = Options::Collective;
  const auto set_mode = [&o](Mode mode, Setter then) -> Setter {
    return [&o, mode, then](const std::string& text) { return o.mode = mode, then(text); };
  };
  const auto take_seed = [&o](const std::string& text) { return parse_range(text + ".." + text, o.runs); };
  const auto take_range = [&o](const std::string& text) { return parse_range(text, o.runs); };
  const auto take_scenario = [&o](const std::string& path) { return o.scenarios.push_back(path), Result<void>{}; };
  const auto nodes_fit = [&o] {
    o.runs.nodes = o.scale.nodes;
    return o.scale.nodes >= 1 && o.scale.nodes <= 100'000;
  };
  const auto has_limit = [&o] { return o.scale.rate > 0; };
  const std::vector<std::pair<std::string, Collective>> collectives{
      {"broadcast", Collective::kBroadcast}, {"reduce", Collective::kReduce}, {"allreduce", Collective::kAllReduce}};
  const std::vector<std::pair<std::string, Spread>> methods{
      {"by-cost", Spread::kByCost}, {"whole", Spread::kWhole}, {"slices", Spread::kSlices}};
  const char* const no_limit = "--rate needs a limit: without one, bytes take no time";
  return {
      {"--seed", set_mode(Mode::kSeed, take_seed)},
      {"--seeds", set_mode(Mode::kSeeds, take_range)},
      {"--scenario", set_mode(Mode::kScenario, take_scenario)},
      {"--nodes", checked(parsed(parse_number, o.scale.nodes), nodes_fit, "1 to 100000 nodes")},
      {"--workers", parsed(parse_number, o.runs.workers)},
      {"--max-failures", parsed(parse_number, o.runs.max_failures)},
      {"--size", parsed(parse_size, o.scale.size)},
      {"--rate", checked(parsed(parse_rate, o.scale.rate), has_limit, no_limit)},
      {"--latency", parsed(parse_duration, o.scale.latency)},
      {"--arrivals", one_of<bool>("--arrivals", o.scale.spread, {{"at-once", false}, {"spread", true}})},
      {"--slice-bytes", parsed(parse_size, o.scale.slice_bytes)},
      {"--max-slices", parsed(parse_number, o.scale.max_slices)},
      {"--at-most", parsed(parse_ratio, o.scale.at_most)},
      {"--piece", parsed(parse_size, o.scale.piece_bytes)},
      {"--collective", one_of("--collective", o.collective, collectives)},
      {"--objects", parsed(parse_number, o.turnover.objects)},
      {"--minutes",
       checked(
           parsed(parse_amount, o.turnover.minutes), [&o] { return o.turnover.minutes > 0; }, "more than 0 minutes")},
      {"--percent", parsed(parse_amount, o.turnover.percent_per_minute)},
      {"--width", parsed(parse_number, o.reduce.width)},
      {"--method", one_of("--method", o.reduce.spread, methods)},
  };
}

std::map<std::string, std::function<void()>> flags(Options& o) {
  using Mode = Options::Mode;
  return {
      {"--scale", [&] { o.mode = Mode::kScale; }},
      {"--turnover", [&] { o.mode = Mode::kTurnover; }},
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

std::string help_text() {
  return R"(hoplite-sim drives the agents of a Hoplite cluster through a simulated network: virtual time, seeded faults.

  hoplite-sim --seeds 0..5000           random runs: load and faults, then liveness; invariants are checked throughout
  hoplite-sim --seed 123 --trace        one of them, exactly as before, and what happened in words
  hoplite-sim --scenario FILE           a story from a text file (tests/scenarios/*.txt; sim/scenario.h has the words);
                                        with --seed S or --seeds A..B in other worlds: ids, homes and delays differ
  hoplite-sim --scale --nodes 1000      one object on one node, all others get it: how long, compared with the wire
  hoplite-sim --scale --collective reduce --nodes 64    one source on every node, node 0 gets their sum
  hoplite-sim --scale --grid            which tree the cost model of reduces chooses, against the best one by brute force
  hoplite-sim --turnover --nodes 1000   nodes with many objects die and join: what that costs on control connections
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
  --objects K, --minutes M, --percent P   of --turnover: P % of the nodes die and join per minute (default 1000, 2, 1)
  --method HOW       of an allreduce: by-cost (default), whole, or slices
)";
}

}  // namespace hoplite::sim
