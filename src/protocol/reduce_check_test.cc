#include "protocol/reduce_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/limits.h"

namespace hoplite {
namespace {

using ::testing::HasSubstr;

ReduceSpec spec_of(std::size_t sources) {
  ReduceSpec spec;
  spec.target = {1, 1};
  for (std::size_t i = 0; i < sources; ++i) spec.sources.push_back({2, sources - i});
  spec.count = static_cast<std::uint32_t>(sources);
  return spec;
}

// The sentence, or "" if there is nothing wrong.
std::string wrong_with(ReduceSpec spec, bool more_follow = false) {
  spec.more_follow = more_follow;
  const auto error = check(spec);
  if (!error) return "";
  EXPECT_EQ(error->code, Code::kInvalidArgument);
  return error->message;
}

TEST(ReduceCheck, AcceptsWhatMakesSense) {
  const std::size_t most = Limits{}.max_sources;
  for (const std::size_t sources : {std::size_t{1}, std::size_t{2}, most}) EXPECT_EQ(wrong_with(spec_of(sources)), "");
  auto first = spec_of(5);
  first.count = 1;
  EXPECT_EQ(wrong_with(first), "");
  auto minted_later = spec_of(2);
  minted_later.target = {};
  EXPECT_EQ(wrong_with(minted_later), "");
  auto part = spec_of(3);
  part.parts = 3;
  part.part = 2;
  part.timeout_ns = 0;
  EXPECT_EQ(wrong_with(part), "");
}

TEST(ReduceCheck, RefusesIdsThatMakeNoSense) {
  EXPECT_THAT(wrong_with(spec_of(0)), HasSubstr("no sources"));
  EXPECT_THAT(wrong_with(spec_of(0), true), HasSubstr("no sources"));
  EXPECT_THAT(wrong_with(spec_of(Limits{}.max_sources + 1)), HasSubstr("the limit is 10000"));
  auto spec = spec_of(3);
  spec.sources[1] = spec.sources[2];
  EXPECT_EQ(wrong_with(spec), "source " + spec.sources[2].to_string() + " was given twice");
  spec = spec_of(3);
  spec.sources[2] = {};
  EXPECT_THAT(wrong_with(spec), HasSubstr("nil"));
  spec = spec_of(3);
  spec.sources[1] = spec.target;
  EXPECT_EQ(wrong_with(spec), "the target " + spec.target.to_string() + " is among its own sources");
}

TEST(ReduceCheck, RefusesCountsThatCannotBeReached) {
  auto spec = spec_of(3);
  spec.count = 0;
  EXPECT_THAT(wrong_with(spec), HasSubstr("first 0"));
  EXPECT_THAT(wrong_with(spec, true), HasSubstr("first 0"));
  spec.count = 4;
  EXPECT_EQ(wrong_with(spec), "the first 4 of 3 sources were requested");
  EXPECT_EQ(wrong_with(spec, true), "") << "more sources follow";
  spec.count = Limits{}.max_sources + 1;
  EXPECT_THAT(wrong_with(spec, true), HasSubstr("the limit is"));
}

TEST(ReduceCheck, KnowsWhichOperatorsGoWithWhichTypes) {
  for (int type = 0; type <= static_cast<int>(last_enumerator(DType{})); ++type)
    for (int op = 0; op <= static_cast<int>(last_enumerator(ReduceOp{})); ++op) {
      auto spec = spec_of(2);
      spec.type = static_cast<DType>(type);
      spec.op = static_cast<ReduceOp>(op);
      const bool fractions = spec.op == ReduceOp::kMean || spec.op == ReduceOp::kMedian;
      const bool fine = spec.type != DType::kBytes && (is_floating(spec.type) || !fractions);
      EXPECT_EQ(wrong_with(spec).empty(), fine) << to_string(spec.op) << " of " << to_string(spec.type);
    }
  auto spec = spec_of(2);
  spec.type = DType::kI32;
  spec.op = ReduceOp::kMean;
  EXPECT_THAT(wrong_with(spec), HasSubstr("the mean of i32"));
  spec.type = DType::kBytes;
  EXPECT_THAT(wrong_with(spec), HasSubstr("plain bytes"));
}

TEST(ReduceCheck, RefusesPartsAndTimesThatDoNotExist) {
  auto spec = spec_of(2);
  spec.parts = 0;
  EXPECT_THAT(wrong_with(spec), HasSubstr("part 0 of 0"));
  spec.parts = 2;
  spec.part = 2;
  EXPECT_THAT(wrong_with(spec), HasSubstr("part 2 of 2"));
  spec.parts = ~0U;
  EXPECT_THAT(wrong_with(spec), HasSubstr("the limit is"));
  spec = spec_of(2);
  spec.timeout_ns = -2;
  EXPECT_THAT(wrong_with(spec), HasSubstr("negative"));
}

TEST(ReduceCheck, AddedSourcesObeyTheSameRules) {
  const std::vector<ObjectId> ids = {{2, 1}, {2, 2}};
  EXPECT_FALSE(check_sources({1, 1}, ids).has_value());
  EXPECT_TRUE(check_sources({2, 2}, ids).has_value());
  EXPECT_TRUE(check_sources({1, 1}, {}).has_value());
}

}  // namespace
}  // namespace hoplite
