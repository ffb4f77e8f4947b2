// What this node, as a home, tells its deputies (core/directory/homes.h): which versions were committed, and which deleted. In
// batches; what was put and deleted within one batch is not told of.
#pragma once

#include <map>
#include <optional>
#include <utility>

#include "base/limits.h"
#include "core/agent/outbox.h"
#include "core/agent/records.h"
#include "core/agent/timers.h"

namespace hoplite {

class Deputies {
 public:
  Deputies(const Limits& limits, Timers& timers, const Records& records, Outbox& out)
      : limits_(limits), timers_(timers), records_(records), out_(out) {}

  void note(const Heard& heard);
  void on_timer() { timer_.reset(), tell(); }
  // The messages to this deputy may have been lost: what is noted from now on, and told next, is all that there is.
  void begin_anew(NodeId deputy) { anew_.insert(deputy); }
  // Nobody takes us for the home that noted it.
  void forget_all();

 private:
  void tell();

  const Limits& limits_;
  Timers& timers_;
  const Records& records_;
  Outbox& out_;
  std::map<ObjectId, Heard> noted_;
  std::set<NodeId> anew_;
  std::optional<Timers::Handle> timer_;
};

}  // namespace hoplite
