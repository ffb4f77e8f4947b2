#include "sim/random_run.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "sim/draw.h"
#include "sim/invariants.h"
#include "sim/many_runs.h"
#include "sim/options.h"

namespace hoplite::sim {
namespace {

TEST(DrawPlan, IsAFunctionOfTheSeedAndVaries) {
  std::set<std::string> summaries;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    EXPECT_EQ(draw_plan(seed, {}).summary(), draw_plan(seed, {}).summary());
    summaries.insert(draw_plan(seed, {}).summary());
    EXPECT_EQ(draw_plan(seed, 7).nodes, 7u);
  }
  EXPECT_EQ(summaries.size(), 100u);
}

TEST(RandomRun, IsTheSameEveryTimeTracedOrNot) {
  std::set<std::uint64_t> digests;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const RunResult once = run_random({seed, {}, nullptr});
    std::ostringstream trace;
    const RunResult again = run_random({seed, {}, &trace});
    EXPECT_EQ(once.digest, again.digest);
    EXPECT_EQ(once.events, again.events);
    EXPECT_FALSE(trace.str().empty());
    digests.insert(once.digest);
  }
  EXPECT_EQ(digests.size(), 20u);
}

TEST(Options, AreParsedAndNonsenseIsRefused) {
  const auto many = parse_options({"--seeds", "5..9", "--twice", "--nodes=3"});
  ASSERT_TRUE(many);
  EXPECT_EQ(many->mode, Options::Mode::kSeeds);
  EXPECT_EQ(many->runs.first, 5u);
  EXPECT_EQ(many->runs.last, 9u);
  EXPECT_TRUE(many->runs.twice);
  EXPECT_EQ(many->runs.nodes, 3u);
  const auto scale =
      parse_options({"--scale", "--size", "2MiB", "--rate", "1gbit", "--latency", "1ms", "--arrivals", "spread"});
  ASSERT_TRUE(scale);
  EXPECT_EQ(scale->scale.size, 2 * kMiB);
  EXPECT_EQ(scale->scale.rate, 125'000'000u);
  EXPECT_TRUE(scale->scale.spread);
  for (const std::vector<std::string>& bad : std::vector<std::vector<std::string>>{{"--seed"},
                                                                                   {"--seed", "x"},
                                                                                   {"--seeds", "9..5"},
                                                                                   {"--fly"},
                                                                                   {"--nodes", "0"},
                                                                                   {"--rate", "0"},
                                                                                   {"--trace=1"}})
    EXPECT_FALSE(parse_options(bad)) << bad.front();
}

TEST(Invariants, HaveUniqueNamesAndSentences) {
  std::set<std::string_view> names;
  for (const Invariant& invariant : kInvariants) {
    EXPECT_TRUE(names.insert(invariant.name).second) << invariant.name;
    EXPECT_TRUE(invariant.sentence.ends_with("."));
  }
}

}  // namespace
}  // namespace hoplite::sim
