// Who sends a small object to whom: whole, in one message, as soon as the sender has it. Kept by the object's home.
//
// A sender's link is busy for bytes / rate with each receiver, so receivers that ask together are forecast by when a sender
// is free: the home, or one of those that were served before. A relay has to be told, which takes a hop:
//
//     begin(h) = max(now, free(h)) for the home, max(now + hop, free(h)) for a relay
//
// The one that can begin first sends. Tiny objects thus come from the home itself, because it is free again before a relay
// has heard of it; of larger ones every receiver becomes a sender, and their number doubles with each transfer.
//
// Nobody reports: what has been sent is forgotten when its time is over. A forecast that was wrong costs time, nothing else.
#pragma once

#include <cstdint>
#include <vector>

#include "base/limits.h"
#include "base/link_cost.h"
#include "base/time.h"

namespace hoplite {

class RelayPlan {
 public:
  struct Transfer {
    NodeId home;
    NodeId receiver;
    std::uint64_t bytes = 0;
  };

  // The home, or a relay that was given the object before. The receiver is one from now on.
  NodeId choose(Time now, const Transfer& transfer, const LinkCosts& links, const Limits& limits);
  // It does not have the object (any more).
  void remove(NodeId node);

 private:
  struct Relay {
    NodeId node;
    Time free;  // it has the object, and its link is not busy with it
  };

  Time home_free_;
  std::vector<Relay> relays_;  // of this crowd; at most Limits::max_relays
};

}  // namespace hoplite
