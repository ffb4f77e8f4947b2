#include "node/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hoplite {
namespace {

using testing::HasSubstr;
using testing::Not;

class LogTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(dir_), nullptr); }
  void TearDown() override {
    ::unlink(file().c_str());
    ::rmdir(dir_);
  }

  std::string file() const { return std::string(dir_) + "/log"; }
  std::string text() const {
    std::stringstream all;
    all << std::ifstream(file()).rdbuf();
    return all.str();
  }

  char dir_[32] = "/tmp/hoplite-log-XXXXXX";
};

TEST_F(LogTest, WritesOneLinePerFact) {
  auto log = Log::open(file(), LogLevel::kInfo);
  ASSERT_TRUE(log.ok());
  (*log)->info("joined the cluster");
  (*log)->debug("not shown");
  EXPECT_THAT(text(), HasSubstr("info joined the cluster\n"));
  EXPECT_THAT(text(), Not(HasSubstr("not shown")));
}

TEST_F(LogTest, StrangersCannotForgeLines) {
  auto log = Log::open(file(), LogLevel::kInfo);
  (*log)->warn("bytes from a stranger: x\n2030-01-01 error all is lost");
  const std::string all = text();
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 1);
}

TEST_F(LogTest, EscapeSequencesDoNotReachATerminal) {
  auto log = Log::open(file(), LogLevel::kInfo);
  (*log)->warn("name \x1b[2J \xc2\x9b \xff gr\xc3\xbc\xc3\x9f");
  EXPECT_THAT(text(), HasSubstr("name \\x1b[2J \\u009b \\xff gr\xc3\xbc\xc3\x9f\n"));
}

TEST_F(LogTest, ALongLineEndsWithAWholeCharacter) {
  auto log = Log::open(file(), LogLevel::kInfo);
  std::string wide;
  while (wide.size() < 5000) wide += "\xe9\x87\x8d";
  for (const char* before : {"", "a", "ab"}) (*log)->info(before + wide);
  std::istringstream lines(text());
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LT(line.size(), 4096U);
    EXPECT_EQ(line.substr(line.size() - 3), "\xe9\x87\x8d");
  }
}

TEST_F(LogTest, TellsWhatItShows) {
  auto log = Log::open(file(), LogLevel::kInfo);
  EXPECT_TRUE((*log)->shows(LogLevel::kInfo));
  EXPECT_FALSE((*log)->shows(LogLevel::kDebug));
}

TEST_F(LogTest, FormatCharactersAreText) {
  auto log = Log::open(file(), LogLevel::kInfo);
  (*log)->info("{} {0} %s");
  EXPECT_THAT(text(), HasSubstr("{} {0} %s\n"));
}

TEST_F(LogTest, AFileThatCannotBeOpenedIsAnError) {
  auto log = Log::open(std::string(dir_) + "/no/such/dir", LogLevel::kInfo);
  ASSERT_FALSE(log.ok());
  EXPECT_THAT(log.error().message, HasSubstr("No such file"));
}

TEST_F(LogTest, AFullDiskIsNoError) {
  auto log = Log::open("/dev/full", LogLevel::kInfo);
  ASSERT_TRUE(log.ok());
  for (int i = 0; i < 1000; ++i) (*log)->info("nobody will read this");
}

// A FIFO that nobody reads behaves as a disk that is full and has room again later.
TEST_F(LogTest, SaysHowManyLinesAreMissing) {
  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  const int reader = ::open(file().c_str(), O_RDONLY | O_NONBLOCK);
  auto log = Log::open(file(), LogLevel::kInfo);
  ASSERT_TRUE(log.ok());
  const std::string long_line(3000, 'x');
  for (int i = 0; i < 100; ++i) (*log)->info(long_line);

  std::string seen(1 << 20, '\0');
  const auto first = ::read(reader, seen.data(), seen.size());
  ASSERT_GT(first, 0);
  const auto written = std::count(seen.begin(), seen.begin() + first, '\n');
  (*log)->info("there is room again");
  const auto second = ::read(reader, seen.data(), seen.size());
  ASSERT_GT(second, 0);
  seen.resize(static_cast<std::size_t>(second));
  EXPECT_THAT(seen, HasSubstr(std::to_string(100 - written) + " lines are missing here"));
  EXPECT_THAT(seen, HasSubstr("there is room again"));
  ::close(reader);
}

TEST_F(LogTest, ParsesLevels) {
  EXPECT_EQ(*parse_log_level("warn"), LogLevel::kWarn);
  EXPECT_FALSE(parse_log_level("loud").ok());
}

}  // namespace
}  // namespace hoplite
