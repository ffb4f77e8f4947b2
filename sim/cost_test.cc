// The cost model of reduces against the outcome: its choice is within 10 % of the best shape tried.
#include <gtest/gtest.h>

#include "sim/reduce_scale.h"

namespace hoplite::sim {
namespace {

// What `hoplite-sim --scale --grid` does for more of them. The sizes that decide are those where bytes and hops cost the same.
TEST(ReduceCostModel, ItsChoiceIsWithinTenPercentOfTheBestShape) {
  const ShapeGrid all;
  for (const std::uint32_t nodes : {2U, 4U, 8U, 16U, 64U})
    for (const std::uint64_t size : {kKiB, 64 * kKiB, kMiB, 32 * kMiB, kGiB})
      for (const std::uint64_t rate : all.rates)
        for (const Duration latency : all.latencies) {
          ReduceScaleOptions point;
          point.nodes = nodes;
          point.size = size;
          point.rate = rate;
          point.latency = latency;
          const ShapeTrial trial = try_shapes(point);
          const std::string where = std::to_string(nodes) + " nodes, " + format_size(size) + ", " +
                                    format_rate(static_cast<double>(rate)) + ", " + format_duration(latency);
          EXPECT_EQ(trial.failure, "") << where;
          EXPECT_LE(trial.ratio(), kWithin)
              << where << ": width " << trial.chosen_width << ", best " << trial.best_width;
          EXPECT_GE(trial.ratio(), 1) << where;
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
