// Objects that this node fetches for others, by order of their home: they have no path to a node that has them, and may have
// one to us. To everybody else it is an ordinary receiver, and its copy an ordinary copy.
//
// An order is soft state: the home repeats it as long as somebody asks, and without that it runs out.
#pragma once

#include <map>
#include <optional>

#include "base/limits.h"
#include "core/agent/outbox.h"
#include "core/agent/records.h"
#include "core/agent/timers.h"

namespace hoplite {

class Ferries {
 public:
  Ferries(const Limits& limits, Timers& timers, Records& records, const Outbox& out)
      : limits_(limits), timers_(timers), records_(records), out_(out) {}

  bool contains(const ObjectId& id) const { return until_.contains(id); }
  bool is_full() const { return until_.size() >= limits_.max_ferries; }
  // Its record is there. Begins, or goes on for a while.
  void order(const ObjectId& id);
  // It is here, or never will be.
  void end(const ObjectId& id);
  void on_timer();

  void check_invariants() const;

 private:
  void set_timer();

  const Limits& limits_;
  Timers& timers_;
  Records& records_;
  const Outbox& out_;
  std::map<ObjectId, Time> until_;
  std::optional<Timers::Handle> timer_;
};

}  // namespace hoplite
