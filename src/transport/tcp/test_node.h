// Test fixture: several transports in one process, on one loop, each with an arena and a record of what it was told.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/test_pattern.h"
#include "transport/loop.h"
#include "transport/transport.h"

namespace hoplite {

using TransportFactory = std::function<Result<std::unique_ptr<Transport>>(Loop&, TransportHandler&, const TcpOptions&)>;

struct TransportKind {
  std::string name;
  TransportFactory make;

  friend void PrintTo(const TransportKind& kind, std::ostream* out) { *out << kind.name; }
};

struct ReceivedMessage {
  NodeRef from;
  Message message;
  std::string payload;
};
class TestNode : public TransportHandler {
 public:
  TestNode(Loop& loop, const TransportFactory& factory, TcpOptions options, std::uint64_t arena_bytes)
      : self(options.self),
        memory_(static_cast<std::byte*>(std::calloc(arena_bytes, 1)), &std::free),
        arena(memory_.get(), arena_bytes) {
    options.arena = arena.data();
    options.arena_bytes = arena.size();
    if (options.listen.empty()) options.listen = {"127.0.0.1", 0};
    options.log = [this](std::string line) { log.push_back(std::move(line)); };
    auto made = factory(loop, *this, options);
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
    transport = std::move(made).value();
  }

  Address address() const { return transport->listen_address(); }

  void on_message(NodeRef from, Message message, ByteView payload) override {
    messages.push_back({from, std::move(message), {reinterpret_cast<const char*>(payload.data()), payload.size()}});
    if (when_message) when_message();
  }
  void on_peer_lost(NodeRef peer, Loss why) override { lost.emplace_back(peer, why); }
  void on_not_reached(const Address& address, const std::string& why) override {
    not_reached.emplace_back(address, why);
  }
  void on_data_plane(DataPlaneEvent event) override {
    if (const auto* e = std::get_if<event::PullAsked>(&event)) {
      asked.push_back(*e);
      const auto it = served.find(e->pull.id);
      if (it != served.end()) execute(effect::AcceptPull{e->channel, ++last_serve, it->second, e->pull});
    }
    if (const auto* e = std::get_if<event::PullSilent>(&event)) silent.push_back(e->transfer);
    if (const auto* e = std::get_if<event::PullEnded>(&event)) ended.emplace(e->transfer, *e);
    if (const auto* e = std::get_if<event::CopyClosed>(&event)) closed.push_back(e->copy);
  }

  template <typename Command>
  void execute(const Command& command) {
    transport->data_plane().execute(command);
  }
  ValidBytes valid(CopyKey copy) const { return transport->data_plane().valid(copy, 0); }
  // A complete copy of `bytes` at `offset`, served to whoever asks for `id`.
  void offer(ObjectId id, CopyKey copy, std::uint64_t offset, const std::vector<std::byte>& bytes) {
    std::copy(bytes.begin(), bytes.end(), arena.begin() + static_cast<std::ptrdiff_t>(offset));
    execute(effect::OpenCopy{copy, {offset, bytes.size()}, 1, true});
    served[id] = copy;
  }
  bool holds(std::uint64_t offset, const std::vector<std::byte>& bytes) const {
    return std::equal(bytes.begin(), bytes.end(), arena.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  bool ended_as(TransferId transfer, PullEnd how) const {
    const auto it = ended.find(transfer);
    return it != ended.end() && it->second.how == how;
  }

  NodeRef self;

 private:
  std::unique_ptr<std::byte, decltype(&std::free)> memory_;  // pages that are not used cost nothing

 public:
  ByteSpan arena;
  std::map<ObjectId, CopyKey> served;  // accepted at once
  ServeId last_serve = 0;
  std::function<void()> when_message;

  std::vector<ReceivedMessage> messages;
  std::vector<std::pair<NodeRef, Loss>> lost;
  std::vector<std::pair<Address, std::string>> not_reached;
  std::vector<event::PullAsked> asked;
  std::vector<TransferId> silent;
  std::map<TransferId, event::PullEnded> ended;
  std::vector<CopyKey> closed;
  std::vector<std::string> log;

  std::unique_ptr<Transport> transport;
};

class TransportTest : public testing::TestWithParam<TransportKind> {
 protected:
  static constexpr std::uint64_t kArenaBytes = 32 * kMiB;

  std::unique_ptr<TestNode> make_node(std::uint64_t id, TcpOptions options = {}) {
    options.self = {NodeId{id}, 1};
    return std::make_unique<TestNode>(loop, GetParam().make, options, kArenaBytes);
  }

  // Runs the loop until `done`; a failure if that takes too long.
  template <typename Predicate>
  testing::AssertionResult runs_until(Predicate done, Duration limit = kTestLimit) {
    const Time give_up = monotonic_now() + limit;
    while (!done()) {
      if (monotonic_now() >= give_up) return testing::AssertionFailure() << "did not happen in time";
      loop.run_once(std::min(give_up, monotonic_now() + Duration::ms(5)));
    }
    return testing::AssertionSuccess();
  }
  void run_for(Duration duration) {
    const Time until = monotonic_now() + duration;
    while (monotonic_now() < until) loop.run_once(until);
  }

  static PullRequest request(TransferId transfer, ObjectId id, std::uint64_t offset = 0) {
    PullRequest pull;
    pull.transfer = transfer;
    pull.id = pull.target = id;
    pull.version = 1;
    pull.offset = offset;
    return pull;
  }
  void pull(TestNode& child, const TestNode& parent, CopyKey copy, const PullRequest& request) const {
    child.execute(effect::StartPull{parent.self, parent.address(), copy, request, patience});
  }

  Loop loop;
  Duration patience = Limits().stall_after;
};

#define HOPLITE_ALL_TRANSPORTS(suite)                                                             \
  INSTANTIATE_TEST_SUITE_P(All, suite, testing::Values(TransportKind{"Tcp", make_tcp_transport}), \
                           [](const auto& tested) { return tested.param.name; })

}  // namespace hoplite
