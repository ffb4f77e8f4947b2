// The simulator's links, in virtual time.
#include <deque>

#include "sim/plane.h"
#include "tests/dataplane/fabric.h"

namespace hoplite {
namespace {

class SimulatedFabric;

class SimulatedNode final : public FabricNode {
 public:
  SimulatedNode(SimulatedFabric& fabric, sim::NodeIndex node) : fabric_(fabric), node_(node) {}
  ~SimulatedNode() override;
  dataplane::DataPlane& plane() override;
  Address address() const override;
  std::uint64_t bytes_sent() const override;

 private:
  SimulatedFabric& fabric_;
  const sim::NodeIndex node_;
};

class SimulatedFabric final : public Fabric, private sim::LinksSink, private sim::PlaneSink {
 public:
  std::unique_ptr<FabricNode> make_node(NodeRef self, const NodeOptions& options, ByteSpan arena,
                                        std::function<void(DataPlaneEvent)> on_event) override {
    sim::LinkSpec link;
    link.up = link.down = options.slow ? 20e6 : 1e9;
    const sim::NodeIndex node = hosts_.add({"10.0.0." + std::to_string(machines_.size() + 1), 7411}, link);
    links_.add_node();
    hosts_[node].running = true;
    hosts_[node].start = 1;
    hosts_[node].ref = self;
    Machine& machine = machines_.emplace_back();
    machine.limits = options.limits;
    machine.on_event = std::move(on_event);
    const sim::Plane::Environment environment{queue_, hosts_, random_, links_, *this, machine.limits};
    machine.plane = std::make_unique<sim::Plane>(
        environment, node, sim::Plane::Options{arena, arena.size(), options.lanes, Duration::us(100)});
    return std::make_unique<SimulatedNode>(*this, node);
  }
  Time now() const override { return queue_.now(); }
  void run_some() override {
    const Time soon = queue_.now() + Duration::ms(5);
    if (queue_.next_time() <= soon) queue_.run_next();
    else queue_.advance_to(soon);
  }
  void run_lanes() override { run_some(); }

 private:
  friend class SimulatedNode;
  struct Machine {
    Limits limits;
    std::function<void(DataPlaneEvent)> on_event;
    std::unique_ptr<sim::Plane> plane;
  };

  void link_arrived(sim::NodeIndex at, sim::ProcessId, NodeRef ref, const dataplane::MakeLink& make) override {
    machines_[at].plane->adopt(ref, make);
  }
  void link_ran(sim::NodeIndex at) override { machines_[at].plane->settle(); }
  void data_plane_event(sim::NodeIndex at, DataPlaneEvent event) override { machines_[at].on_event(std::move(event)); }
  void kill(sim::NodeIndex node) {
    links_.process_died(node, false);
    hosts_[node].running = false;
    machines_[node].plane.reset();
  }

  sim::EventQueue queue_;
  Random random_{1};
  sim::Hosts hosts_{random_};
  sim::Links links_{queue_, hosts_, random_, *this, {}};
  std::deque<Machine> machines_;  // by node
};

SimulatedNode::~SimulatedNode() { fabric_.kill(node_); }
dataplane::DataPlane& SimulatedNode::plane() { return fabric_.machines_[node_].plane->data(); }
Address SimulatedNode::address() const { return fabric_.hosts_[node_].address; }
std::uint64_t SimulatedNode::bytes_sent() const { return fabric_.links_.bytes_sent(node_); }

}  // namespace

FabricKind simulated_fabric() {
  return {"Simulated", [] { return std::make_unique<SimulatedFabric>(); }};
}

}  // namespace hoplite
