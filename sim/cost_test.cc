// The cost model of reduces against the outcome: its choice is within 10 % of the best shape tried.
#include <gtest/gtest.h>

#include "sim/reduce_scale.h"

namespace hoplite::sim {
namespace {

// What `hoplite-sim --scale --grid` does for more of them. The sizes that decide are those where bytes and hops cost the same.
TEST(ReduceCostModel, ItsChoiceIsWithinTenPercentOfTheBestShape) {
  ShapeGrid some;
  some.nodes = {2, 4, 8, 16, 64};
  some.sizes = {kKiB, 64 * kKiB, kMiB, 32 * kMiB, kGiB};
  try_all_shapes(some, [](const ShapeTrial& trial) {
    const ReduceScaleOptions& point = trial.point;
    const std::string where = std::to_string(point.nodes) + " nodes, " + format_size(point.size) + ", " +
                              format_rate(static_cast<double>(point.rate)) + ", " + format_duration(point.latency);
    EXPECT_EQ(trial.failure, "") << where;
    EXPECT_LE(trial.ratio(), kWithin) << where << ": width " << trial.chosen_width << ", best " << trial.best_width;
    EXPECT_GE(trial.ratio(), 1) << where;
  });
}

// Both phases of an allreduce go round the same ring: the coordinator's chains and the home's plan agree about it.
TEST(AllReduce, EveryNodeSendsToOneOther) {
  ReduceScaleOptions options;
  options.everybody = true;
  options.spread = Spread::kSlices;
  for (const std::uint32_t nodes : {2U, 3U, 8U}) {
    options.nodes = nodes;
    const ReduceScaleResult result = run_reduce_scale(options);
    EXPECT_EQ(result.failure, "") << nodes;
    EXPECT_EQ(result.receivers, 1U) << nodes << " nodes";
  }
}

// The brute force itself can tell shapes apart.
TEST(ReduceCostModel, ShapesDiffer) {
  ReduceScaleOptions chain;
  chain.nodes = 16;
  chain.size = kMiB;
  chain.width = 1;
  ReduceScaleOptions star = chain;
  star.width = 15;
  const ReduceScaleResult through_chain = run_reduce_scale(chain);
  const ReduceScaleResult through_star = run_reduce_scale(star);
  ASSERT_EQ(through_chain.failure + through_star.failure, "");
  EXPECT_EQ(through_chain.width, 1u);
  EXPECT_EQ(through_star.width, 15u);
  EXPECT_GE(through_star.seconds, 15 * through_star.bound_s);
  EXPECT_LE(through_chain.seconds, 1.7 * through_chain.bound_s);
}

}  // namespace
}  // namespace hoplite::sim
