// A cluster in virtual time: hosts, the network between them, and on each host one Agent with its memory and its clients.
//
// The world plays the part of src/node: it turns what happens into events and carries out the effects. It knows nothing of
// what should happen; an observer (invariants.h) judges.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/agent/agent.h"
#include "sim/network.h"
#include "sim/plane.h"
#include "sim/trace.h"
#include "sim/transfers.h"

namespace hoplite::sim {

struct NodeSpec {
  Address address;
  LinkSpec link;
  std::uint64_t capacity = kMiB;
  std::vector<Address> seeds;  // whom it joins; may be set until it is started
};

// How long the agents took to handle one kind of message, in time of the processor.
struct StepCost {
  std::vector<float> want_us;
};

struct WorldOptions {
  std::uint64_t seed = 0;
  Limits limits;
  NetworkOptions network;
  LinkOptions links;
  std::uint32_t lanes = 1;                       // of each data plane
  Duration post_delay;                           // what a lane reports reaches its agent up to this much later
  bool carry_bytes = true;                       // false: sizes only, for very large runs
  Duration client_delay;                         // a request or reply takes up to this long between client and daemon
  std::uint64_t max_events = ~std::uint64_t{0};  // more than this is a livelock
  std::ostream* trace = nullptr;
  StepCost* cost = nullptr;
};

enum class Crash : std::uint8_t { kProcess, kMachine };

struct Violation {
  std::string invariant;
  std::string text;
  Time when;
};

class WorldObserver {
 public:
  virtual ~WorldObserver() = default;
  virtual void on_reply(ClientKey client, std::uint64_t request, const ipc::Reply& reply) = 0;
  virtual void on_transfer(const Transfer& transfer) = 0;      // it was accepted: the place to look for cycles
  virtual void on_step(NodeIndex) {}                           // after its effects have been carried out
  virtual void on_leave(NodeIndex node) = 0;                   // it says goodbye, and will be gone in a moment
  virtual void on_death(NodeIndex node) = 0;                   // after the process is gone
  virtual void on_break(NodeIndex, NodeIndex) {}               // before the connections of the two break
  virtual void on_rename(NodeIndex node, NodeRef before) = 0;  // it heard that it was given up
};

class World final : private NetworkSink, private LinksSink, private PlaneSink {
 public:
  explicit World(const WorldOptions& options);
  ~World() override;
  void observe(WorldObserver* observer) { observer_ = observer; }

  // --- building
  NodeIndex add_node(NodeSpec spec);
  NodeSpec& spec(NodeIndex node) { return nodes_[node].spec; }
  std::size_t size() const { return nodes_.size(); }

  // --- time
  Time now() const { return queue_.now(); }
  // False as soon as there is a violation.
  bool run_until(Time when);
  bool run_for(Duration duration) { return run_until(now() + duration); }
  void at(Time when, Task task) { queue_.at(when, task); }
  EventQueue& queue() { return queue_; }
  const EventQueue& queue() const { return queue_; }

  // --- what happens to nodes
  void start(NodeIndex node);  // a new process, with a new identity
  // All nodes at once, as a cluster that has been running: everybody knows everybody.
  void start_acquainted();
  void crash(NodeIndex node, Crash how);
  void leave(NodeIndex node);  // asked to stop: it says goodbye, then the process ends
  void pause(NodeIndex node);
  void resume(NodeIndex node);
  void block(NodeIndex from, NodeIndex to);
  // A firewall resets the connections that `from` has to `to`, and refuses its dials.
  void refuse(NodeIndex from, NodeIndex to);
  void heal();
  void break_connections(NodeIndex a, NodeIndex b);
  void set_rate(NodeIndex node, double bytes_per_second);
  ProcessId process(NodeIndex node) const { return {node, hosts_[node].start}; }

  bool running(NodeIndex node) const { return hosts_[node].running; }
  std::vector<NodeIndex> running_nodes() const;
  bool leaving(NodeIndex node) const { return leaving_.contains(process(node)); }  // was told to stop
  bool paused(NodeIndex node) const { return hosts_[node].paused; }
  // The agent of a running node.
  Agent& agent(NodeIndex node) { return *nodes_[node].agent; }
  ByteSpan arena(NodeIndex node) { return nodes_[node].arena; }
  // The data plane of a running node.
  const Plane& plane(NodeIndex node) const { return *nodes_[node].plane; }
  std::uint64_t capacity(NodeIndex node) const { return nodes_[node].spec.capacity; }

  // --- clients
  ClientKey attach(NodeIndex node);
  void detach(ClientKey client);  // its connection ends: the daemon sees the socket close
  // After that: its process gives back a view that it has kept, or ends (or lets go of all that it holds).
  void give_back(ClientKey client, CopyKey copy);
  void end_lease(ClientKey client);
  bool attached(ClientKey client) const;  // and its daemon is still the one it attached to
  NodeIndex node_of(ClientKey client) const { return ports_[client - 1].process.node; }
  // The client's number at its daemon, for ids that it mints itself.
  std::uint32_t number_of(ClientKey client) const { return ports_[client - 1].number; }
  void ask(ClientKey client, std::uint64_t request, ipc::Request message, std::string payload = {});

