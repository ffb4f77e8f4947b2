#include "node/effects.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hoplite {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Writes down what it is asked to do.
class RecordingTransport : public Transport {
 public:
  Address listen_address() const override { return {}; }
  void rename(NodeRef) override { done.push_back("rename"); }
  void send(NodeRef, const Address&, const Message& message, ByteView payload) override {
    done.push_back(std::string("send ") + message_name(message) + " '" +
                   std::string(reinterpret_cast<const char*>(payload.data()), payload.size()) + "'");
  }
  void send_to_address(const Address& address, const Message&) override {
    done.push_back("send to " + address.to_string());
  }
  void disconnect(NodeId node) override { done.push_back("disconnect " + node.to_string()); }
  void open_copy(const effect::OpenCopy& e) override {
    note("open", e.copy, e.extent.offset, e.extent.size, e.slices, e.complete);
    if (e.only != kAllSlices) note("only", e.only, e.size);
  }
  void grow_copy(CopyKey copy, std::uint64_t bytes) override { note("grow", copy, bytes); }
  void seal_copy(CopyKey copy, std::uint32_t slice) override {
    slice == kAllSlices ? note("seal", copy) : note("seal", copy, slice);
  }
  void combine(const effect::Combine& order) override {
    note("combine", order.out, order.slice, static_cast<int>(order.op), static_cast<int>(order.type), order.divide_by,
         order.final);
    for (const effect::Combine::Input& input : order.inputs) note("input", input.copy, input.slice, input.begin);
  }
  void follow_copy(CopyKey copy) override { note("follow", copy); }
  void close_copy(CopyKey copy) override { note("close", copy); }
  ValidBytes valid(CopyKey, std::uint32_t) const override { return {}; }
  void start_pull(NodeRef, const Address&, CopyKey copy, const PullRequest& pull, Duration patience) override {
    note("start", copy, pull.transfer, patience.ns);
  }
  void cancel_pull(TransferId transfer) override { note("cancel", transfer); }
  void accept_pull(ChannelId channel, ServeId serve, CopyKey, const PullRequest&) override {
    note("accept", channel, serve);
  }
  void refuse_pull(ChannelId channel, TransferId transfer, Code) override { note("refuse", channel, transfer); }
  void stop_serve(ServeId serve, Code) override { note("stop", serve); }
  TransportStats stats() const override { return {}; }
  std::vector<PeerRate> rates() const override { return {}; }

  std::vector<std::string> done;

 private:
  template <typename... Numbers>
  void note(std::string what, Numbers... numbers) {
    ((what += " " + std::to_string(numbers)), ...);
    done.push_back(std::move(what));
  }
};

class NoHandler : public ClientHandler {
 public:
  void on_client_request(ClientKey, std::uint64_t, client::Request, ByteView) override {}
  void on_client_gone(ClientKey) override {}
};

class EffectRunnerTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(dir_), nullptr);
    log_ = std::move(*Log::open(std::string(dir_) + "/log", LogLevel::kInfo));
    auto listener = UnixListener::open(std::string(dir_) + "/sock", 0600);
    ASSERT_TRUE(listener.ok());
    clients_ = std::make_unique<ClientServer>(loop_, handler_, *log_, std::move(*listener), ClientServerOptions{});
    runner_ = std::make_unique<EffectRunner>(transport_, *clients_, ByteSpan(arena_), *log_);
  }
  void TearDown() override {
    clients_.reset();
    ::unlink((std::string(dir_) + "/log").c_str());
    ::rmdir(dir_);
  }
  void run(const Effects& effects, std::string_view payload = {}) {
    runner_->run(effects, ByteView(reinterpret_cast<const std::byte*>(payload.data()), payload.size()));
  }

  char dir_[40] = "/tmp/hoplite-effects-XXXXXX";
  Loop loop_;
  NoHandler handler_;
  RecordingTransport transport_;
  std::vector<std::byte> arena_ = std::vector<std::byte>(4096);
  std::unique_ptr<Log> log_;
  std::unique_ptr<ClientServer> clients_;
  std::unique_ptr<EffectRunner> runner_;
};

TEST_F(EffectRunnerTest, EachIsOneCallInOrder) {
  run({effect::OpenCopy{1, {0, 64}, 1, false}, effect::GrowCopy{1, 10}, effect::FollowCopy{1}, effect::SealCopy{1},
       effect::StartPull{{}, {}, 1, {.transfer = 5, .id = {}, .target = {}}, Duration::us(1)}, effect::CancelPull{5},
       effect::AcceptPull{3, 4, 1, {}}, effect::RefusePull{3, 9, Code::kUnavailable},
       effect::CloseCopy{1}, effect::Disconnect{NodeId{1}}, effect::SendToAddress{{"10.0.0.1", 7411}, Sync{}}});
  EXPECT_THAT(transport_.done, ElementsAre("open 1 0 64 1 0", "grow 1 10", "follow 1", "seal 1", "start 1 5 1000",
                                           "cancel 5", "accept 3 4", "refuse 3 9", "close 1",
                                           "disconnect 0000000000000001", "send to 10.0.0.1:7411"));
}

TEST_F(EffectRunnerTest, ACombinationIsPassedOnWhole) {
  run({effect::OpenCopy{1, {128, 36}, 3, false, 100, 1}, effect::SealCopy{1, 1},
       effect::Combine{1, 2, ReduceOp::kMean, DType::kF64, 7, true, {{5, 6, 64}, {8, 9, 192}}}});
  const std::string combine = "combine 1 2 " + std::to_string(static_cast<int>(ReduceOp::kMean)) + " " +
                              std::to_string(static_cast<int>(DType::kF64)) + " 7 1";
  EXPECT_THAT(transport_.done,
              ElementsAre("open 1 128 36 3 0", "only 1 100", "seal 1 1", combine, "input 5 6 64", "input 8 9 192"));
}

TEST_F(EffectRunnerTest, PayloadsComeFromTheArena) {
  std::memcpy(arena_.data() + 100, "stored", 6);
  run({effect::Send{{}, {}, InlineObject{}, effect::Payload::kExtent, {100, 6}},
       effect::Send{{}, {}, Ping{}, effect::Payload::kNone, {}}},
      "arrived");
  EXPECT_THAT(transport_.done, ElementsAre(HasSubstr("'stored'"), HasSubstr("''")));
}

TEST_F(EffectRunnerTest, TheEventsPayloadIsStoredWhereTheAgentSays) {
  run({effect::StorePayload{{64, 5}}, effect::Send{{}, {}, InlineObject{}, effect::Payload::kExtent, {64, 5}}},
      "bytes");
  EXPECT_EQ(std::memcmp(arena_.data() + 64, "bytes", 5), 0);
  EXPECT_THAT(transport_.done, ElementsAre(HasSubstr("'bytes'"))) << "effects see those before them";
  run({effect::StorePayload{{0, 0}}}, "");
}

TEST_F(EffectRunnerTest, WhatOperatorsShouldKnowIsLogged) {
  run({effect::Log{"two puts of one name"}, effect::Reply{1, 2, client::PutDone{}}});
  std::stringstream all;
  all << std::ifstream(std::string(dir_) + "/log").rdbuf();
  EXPECT_THAT(all.str(), HasSubstr("two puts of one name"));
}

using EffectRunnerDeathTest = EffectRunnerTest;
TEST_F(EffectRunnerDeathTest, AnExtentOutsideTheArenaIsABug) {
  EXPECT_DEATH(run({effect::StorePayload{{4090, 10}}}, "0123456789"), "extent.offset");
}

}  // namespace
}  // namespace hoplite
