#include "sim/scenario.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/random.h"

namespace hoplite::sim {
namespace {

std::string error_of(std::string_view text) {
  const auto scenario = parse_scenario(text);
  return scenario ? "" : scenario.error().message;
}

std::string failure_of(std::string_view text) {
  const auto scenario = parse_scenario(text);
  return scenario ? run_scenario(*scenario, 0, nullptr) : "does not parse: " + scenario.error().message;
}

TEST(ScenarioParser, SortsWordsIntoCommandsAndOptions) {
  const auto scenario =
      parse_scenario("# a story\n\nnodes 3 latency=1ms   # comment\n  n1 get a as g timeout=5s follow\n");
  ASSERT_TRUE(scenario);
  ASSERT_EQ(scenario->size(), 2u);
  EXPECT_EQ((*scenario)[0].line, 3);
  EXPECT_EQ((*scenario)[0].options.at("latency"), "1ms");
  EXPECT_EQ((*scenario)[1].words, (std::vector<std::string>{"n1", "get", "a"}));
  EXPECT_EQ((*scenario)[1].options.at("as"), "g");
  EXPECT_TRUE((*scenario)[1].options.contains("follow"));
}

TEST(ScenarioParser, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(error_of("nodes 3\nfly n1\n"), "line 2: 'fly' is not known here");
  EXPECT_EQ(error_of("n1 put a\n"), "line 1: 'put' with 1 words behind it");
  EXPECT_EQ(error_of("nodes 3 colour=red"), "line 1: there is no option 'colour'");
  EXPECT_EQ(error_of("n1 get a as"), "line 1: 'as' needs something behind it");
  EXPECT_EQ(error_of("n1 get a as g as h"), "line 1: 'as' is given twice");
  EXPECT_EQ(error_of("follow"), "line 1: only options");
}

TEST(ScenarioParser, SurvivesGarbage) {
  Random random(1);
  const std::string alphabet = "n1 put get expect as=\n\n#  0123/abc\t\r\x01\xff";
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (std::uint64_t i = random.below(200); i > 0; --i) text += alphabet[random.below(alphabet.size())];
    const auto scenario = parse_scenario(text);
    EXPECT_TRUE(scenario || !scenario.error().message.empty());
  }
  EXPECT_NE(error_of(std::string(300, 'x')), "");
}

TEST(ScenarioRunner, NonsenseIsAFailureWithItsLine) {
  EXPECT_EQ(failure_of("n1 get a"), "line 1: 'nodes' comes first");
  EXPECT_EQ(failure_of("nodes 1\nn2 get a"), "line 2: there is no node 'n2'");
  EXPECT_EQ(failure_of("nodes 1\nn1 get a timeout=soon"), "line 2: 'soon' does not start with a number");
  EXPECT_EQ(failure_of("nodes 0"), "line 1: 1 to 100 nodes");
  EXPECT_EQ(failure_of("nodes 1\nexpect g ok"), "line 2: there is no node 'g'");
  EXPECT_EQ(failure_of("limit colour 5"), "line 1: there is no limit 'colour'");
}

TEST(ScenarioRunner, ExpectationsCanFail) {
  EXPECT_EQ(failure_of("nodes 1\nn1 put a 10 as p\nexpect p ok\nn1 get a as g\nexpect g ok of p\n"), "");
  EXPECT_NE(failure_of("nodes 1\nn1 put a 10 as p\nexpect p exists\n").find("ended as ok"), std::string::npos);
  EXPECT_NE(failure_of("nodes 1\nn1 get a as g\nexpect g ok within 1s\n").find("does not end"), std::string::npos);
  EXPECT_NE(failure_of("nodes 1\nn1 put a 10 as p\nexpect p ok\nexpect n1 used 0\n"), "");
}

TEST(ScenarioRunner, TheTraceTellsTheStory) {
  const auto scenario =
      parse_scenario("nodes 2\nn1 put cat 10 as p\nexpect p ok\nn2 get cat as g\nexpect g ok of p\ncrash n1\n");
  ASSERT_TRUE(scenario);
  std::ostringstream trace;
  EXPECT_EQ(run_scenario(*scenario, 0, &trace), "");
  for (const char* text :
       {"asks: Put id cat", "hears: PutDone id cat", "asks: Get id cat", "hears: View copy", "n1    is killed"})
    EXPECT_NE(trace.str().find(text), std::string::npos) << text;
}

}  // namespace
}  // namespace hoplite::sim
