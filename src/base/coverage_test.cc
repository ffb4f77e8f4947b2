#include "base/coverage.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace hoplite {
namespace {

void walk(int steps) {
  COVERAGE_MARK(coverage_test_always);
  if (steps > 1) COVERAGE_MARK(coverage_test_sometimes);
  if (steps > 1000) COVERAGE_MARK(coverage_test_never);
}

void elsewhere() { COVERAGE_MARK(coverage_test_always); }

std::map<std::string, std::uint64_t> counts() {
  std::map<std::string, std::uint64_t> found;
  for (CoverageMark* mark = CoverageMark::first(); mark != nullptr; mark = mark->next()) {
    EXPECT_FALSE(found.contains(mark->name())) << mark->name() << " is registered twice";
    found[mark->name()] = mark->hits();
  }
  return found;
}

TEST(CoverageMark, IsRegisteredWhetherReachedOrNot) {
  const auto before = counts();
  ASSERT_TRUE(before.contains("coverage_test_never"));
  ASSERT_TRUE(before.contains("coverage_test_always"));
  walk(1);
  walk(2);
  elsewhere();
  const auto after = counts();
  EXPECT_EQ(after.at("coverage_test_always") - before.at("coverage_test_always"), 3u);
  EXPECT_EQ(after.at("coverage_test_sometimes") - before.at("coverage_test_sometimes"), 1u);
  EXPECT_EQ(after.at("coverage_test_never"), 0u);
}

}  // namespace
}  // namespace hoplite
