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

#include "base/random.h"
#include "transport/loop.h"
#include "transport/transport.h"

namespace hoplite {

using TransportFactory = std::function<Result<std::unique_ptr<Transport>>(Loop&, TransportHandler&, const TcpOptions&)>;

struct TransportKind {
  std::string name;
  TransportFactory make;

  friend void PrintTo(const TransportKind& kind, std::ostream* out) { *out << kind.name; }
};

constexpr Duration kTestLimit = Duration::s(30);  // reached only when something is broken

// Bytes that differ at every position and for every seed.
inline std::vector<std::byte> pattern(std::uint64_t size, std::uint64_t seed) {
  std::vector<std::byte> out(round_up(size, 8));
  for (std::uint64_t i = 0; i < out.size(); i += 8) {
    const std::uint64_t word = mix64(seed * 0x10001 + i);
    std::memcpy(out.data() + i, &word, 8);
  }
  out.resize(size);
  return out;
}

struct ReceivedMessage {
  NodeRef from;
  Message message;
  std::string payload;
};
struct AskedPull {
  NodeRef peer;
  ChannelId channel = 0;
  PullRequest pull;
};
struct EndedPull {
  PullEnd how = PullEnd::kComplete;
  std::uint64_t watermark = 0;
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
  void on_pull_asked(NodeRef peer, ChannelId channel, const PullRequest& pull) override {
    asked.push_back({peer, channel, pull});
    const auto it = served.find(pull.id);
    if (it != served.end()) transport->accept_pull(channel, ++last_serve, it->second, pull);
  }
  void on_pull_accepted(TransferId transfer) override { accepted.push_back(transfer); }
  void on_pull_silent(TransferId transfer) override { silent.push_back(transfer); }
  void on_pull_ended(TransferId transfer, PullEnd how, ValidBytes valid) override {
    EXPECT_TRUE(ended.emplace(transfer, EndedPull{how, valid.front()}).second) << "transfer ended twice: " << transfer;
    order.push_back("pull ended");
    end_order.push_back(transfer);
  }
  void on_serve_ended(ServeId serve) override {
    serves_ended.push_back(serve);
    order.emplace_back("serve ended");
  }
  void on_copy_closed(CopyKey copy) override {
    closed.push_back(copy);
    order.emplace_back("copy closed");
  }
  void on_combined(CopyKey out, std::uint32_t slice) override {
    combined.emplace_back(out, slice);
    order.emplace_back("combined");
    if (when_combined) when_combined();
  }
  void on_copy_grown(CopyKey copy) override { grown.push_back(copy); }

  // A complete copy of `bytes` at `offset`, served to whoever asks for `id`.
  void offer(ObjectId id, CopyKey copy, std::uint64_t offset, const std::vector<std::byte>& bytes,
             std::uint32_t slices = 1) {
    std::copy(bytes.begin(), bytes.end(), arena.begin() + static_cast<std::ptrdiff_t>(offset));
    transport->open_copy({copy, {offset, bytes.size()}, slices, true});
    served[id] = copy;
  }
  // The same, but nobody has said that the bytes are final: no pull of it completes.
  void offer_unsealed(ObjectId id, CopyKey copy, const std::vector<std::byte>& bytes) {
    std::copy(bytes.begin(), bytes.end(), arena.begin());
    transport->open_copy({copy, {0, bytes.size()}, 1, false});
    transport->grow_copy(copy, bytes.size());
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
  std::function<void()> when_combined;

  std::vector<ReceivedMessage> messages;
  std::vector<std::pair<NodeRef, Loss>> lost;
  std::vector<AskedPull> asked;
  std::vector<TransferId> accepted;
  std::vector<TransferId> silent;
  std::map<TransferId, EndedPull> ended;
  std::vector<TransferId> end_order;
  std::vector<ServeId> serves_ended;
  std::vector<CopyKey> closed;
  std::vector<std::pair<CopyKey, std::uint32_t>> combined;
  std::vector<CopyKey> grown;
  std::vector<std::string> order;
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
  // All of one slice of an object of `size` bytes.
  static PullRequest slice_request(TransferId transfer, ObjectId id, std::uint64_t size, std::uint32_t slice,
                                   std::uint32_t slices) {
    PullRequest pull = request(transfer, id, slice_range(size, slices, slice).begin);
    pull.slice = slice;
    pull.slices = slices;
    return pull;
  }
  void pull(TestNode& child, const TestNode& parent, CopyKey copy, const PullRequest& request) const {
    child.transport->start_pull(parent.self, parent.address(), copy, request, patience);
  }

  Loop loop;
  Duration patience = Limits().stall_after;
};

#define HOPLITE_ALL_TRANSPORTS(suite)                                                             \
  INSTANTIATE_TEST_SUITE_P(All, suite, testing::Values(TransportKind{"Tcp", make_tcp_transport}), \
                           [](const auto& tested) { return tested.param.name; })

}  // namespace hoplite
