// Failovers: how long a reader takes to go on after it has lost the node that it pulled from.
//
// One begins when a process dies, or the connections of two nodes break, while somebody pulls through it; it ends when bytes of
// that slice are pulled again, or nobody waits for them any more. An input of a reduce counts for the reduce: any of its slots
// that pulls again ends it. If nobody has what is needed to go on (a complete copy, or enough sources of a reduce), being told
// that it is lost is an end; otherwise it waits for a client to put it again, and does not count. Nor do pauses and partitions:
// what they hold back may simply go on.
#pragma once

#include <vector>

#include "sim/ledger.h"
#include "sim/world.h"

namespace hoplite::sim {

struct Failover {
  ProcessId child;
  ObjectId object;  // what it gets, or what it reduces into
  std::uint32_t slice = 0;
  bool reduces = false;
  Time began;
  bool can_go_on = true;
  // --- once it has ended
  Duration took = {};
  Duration undisturbed = {};  // of that, since the last death or broken connection anywhere
};

class Failovers {
 public:
  Failovers(World& world, const Ledger& ledger) : world_(world), ledger_(ledger) {}

  void node_died(NodeIndex node);
  void connections_break(NodeIndex a, NodeIndex b);  // just before they do
  void transfer_began(const Transfer& transfer);
  void look_at(NodeIndex node);  // after a step there

  const std::vector<Failover>& ended() const { return ended_; }

 private:
  template <typename Predicate>
  void begin(Predicate hit);
  bool can_go_on(const Failover& failover) const;
  bool is_complete_somewhere(const ObjectId& id) const;
  // The latest get that it is for: one that has not ended, if there is one.
  const RequestRecord* reader(const Failover& failover) const;
  void end(Failover failover);

  World& world_;
  const Ledger& ledger_;
  Time last_fault_;
  std::vector<Failover> open_;
  std::vector<Failover> ended_;
};

}  // namespace hoplite::sim
