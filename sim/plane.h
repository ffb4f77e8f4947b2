// The data plane of one simulated process: the product's own (src/dataplane), on one thread and over simulated links.
//
// Commands are carried out at once; what the lanes report reaches the agent later, in order. Where the contract says that
// threads may still touch a copy, this one does: until PullEnded is heard something is scribbled behind the valid bytes, and
// behind those of a combination that was stopped. So an agent that frees or uses memory too early is seen.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "dataplane/data_plane.h"
#include "sim/links.h"

namespace hoplite::sim {

class PlaneSink {
 public:
  virtual ~PlaneSink() = default;
  virtual void data_plane_event(NodeIndex at, DataPlaneEvent event) = 0;
};

class Plane final : private dataplane::DataPlane::Host, private dataplane::Lane::Host, private dataplane::LinkDialler {
 public:
  struct Environment {  // all of it outlives the plane
    EventQueue& queue;
    Hosts& hosts;
    Random& random;
    Links& links;
    PlaneSink& sink;
    const Limits& limits;
  };
  struct Options {
    ByteSpan arena;  // empty: no memory behind the copies
    std::uint64_t capacity = 0;
    std::uint32_t lanes = 1;
    Duration post_delay;  // what a lane reports is heard up to this much later
  };
  Plane(const Environment& environment, NodeIndex node, const Options& options);
  ~Plane() = default;
  Plane(const Plane&) = delete;
  Plane& operator=(const Plane&) = delete;

  dataplane::DataPlane& data() { return data_; }
  const dataplane::DataPlane& data() const { return data_; }
  ChannelId adopt(NodeRef child, const dataplane::MakeLink& make);
  // Something has called a lane: what is to be done at the end of a batch.
  void settle();
  bool is_pulling(TransferId transfer) const;
  bool is_serving(ServeId serve) const;

 private:
  void run(std::uint32_t lane, std::function<void(dataplane::Lane&)> command) override;
  void deliver(dataplane::LaneEvents events) override;
  void on_event(DataPlaneEvent event) override { env_.sink.data_plane_event(node_, std::move(event)); }
  Time now() const override { return env_.queue.now(); }
  void wake(std::uint32_t lane, dataplane::BufferPtr buffer) override;
  std::unique_ptr<dataplane::Link> dial(NodeRef parent, const Address& address, dataplane::LinkUser& user) override {
    return env_.links.dial(node_, parent, address, user);
  }

  // Runs a member function later, as something that the process sees; not if it is dead by then.
  void later(Time when, void (Plane::*what)());
  void take_events();
  void take_wake();
  void timer_due();
  void scribble_for(const dataplane::LaneEvents& events);
  void scribble(const dataplane::Buffer* buffer, const ValidBytes& valid);

  Environment env_;
  const NodeIndex node_;
  const ProcessId process_;
  const Options options_;
  dataplane::DataPlane data_;
  std::vector<std::unique_ptr<dataplane::Lane>> lanes_;
  std::deque<dataplane::LaneEvents> events_;  // under way to the agent
  std::deque<std::pair<std::uint32_t, dataplane::BufferPtr>> wakes_;
  Time last_post_;
  Time timer_at_ = Time::never();
};

}  // namespace hoplite::sim
