#include "node/effects.h"
#include "base/type_name.h"

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
    done.push_back("send " + type_name(message) + " '" +
                   std::string(reinterpret_cast<const char*>(payload.data()), payload.size()) + "'");
  }
  void send_to_address(const Address& address, const Message&) override {
    done.push_back("send to " + address.to_string());
  }
  std::uint64_t backlog(NodeRef) const override { return 0; }
  void disconnect(NodeId node) override { done.push_back("disconnect " + node.to_string()); }
  dataplane::DataPlane& data_plane() override { return plane; }
  TransportStats stats() const override { return {}; }
  PeerRates rates() const override { return {}; }

  std::vector<std::string> done;

 private:
  class NoLanes final : public dataplane::DataPlane::Host {
    void run(std::uint32_t, std::function<void(dataplane::Lane&)>) override {}
    void deliver(dataplane::LaneEvents) override {}
    void on_event(DataPlaneEvent) override {}
  };
  NoLanes lanes_;

 public:
  dataplane::DataPlane plane{{nullptr, 4096, 1}, lanes_};
};

class NoHandler : public ClientHandler {
 public:
  void on_client_request(ClientKey, std::uint64_t, ipc::Request, ByteView) override {}
  void on_client_gone(ClientKey) override {}
  void on_lease_ended(ClientKey) override {}
};

class EffectRunnerTest : public testing::Test, private Joiner::Host {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(dir_), nullptr);
    log_ = std::move(*Log::open(std::string(dir_) + "/log", LogLevel::kInfo));
    auto listener = UnixListener::open(std::string(dir_) + "/sock", 0600);
    ASSERT_TRUE(listener.ok());
    clients_ = std::make_unique<ClientServer>(loop_, handler_, *log_, std::move(*listener), ClientServerOptions{});
    joiner_ = std::make_unique<Joiner>(loop_, *log_, static_cast<Joiner::Host&>(*this), std::vector<Address>{});
    runner_ = std::make_unique<EffectRunner>(transport_, *joiner_, *clients_, ByteSpan(arena_), *log_);
  }
  void TearDown() override {
    clients_.reset();
    ::unlink((std::string(dir_) + "/log").c_str());
    ::rmdir(dir_);
  }
  void run(const Effects& effects, std::string_view payload = {}) {
    runner_->run(effects, ByteView(reinterpret_cast<const std::byte*>(payload.data()), payload.size()));
  }

  void knock_at(const Address& numeric, const Message& message) override {
    transport_.send_to_address(numeric, message);
  }
  bool is_inside(const Address&) const override { return false; }
  void may_be_first() override {}

  char dir_[40] = "/tmp/hoplite-effects-XXXXXX";
  Loop loop_;
  NoHandler handler_;
  RecordingTransport transport_;
  std::vector<std::byte> arena_ = std::vector<std::byte>(4096);
  std::unique_ptr<Log> log_;
  std::unique_ptr<ClientServer> clients_;
  std::unique_ptr<Joiner> joiner_;
  std::unique_ptr<EffectRunner> runner_;
};

TEST_F(EffectRunnerTest, CommandsReachTheDataPlaneInOrder) {
  run({effect::OpenCopy{1, {0, 64}, 1, false}, effect::GrowCopy{1, 10}, effect::OpenCopy{2, {64, 64}, 1, true}});
  EXPECT_EQ(transport_.plane.valid(1, 0).front(), 10U);
  EXPECT_EQ(transport_.plane.valid(2, 0).front(), 64U);
}

TEST_F(EffectRunnerTest, OthersReachTheTransportInOrder) {
  run({effect::Disconnect{NodeId{1}}, effect::SendToAddress{{"10.0.0.1", 7411}, Sync{}}});
  EXPECT_THAT(transport_.done, ElementsAre("disconnect 0000000000000001", "send to 10.0.0.1:7411"));
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
  run({effect::Log{"two puts of one name"}, effect::Reply{1, 2, ipc::PutDone{}}});
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
