// What must not be forgotten when nodes go: members that are away may bring back what was deleted meanwhile
// (core/directory/absences.h), and the death of a home must not hide that an object existed (core/agent/deputies.h).
#include <algorithm>

#include "core/agent/impl.h"

namespace hoplite {
namespace {

// So many of a newcomer's neighbours tell it who is away.
constexpr std::size_t kTellers = 3;

}  // namespace

Side Agent::Impl::our_side() const {
  return {static_cast<std::uint32_t>(records_.alive().size()), records_.alive().front().id};
}

void Agent::Impl::note_absences(const std::vector<Membership::Change>& changes) {
  const std::uint64_t generation = versions_.generation_at(out_.now());
  for (const Membership::Change& change : changes) {
    if (change.life == Life::kDead) {
      absences_.left(out_.now(), generation, change.node, change.address);
      continue;
    }
    absences_.joined(out_.now(), change.node, change.address);
    if (const Absences::Gone* gone = absences_.forgotten(change.node.id))
      out_.send(change.node, Forgotten{gone->left, gone->side.members, gone->side.lowest});
  }
  tombstones_.set_horizon(absences_.horizon());
}

// By those who come next to the newcomer in the order of ids.
void Agent::Impl::tell_departures(const std::vector<Membership::Change>& changes) {
  const std::vector<NodeRef>& alive = records_.alive();
  const std::vector<Departure> all = absences_.all();
  if (all.empty()) return;
  const auto place = [&](NodeRef node) {
    return static_cast<std::size_t>(std::ranges::lower_bound(alive, node) - alive.begin());
  };
  for (const Membership::Change& change : changes) {
    if (change.life != Life::kAlive || !membership_.is_alive(change.node)) continue;
    if ((place(self()) + alive.size() - place(change.node)) % alive.size() > kTellers) continue;
    Departures some;
    for (const Departure& departure : all) {
      some.departures.push_back(departure);
      if (some.departures.size() == limits_.facts_per_message) out_.send(change.node, std::exchange(some, {}));
    }
    if (!some.departures.empty()) out_.send(change.node, std::move(some));
  }
}

void Agent::Impl::on(NodeRef, const Departures& m) {
  const std::uint64_t now = versions_.generation_at(out_.now());
  for (const Departure& departure : m.departures) {
    if (departure.node.is_nil() || membership_.is_alive(membership_.latest(departure.node))) continue;
    absences_.learn(out_.now(), {departure.node, std::min(departure.left, now), departure.address});
  }
  tombstones_.set_horizon(absences_.horizon());
}

void Agent::Impl::expire_absences() {
  absences_.expire(out_.now(), our_side());
  tombstones_.set_horizon(absences_.horizon());
  while (tombstones_.kept() > limits_.max_needed_tombstones) {
    const auto node = absences_.forget_oldest(our_side());
    if (!node) return;
    tombstones_.set_horizon(absences_.horizon());
    out_.emit(effect::Log{"node " + node->to_string() + " has been away while more than " +
                          std::to_string(limits_.max_needed_tombstones) +
                          " objects were deleted; should it come back, its store is emptied"});
  }
}

// What we had when we left may have been deleted since, and nobody remembers.
void Agent::Impl::on(NodeRef from, const Forgotten& m) {
  const Absences::Gone* ours = absences_.forgotten(from.id);
  if (ours != nullptr && ours->side.stays_before({m.members, m.lowest})) return;
  std::vector<std::pair<ObjectId, Version>> old;
  table_.visit([&](const Copy& copy) {
    if (copy.is_current() && copy.is_complete() && generation(copy.version) <= m.left)
      old.emplace_back(copy.id, copy.version);
    return true;
  });
  for (const auto& [id, version] : old) {
    Record& record = records_.at(id);
    announcer_.withdraw(record.home, id, version);
    retire(record);
  }
  if (!old.empty())
    out_.emit(
        effect::Log{"this node was away for so long that the others do not remember what was deleted meanwhile: " +
                    std::to_string(old.size()) + " objects from before are dropped"});
}

// --- deputies ------------------------------------------------------------------------------------------------------------

// Those that have become deputies are told what they should know.
void Agent::Impl::choose_deputies(const std::vector<NodeRef>& before) {
  directory_.each_committed([&](const ObjectId& id, Version version) {
    const NodeRef deputy = deputy_of(id, self(), records_.alive());
    if (!deputy.id.is_nil() && deputy != deputy_of(id, self(), before)) deputies_.note({id, version, false});
  });
}

void Agent::Impl::tell_deputy_anew(NodeRef deputy) {
  deputies_.begin_anew(deputy.id);
  directory_.each_committed([&](const ObjectId& id, Version version) {
    if (deputy_of(id, self(), records_.alive()) == deputy) deputies_.note({id, version, false});
  });
}

// Others are told from now on what we were told; of what we keep, deletes would not reach us.
void Agent::Impl::give_up_deputyships() {
  known_.forget_lasting([&](const ObjectId& id, const VersionMemory::Item& item) {
    const NodeRef home = records_.home(id);
    return home.id == item.home && home != self() && deputy_of(id, home, records_.alive()) != self();
  });
}

void Agent::Impl::on(NodeRef from, const Hearsay& m) {
  if (from == self()) return;
  if (m.anew)
    known_.forget_lasting([&](const ObjectId&, const VersionMemory::Item& item) { return item.home == from.id; });
  for (const Heard& heard : m.heard) {
    if (heard.id.is_nil() || records_.home(heard.id) != from) continue;
    if (!heard.deleted) {
      if (heard.version != 0 && !tombstones_.covers(heard.id, heard.version))
        known_.add(heard.id, heard.version, Time::never(), from.id);
      continue;
    }
    if (heard.version != 0) known_.forget(heard.id, heard.version);
    if (heard.version != 0 || !heard.id.is_named())
      tombstones_.bury(heard.id, heard.version, out_.now() + limits_.tombstone_life, from.id);
  }
}

}  // namespace hoplite