  // --- judging
  void violate(const std::string& invariant, const std::string& text);
  const std::optional<Violation>& violation() const { return violation_; }
  std::uint64_t digest() const { return digest_; }
  bool any_evicted() const { return any_evicted_; }
  // What homes heard from full announcements only (core/directory/directory.h), those included that have died.
  std::uint64_t repairs() const;

  Trace& trace() { return trace_; }
  const Transfers& transfers() const { return transfers_; }
  bool is_pulling(const Transfer& transfer) const {
    return hosts_.alive(transfer.child) && plane(transfer.child.node).is_pulling(transfer.request.transfer);
  }
  bool is_moving(const Transfer& transfer) const {
    return is_pulling(transfer) && hosts_.alive(transfer.parent) &&
           plane(transfer.parent.node).is_serving(transfer.serve);
  }
  const Links& links() const { return links_; }
  // By control connections, since the beginning.
  std::uint64_t control_bytes_sent(NodeIndex node) const { return network_.bytes_sent(node); }
  const Hosts& hosts() const { return hosts_; }

 private:
  class PlaneProgress;
  struct Node {
    NodeSpec spec;
    std::unique_ptr<Progress> progress;
    std::vector<std::byte> arena;
    std::unique_ptr<Plane> plane;
    std::unique_ptr<Agent> agent;
    std::map<CopyKey, Extent> open;  // in the data plane
    Time timer = Time::never();      // the earliest timer that is set
    std::uint32_t clients = 0;
  };
  struct Ask {
    std::uint64_t request = 0;
    ipc::Request message;
    std::string payload;
    enum class What : std::uint8_t { kAsks, kIsGone, kLeaseEnded } what = What::kAsks;
  };
  struct Answer {
    std::uint64_t request = 0;
    ipc::Reply message;
  };
  struct Port {  // one client's connection
    ProcessId process;
    std::uint32_t number = 0;
    bool open = true;
    std::deque<Ask> asks;
    std::deque<Answer> answers;
    Time last_ask, last_answer;
  };

  // NetworkSink, LinksSink, PlaneSink
  void message_arrived(NodeIndex at, NodeRef from, const std::string& bytes) override;
  void peer_lost(NodeIndex at, NodeRef peer, Loss why) override;
  void link_arrived(NodeIndex at, ProcessId child, NodeRef ref, const dataplane::MakeLink& make) override;
  void link_ran(NodeIndex at) override { nodes_[at].plane->settle(); }
  void data_plane_event(NodeIndex at, DataPlaneEvent event) override;

  // The agent asked for something that the contract forbids.
  void contract_broken(NodeIndex at, const std::string& what);

  void power_on(NodeIndex node);
  void make_agent(NodeIndex node, std::vector<MemberNews> known);
  void step(NodeIndex node, Event event, ByteView payload = {});
  void note_renaming(NodeIndex node);
  void note_goodbye(NodeIndex node);
  void set_timer(NodeIndex node);
  void timer_due(ProcessId process, Time set_for);
  void queue_ask(ClientKey client, Ask ask);
  void ask_arrived(ClientKey client);
  void answer_arrived(ClientKey client);
  void mix(std::uint64_t value) { digest_ = mix64(digest_ ^ value); }

  // Effects, one function for each.
  void carry_out(NodeIndex node, effect::Send& send, ByteView payload);
  void carry_out(NodeIndex node, effect::SendToAddress& send, ByteView payload);
  void carry_out(NodeIndex node, effect::Disconnect& disconnect, ByteView payload);
  void carry_out(NodeIndex node, effect::StorePayload& store, ByteView payload);
  void carry_out(NodeIndex node, effect::Reply& reply, ByteView payload);
  void carry_out(NodeIndex, effect::Log&, ByteView) {}  // the trace has it
  void carry_out(NodeIndex, effect::Happened&, ByteView) {}
  template <typename Command>
    requires requires(dataplane::DataPlane& plane, const Command& command) { plane.execute(command); }
  void carry_out(NodeIndex node, const Command& command, ByteView payload);
  void note(NodeIndex node, const effect::OpenCopy& open);
  void note(NodeIndex node, const effect::StartPull& start) { transfers_.started(process(node), start); }
  void note_accepted(NodeIndex node, const effect::AcceptPull& accept);

  WorldOptions options_;
  EventQueue queue_;
  Random random_;
  Trace trace_;
  Hosts hosts_;
  Network network_;
  Links links_;
  Transfers transfers_;
  WorldObserver* observer_ = nullptr;
  std::deque<Node> nodes_;
  std::deque<Port> ports_;  // by client key - 1
  std::optional<Violation> violation_;
  std::uint64_t digest_ = 0;
  std::uint64_t steps_ = 0;
  bool any_evicted_ = false;
  std::uint64_t repairs_of_the_dead_ = 0;
  std::vector<Effects> spare_effects_;  // emptied vectors, to be used again
  std::map<ProcessId, bool> leaving_;   // whether it has said goodbye
};

}  // namespace hoplite::sim
