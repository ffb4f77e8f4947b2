// Everything in one thread: lanes and the loop are queues of work.
#include <deque>
#include <map>
#include <utility>

#include "tests/dataplane/fabric.h"
#include "tests/dataplane/memory_link.h"

namespace hoplite {
namespace {

using dataplane::Lane;
using dataplane::LaneEvents;
using dataplane::MemoryLink;

class MemoryNode;

// Counts the payload that its node sends.
class CountingLink final : public dataplane::Link {
 public:
  CountingLink(std::unique_ptr<Link> link, std::uint64_t& bytes) : link_(std::move(link)), bytes_(bytes) {}
  void send(const FrameHeader& frame, ByteView body) override { link_->send(frame, body); }
  void flush() override { link_->flush(); }
  std::uint64_t queued_bytes() const override { return link_->queued_bytes(); }
  Sent send_data(const FrameHeader& frame, const std::byte* payload, bool more) override {
    const Sent sent = link_->send_data(frame, payload, more);
    if (sent != Sent::kNothing) bytes_ += frame.length;
    return sent;
  }
  void detach() override { link_->detach(); }

 private:
  std::unique_ptr<Link> link_;
  std::uint64_t& bytes_;
};

class MemoryFabric final : public Fabric {
 public:
  std::unique_ptr<FabricNode> make_node(NodeRef self, const NodeOptions& options, ByteSpan arena,
                                        std::function<void(DataPlaneEvent)> on_event) override;
  Time now() const override { return now_; }
  void run_some() override {
    const bool lanes_ran = run_one(lanes_);
    if (!run_one(loops_) && !lanes_ran) now_ = now_ + Duration::ms(1);
    tick();
  }
  void run_lanes() override {
    if (!run_one(lanes_)) now_ = now_ + Duration::ms(1);
    tick();
  }

  using Queue = std::deque<std::function<void()>>;
  static bool run_one(Queue& queue) {
    if (queue.empty()) return false;
    const auto work = std::move(queue.front());
    queue.pop_front();
    work();
    return true;
  }
  void tick();

  Queue lanes_;
  Queue loops_;
  Time now_{1'000'000'000};
  std::map<NodeRef, MemoryNode*> nodes_;
};

class MemoryNode final : public FabricNode,
                         private dataplane::DataPlane::Host,
                         private Lane::Host,
                         private dataplane::LinkDialler {
 public:
  MemoryNode(MemoryFabric& fabric, NodeRef self, const NodeOptions& options, ByteSpan arena,
             std::function<void(DataPlaneEvent)> on_event)
      : fabric_(fabric),
        self_(self),
        limits_(options.limits),
        on_event_(std::move(on_event)),
        plane_({arena.data(), arena.size(), options.lanes}, *this) {
    for (std::uint32_t i = 0; i < options.lanes; ++i)
      lanes_.push_back(std::make_unique<Lane>(Lane::Options{i, limits_, options.limits.shared_frame_bytes},
                                              static_cast<Lane::Host&>(*this),
                                              static_cast<dataplane::LinkDialler&>(*this)));
    fabric_.nodes_[self] = this;
  }
  ~MemoryNode() override {
    fabric_.nodes_.erase(self_);
    *alive_ = false;
  }

  dataplane::DataPlane& plane() override { return plane_; }
  Address address() const override { return {"memory", static_cast<std::uint16_t>(self_.id.value)}; }
  std::uint64_t bytes_sent() const override { return bytes_sent_; }

  void arrive(std::shared_ptr<MemoryLink::Pair> pair, NodeRef child) {
    const auto [channel, lane] = plane_.new_channel();
    lanes_[lane]->adopt(child, channel, [&, at = lane](dataplane::LinkUser& user) {
      return std::make_unique<CountingLink>(MemoryLink::accept(std::move(pair), user, executor(at)), bytes_sent_);
    });
    lanes_[lane]->settle();
  }
  void tick() {
    for (const auto& lane : lanes_)
      if (lane->next_wakeup() <= fabric_.now_) {
        lane->on_time();
        lane->settle();
      }
  }

 private:
  void post(MemoryFabric::Queue& queue, std::function<void()> work) {
    queue.push_back([alive = alive_, work = std::move(work)] {
      if (*alive) work();
    });
  }
  dataplane::Executor executor(std::uint32_t lane) {
    return [this, alive = alive_, lane](std::function<void()> work) {
      if (!*alive) return;
      post(fabric_.lanes_, [this, lane, work = std::move(work)] {
        work();
        lanes_[lane]->settle();
      });
    };
  }

  void run(std::uint32_t lane, std::function<void(Lane&)> command) override {
    executor(lane)([this, lane, command = std::move(command)] { command(*lanes_[lane]); });
  }
  void deliver(LaneEvents events) override {
    post(fabric_.loops_, [this, events = std::move(events)] { plane_.take(events); });
  }
  void on_event(DataPlaneEvent event) override { on_event_(std::move(event)); }
  Time now() const override { return fabric_.now_; }
  void wake(std::uint32_t lane, dataplane::BufferPtr buffer) override {
    run(lane, [buffer](Lane& at) { at.wake(*buffer); });
  }
  std::unique_ptr<dataplane::Link> dial(NodeRef parent, const Address& address, dataplane::LinkUser& user) override {
    return MemoryLink::dial(user, executor(0), [&](std::shared_ptr<MemoryLink::Pair> pair) {
      const auto it = fabric_.nodes_.find(parent);
      if (it == fabric_.nodes_.end() || it->second->address() != address) return false;
      MemoryNode* const node = it->second;
      node->post(fabric_.lanes_, [node, pair = std::move(pair), child = self_] { node->arrive(pair, child); });
      return true;
    });
  }

  MemoryFabric& fabric_;
  const NodeRef self_;
  const Limits limits_;
  std::function<void(DataPlaneEvent)> on_event_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  dataplane::DataPlane plane_;
  std::uint64_t bytes_sent_ = 0;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

std::unique_ptr<FabricNode> MemoryFabric::make_node(NodeRef self, const NodeOptions& options, ByteSpan arena,
                                                    std::function<void(DataPlaneEvent)> on_event) {
  return std::make_unique<MemoryNode>(*this, self, options, arena, std::move(on_event));
}

void MemoryFabric::tick() {
  for (const auto& [ref, node] : nodes_) node->tick();
}

}  // namespace

FabricKind memory_fabric() {
  return {"Memory", [] { return std::make_unique<MemoryFabric>(); }};
}

}  // namespace hoplite
