// A small cluster with many deaths: what `hoplite-sim --turnover` measures is measured, and of the living.
#include "sim/turnover.h"

#include <gtest/gtest.h>

#include <sstream>

namespace hoplite::sim {
namespace {

TurnoverOptions small() {
  TurnoverOptions options;
  options.cluster.nodes = 12;
  options.objects = 20;
  options.minutes = 0.5;
  options.percent_per_minute = 50;
  return options;
}

TEST(Turnover, NodesDieAndNobodyElseIsGivenUp) {
  const TurnoverResult result = run_turnover(small());
  EXPECT_EQ(result.failure, "");
  EXPECT_EQ(result.deaths, 3u);
  EXPECT_EQ(result.given_up, 0u);
  EXPECT_EQ(result.puts_failed, 0u);
}

TEST(Turnover, BytesOfTheLivingAreCounted) {
  const TurnoverResult result = run_turnover(small());
  EXPECT_GT(result.mean, 0);
  EXPECT_GE(result.worst, result.mean);
  EXPECT_GE(result.worst_second, result.worst)
      << "the worst second of all is no better than the mean of the worst node";
  EXPECT_NEAR(result.mean, (result.first_half + result.second_half) / 2, 1e-6);
}

TEST(Turnover, DeathsCost) {
  TurnoverOptions calm = small();
  calm.percent_per_minute = 0;
  const TurnoverResult without = run_turnover(calm);
  EXPECT_EQ(without.deaths, 0u);
  EXPECT_LT(without.mean, run_turnover(small()).mean);
}

TEST(Turnover, WhatIsPrintedIsWhatTheBenchmarkReads) {
  std::ostringstream out;
  TurnoverResult result;
  result.mean = 1500;
  print_turnover(small(), result, out);
  EXPECT_NE(out.str().find("control, mean        1.50 KB/s\n"), std::string::npos) << out.str();
}

}  // namespace
}  // namespace hoplite::sim
