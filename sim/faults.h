// Random faults: each begins at a drawn moment, and some of them end by themselves.
#pragma once

#include "sim/clients.h"
#include "sim/draw.h"

namespace hoplite::sim {

class Faults {
 public:
  Faults(World& world, Judge& judge, const RunPlan& plan, Random& random)
      : world_(world), judge_(judge), plan_(plan), random_(random) {}

  void strike();
  // Ends everything that can end: paths open, the paused go on. The dead are started again, or stay dead.
  void end_all();

 private:
  NodeIndex some_node() { return static_cast<NodeIndex>(random_.below(world_.size())); }
  Duration a_while(double most_beats);

  void crash();
  void restart_later(NodeIndex node);
  void pause();
  void partition();
  void one_way();
  void refuse_pair();
  void wall();
  void heal_later();
  void break_connections();
  void slow_down();

  // Undone by a timer, or by end_all.
  void end_pause(NodeIndex node);
  void end_partition();

  World& world_;
  Judge& judge_;
  const RunPlan& plan_;
  Random& random_;
  std::uint32_t partitions_ = 0;  // active ones; they all heal together
  std::uint32_t healed_ = 0;      // counts heals, so that a timer of an earlier partition does not end a later one
  bool over_ = false;
  bool slowed_ = false;
};

}  // namespace hoplite::sim
