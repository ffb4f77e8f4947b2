// Test fixture: several nodes' data planes, each with an arena and a record of what it was told. It knows nothing of what
// carries the bytes.
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
#include "tests/dataplane/fabric.h"

namespace hoplite {

class TestNode {
 public:
  TestNode(Fabric& fabric, NodeRef ref, const NodeOptions& options, std::uint64_t arena_bytes)
      : self(ref),
        memory_(static_cast<std::byte*>(std::calloc(arena_bytes, 1)), &std::free),
        arena(memory_.get(), arena_bytes),
        node_(fabric.make_node(ref, options, arena,
                               [this](DataPlaneEvent event) { std::visit([this](const auto& e) { on(e); }, event); })) {
  }

  Address address() const { return node_->address(); }
  std::uint64_t bytes_sent() const { return node_->bytes_sent(); }

  // --- commands
  void open(const effect::OpenCopy& open) { node_->plane().execute(open); }
  void grow(CopyKey copy, std::uint64_t bytes) { node_->plane().execute(effect::GrowCopy{copy, bytes}); }
  void seal(CopyKey copy, std::uint32_t slice) { node_->plane().execute(effect::SealCopy{copy, slice}); }
  void combine(const effect::Combine& what) { node_->plane().execute(what); }
  void follow(CopyKey copy) { node_->plane().execute(effect::FollowCopy{copy}); }
  void close(CopyKey copy) { node_->plane().execute(effect::CloseCopy{copy}); }
  void cancel(TransferId transfer) { node_->plane().execute(effect::CancelPull{transfer}); }
  void prioritize(TransferId transfer, Priority priority) {
    node_->plane().execute(effect::PrioritizePull{transfer, priority});
  }
  void accept(ChannelId channel, ServeId serve, CopyKey copy, const PullRequest& pull) {
    node_->plane().execute(effect::AcceptPull{channel, serve, copy, pull});
  }
  void refuse(ChannelId channel, TransferId transfer, Code code) {
    node_->plane().execute(effect::RefusePull{channel, transfer, code});
  }
  void pull_from(NodeRef parent, const Address& address, CopyKey copy, const PullRequest& pull, Duration patience) {
    node_->plane().execute(effect::StartPull{parent, address, copy, pull, patience});
  }
  void disconnect(NodeId node) { node_->plane().disconnect(node); }
  void disconnect_all() { node_->plane().disconnect_all(); }
  ValidBytes valid(CopyKey copy, std::uint32_t slice) const { return node_->plane().valid(copy, slice); }

  // A complete copy of `bytes` at `offset`, served to whoever asks for `id`.
  void offer(ObjectId id, CopyKey copy, std::uint64_t offset, const std::vector<std::byte>& bytes,
             std::uint32_t slices = 1) {
    std::copy(bytes.begin(), bytes.end(), arena.begin() + static_cast<std::ptrdiff_t>(offset));
    open({copy, {offset, bytes.size()}, slices, true});
    served[id] = copy;
  }
  // The same, but nobody has said that the bytes are final: no pull of it completes.
  void offer_unsealed(ObjectId id, CopyKey copy, const std::vector<std::byte>& bytes) {
    std::copy(bytes.begin(), bytes.end(), arena.begin());
    open({copy, {0, bytes.size()}, 1, false});
    grow(copy, bytes.size());
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

  void on(const event::PullAsked& e) {
    asked.push_back(e);
    const auto it = served.find(e.pull.id);
    if (it != served.end()) accept(e.channel, ++last_serve, it->second, e.pull);
  }
  void on(const event::PullAccepted& e) { accepted.push_back(e.transfer); }
  void on(const event::PullSilent& e) { silent.push_back(e.transfer); }
  void on(const event::PullEnded& e) {
    EXPECT_TRUE(ended.emplace(e.transfer, e).second) << "transfer ended twice: " << e.transfer;
    order.emplace_back("pull ended");
    end_order.push_back(e.transfer);
  }
  void on(const event::ServePrioritized& e) { prioritized.emplace_back(e.serve, e.priority); }
  void on(const event::ServeEnded& e) {
    serves_ended.push_back(e.serve);
    order.emplace_back("serve ended");
  }
  void on(const event::CopyClosed& e) {
    closed.push_back(e.copy);
    order.emplace_back("copy closed");
  }
  void on(const event::Combined& e) {
    combined.emplace_back(e.out, e.slice);
    order.emplace_back("combined");
    if (when_combined) when_combined();
  }
  void on(const event::CopyGrown& e) { grown.push_back(e.copy); }

 public:
  ByteSpan arena;
  std::map<ObjectId, CopyKey> served;  // accepted at once
  ServeId last_serve = 0;
  std::function<void()> when_combined;

  std::vector<event::PullAsked> asked;
  std::vector<TransferId> accepted;
  std::vector<TransferId> silent;
  std::map<TransferId, event::PullEnded> ended;
  std::vector<TransferId> end_order;
  std::vector<std::pair<ServeId, Priority>> prioritized;
  std::vector<ServeId> serves_ended;
  std::vector<CopyKey> closed;
  std::vector<std::pair<CopyKey, std::uint32_t>> combined;
  std::vector<CopyKey> grown;
  std::vector<std::string> order;

 private:
  std::unique_ptr<FabricNode> node_;
};

class ConformanceTest : public testing::TestWithParam<FabricKind> {
 protected:
  static constexpr std::uint64_t kArenaBytes = 32 * kMiB;

  std::unique_ptr<TestNode> make_node(std::uint64_t id, const NodeOptions& options = {}) {
    return std::make_unique<TestNode>(*fabric, NodeRef{NodeId{id}, 1}, options, kArenaBytes);
  }

  // Lets things happen until `done`; a failure if that takes too long.
  template <typename Predicate>
  testing::AssertionResult runs_until(Predicate done, Duration limit = kTestLimit) {
    const Time give_up = fabric->now() + limit;
    while (!done()) {
      if (fabric->now() >= give_up) return testing::AssertionFailure() << "did not happen in time";
      fabric->run_some();
    }
    return testing::AssertionSuccess();
  }
  void run_for(Duration duration) {
    const Time until = fabric->now() + duration;
    while (fabric->now() < until) fabric->run_some();
  }
  // As runs_until, but what the lanes report is not heard yet.
  template <typename Predicate>
  bool lanes_run_until(Predicate done) {
    const Time give_up = fabric->now() + kTestLimit;
    while (!done() && fabric->now() < give_up) fabric->run_lanes();
    return done();
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
    child.pull_from(parent.self, parent.address(), copy, request, patience);
  }

  std::unique_ptr<Fabric> fabric = GetParam().make();
  Duration patience = Limits().stall_after;
};

#define HOPLITE_ALL_LINKS(suite)                                         \
  INSTANTIATE_TEST_SUITE_P(All, suite, testing::ValuesIn(all_fabrics()), \
                           [](const auto& tested) { return tested.param.name; })

}  // namespace hoplite
