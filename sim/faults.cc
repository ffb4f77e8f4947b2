#include "sim/faults.h"

#include <cmath>

namespace hoplite::sim {

Duration Faults::a_while(double most_beats) {
  return Duration::from_seconds(plan_.beat.seconds() * 0.05 * std::pow(most_beats / 0.05, random_.uniform()));
}

void Faults::strike() {
  const bool all = plan_.hazard == Hazard::kAll;
  const double dice = random_.uniform();
  if (all && dice < 0.2) return pause();
  if (all && dice < 0.35) return partition();
  if (all && dice < 0.45) return one_way();
  if (all && dice < 0.52) return refuse_pair();
  if (all && dice < 0.6) return wall();
  const double rest = random_.uniform();
  if (rest < 0.5) return crash();
  if (rest < 0.8 || !all) return break_connections();
  return slow_down();
}

void Faults::crash() {
  const NodeIndex node = some_node();
  if (!world_.running(node)) return;
  if (world_.paused(node)) end_pause(node);
  const double dice = random_.uniform();
  if (dice < 0.15) world_.leave(node);
  else world_.crash(node, dice < 0.75 ? Crash::kProcess : Crash::kMachine);
  if (random_.chance(0.7)) restart_later(node);
}

void Faults::restart_later(NodeIndex node) {
  world_.at(world_.now() + a_while(20), [this, node] {
    if (over_ || world_.running(node)) return;
    world_.start(node);
  });
}

void Faults::pause() {
  const NodeIndex node = some_node();
  if (!world_.running(node) || world_.paused(node)) return;
  judge_.disturbed(true);
  world_.pause(node);
  world_.at(world_.now() + a_while(12), [this, node] {
    if (world_.paused(node)) end_pause(node);
  });
}

void Faults::end_pause(NodeIndex node) {
  world_.resume(node);
  judge_.disturbed(false);
}

void Faults::partition() {
  if (world_.size() < 2) return;
  std::vector<bool> side(world_.size());
  for (std::size_t i = 0; i < side.size(); ++i) side[i] = random_.chance(0.5);
  for (NodeIndex a = 0; a < world_.size(); ++a)
    for (NodeIndex b = 0; b < world_.size(); ++b) {
      if (side[a] == side[b]) continue;
      world_.block(a, b);
      // Some connections are not only silent: a middlebox resets them.
      if (random_.chance(0.1)) world_.break_connections(a, b);
    }
  heal_later();
}

void Faults::one_way() {
  if (world_.size() < 2) return;
  const NodeIndex from = some_node();
  const NodeIndex to = some_node();
  if (from == to) return;
  world_.block(from, to);
  heal_later();
}

// A firewall resets what one of them, or each, has to say to the other.
void Faults::refuse_pair() {
  if (world_.size() < 2) return;
  const NodeIndex from = some_node();
  const NodeIndex to = some_node();
  if (from == to) return;
  world_.refuse(from, to);
  if (random_.chance(0.7)) world_.refuse(to, from);
  heal_later();
}

// Some pairs have no path any more; most nodes still reach each other by way of others.
void Faults::wall() {
  if (world_.size() < 3) return;
  for (NodeIndex a = 0; a < world_.size(); ++a)
    for (NodeIndex b = 0; b < a; ++b) {
      if (!random_.chance(0.25)) continue;
      if (random_.chance(0.5)) world_.refuse(a, b), world_.refuse(b, a);
      else world_.block(a, b), world_.block(b, a);
    }
  heal_later();
}

void Faults::heal_later() {
  judge_.disturbed(true);
  ++partitions_;
  const std::uint32_t heals = healed_;
  world_.at(world_.now() + a_while(25), [this, heals] {
    if (heals == healed_) end_partition();
  });
}

void Faults::end_partition() {
  ++healed_;
  world_.heal();
  for (; partitions_ > 0; --partitions_) judge_.disturbed(false);
}

void Faults::break_connections() {
  if (world_.size() < 2) return;
  const NodeIndex a = some_node();
  const NodeIndex b = some_node();
  if (a != b) world_.break_connections(a, b);
}

// On a link that slow, queues delay pings for longer than a silent node is tolerated: a verdict may be wrong.
void Faults::slow_down() {
  if (!slowed_) judge_.disturbed(true);
  slowed_ = true;
  world_.set_rate(some_node(), plan_.link.up * std::pow(10.0, -1.5 * random_.uniform()));
}

void Faults::end_all() {
  over_ = true;
  if (slowed_) judge_.disturbed(false);
  slowed_ = false;
  if (partitions_ > 0) end_partition();
  for (NodeIndex node = 0; node < world_.size(); ++node) {
    if (world_.paused(node)) end_pause(node);
    world_.set_rate(node, plan_.link.up);
    if (!world_.running(node) && random_.chance(0.5)) world_.start(node);
  }
}

}  // namespace hoplite::sim
