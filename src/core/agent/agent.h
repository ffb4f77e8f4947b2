// A node's mind: everything Hoplite decides, without I/O, clock, threads or globals.
//
// One Agent is driven by one thread: `step(now, event, effects)` appends what is to be done. `now` never goes back. The
// same type runs in the daemon (src/node) and in the simulator (sim).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/limits.h"
#include "core/agent/events.h"
#include "core/directory/summary.h"

namespace hoplite {

struct AgentOptions {
  NodeId self;                 // random per start
  Address address;             // where others reach this node
  std::vector<Address> seeds;  // any members of the cluster to join; may include our own address
  std::uint64_t capacity = 0;  // of the arena, bytes
  Limits limits;
  std::uint64_t seed = 0;                   // of every random choice
  std::int64_t wall_ms = 0;                 // what the wall clock says at Time{0}, in ms since 1970
  std::vector<MemberNews> initial_members;  // known from the start, as if gossip had told us; usually empty
};

class Agent {
 public:
  Agent(AgentOptions options, const Progress& progress, Time now);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  void step(Time now, Event event, Effects& effects);

  // When `Tick` is due, if nothing happens before. Time::never() = no timer is set.
  Time next_wakeup() const;

  NodeRef self() const;
  // It was told to leave, has finished what was under way, and has said goodbye.
  bool has_left() const;

  // --- for status displays and the simulator's invariants; none of these changes anything
  ipc::Status status() const;  // the fields that the agent knows
  std::vector<ClientHolding> holdings() const;
  std::vector<ipc::ObjectInfo> objects(std::size_t at_most = ~std::size_t{0}) const;  // the oldest
  std::vector<ipc::NodeInfo> nodes() const;
  std::vector<DirectorySummary> directory() const;  // what this node keeps as a home
  std::uint64_t members() const;                    // alive, this node included
  // It was told to join, and has neither found anybody nor taken itself for the cluster.
  bool is_joining() const;
  std::uint64_t repairs() const;  // of it, see core/directory/directory.h
  // All memory ever handed out lies below high_water or above low_water.
  std::uint64_t high_water() const;
  std::uint64_t low_water() const;
  // Between steps: what the parts believe of themselves and of each other. Looks at everything there is.
  void check_invariants() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hoplite
