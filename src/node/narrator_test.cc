#include "node/narrator.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/metadata.h"

namespace hoplite {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class NarratorTest : public testing::Test {
 protected:
  void SetUp() override {
    const int fd = ::mkstemp(file_);
    ASSERT_GE(fd, 0);
    ::close(fd);
    log_ = std::move(*Log::open(file_, LogLevel::kDebug));
    narrator_.emplace(*log_);
  }
  void TearDown() override { ::unlink(file_); }

  std::string text() const {
    std::stringstream all;
    all << std::ifstream(file_).rdbuf();
    return all.str();
  }
  void learn(const std::string& name) {
    InlineObject message;
    message.id = ObjectId::named(name);
    message.meta = encode_metadata({DType::kBytes, {}, name, ""});
    narrator_->tell({}, Event(event::Received{peer_, message, 0}));
  }
  template <typename E> void decide(Time now, E effect) {
    Effects effects;
    effects.emplace_back(std::move(effect));
    narrator_->tell(now, effects);
  }

  char file_[40] = "/tmp/hoplite-narrator-XXXXXX";
  std::unique_ptr<Log> log_;
  std::optional<Narrator> narrator_;
  const NodeRef peer_{NodeId{0xa}, 0};
};

TEST_F(NarratorTest, TellsOfPeersOnce) {
  for (int i = 0; i < 3; ++i) narrator_->tell({}, Event(event::Received{peer_, Ping{}, 0}));
  const std::string said = text();
  EXPECT_THAT(said, HasSubstr("debug peer 000000000000000a#0: connected\n"));
  EXPECT_EQ(said.find("connected"), said.rfind("connected"));
  narrator_->tell({}, Event(event::PeerLost{peer_, Loss::kRefused}));
  EXPECT_THAT(text(), HasSubstr("it refuses connections"));
  narrator_->tell({}, Event(event::Received{peer_, Ping{}, 0}));
  EXPECT_NE(text().find("connected"), text().rfind("connected"));
}

TEST_F(NarratorTest, TellsHowFastATransferWas) {
  learn("weights");
  effect::StartPull pull;
  pull.parent = peer_;
  pull.pull.transfer = 7;
  pull.pull.id = ObjectId::named("weights");
  decide(Time{} + Duration::s(1), pull);
  EXPECT_THAT(text(), HasSubstr("asks node 000000000000000a for object weights = "));
  narrator_->tell(Time{} + Duration::s(3), Event(event::PullAccepted{7}));
  narrator_->tell(Time{} + Duration::s(5),
                  Event(event::PullEnded{7, PullEnd::kComplete, ValidBytes::all({0, 64 * kMiB})}));
  // From when it was accepted on: the wait before it says nothing about the link.
  EXPECT_THAT(text(), HasSubstr("64 MiB in " + format_duration(Duration::s(2)) + ", " + format_rate(32.0 * kMiB)));
  EXPECT_THAT(text(), HasSubstr("; complete\n"));
  const std::string said = text();
  narrator_->tell({}, Event(event::PullEnded{7, PullEnd::kComplete, {}}));
  EXPECT_EQ(text(), said) << "a transfer that nobody knows";
}

TEST_F(NarratorTest, TellsOfServesEvictionsAndReduces) {
  event::PullAsked asked;
  asked.peer = peer_;
  asked.channel = 4;
  asked.pull.transfer = 9;
  asked.pull.id = {1, 1};
  narrator_->tell({}, Event(asked));
  decide({}, effect::AcceptPull{4, 5, 6, asked.pull});
  EXPECT_THAT(text(), HasSubstr("sends object 00000000000000010000000000000001 to node 000000000000000a"));
  narrator_->tell(Time{} + Duration::s(1), Event(event::ServeEnded{5}));
  EXPECT_THAT(text(), HasSubstr("has stopped sending object 00000000000000010000000000000001"));
  using What = effect::Happened::What;
  decide({}, effect::Happened{What::kEvicted, {1, 1}, kMiB, ""});
  decide({}, effect::Happened{What::kReduceStarted, {1, 2}, 0, ""});
  decide({}, effect::Happened{What::kReduceDone, {1, 2}, 2 * kMiB, ""});
  decide({}, effect::Happened{What::kReduceFailed, {1, 3}, 0, "source\nx"});
  EXPECT_THAT(text(), HasSubstr("evicted the copy of object 00000000000000010000000000000001, 1 MiB\n"));
  EXPECT_THAT(text(), HasSubstr("reduce 00000000000000010000000000000002: started"));
  EXPECT_THAT(text(), HasSubstr("reduce 00000000000000010000000000000002: done, 2 MiB\n"));
  EXPECT_THAT(text(), HasSubstr("reduce 00000000000000010000000000000003: failed: source\\nx\n"));
}

TEST_F(NarratorTest, ANameIsDataEvenInTheLog) {
  learn("\x1b[2J\nall is well");
  decide({}, effect::Happened{effect::Happened::What::kEvicted, ObjectId::named("\x1b[2J\nall is well"), 1, ""});
  EXPECT_THAT(text(), HasSubstr("\\x1b[2J\\nall is well = "));
  EXPECT_THAT(text(), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace hoplite
