// Names shared by those who move bytes and those who decide about it.
#pragma once

#include <cstdint>

#include "base/node_id.h"

namespace hoplite {

// One copy on one daemon, for as long as the daemon lives. Never used twice.
using CopyKey = std::uint64_t;
using ClientKey = std::uint64_t;   // one attached client process, never used twice
using TransferId = std::uint64_t;  // one pull, chosen by the puller, never used twice in its life
using ServeId = std::uint64_t;     // one accepted pull at the parent, never used twice in its life
using ChannelId = std::uint64_t;   // one accepted bulk connection, never used twice

// Names an assignment of a parent: one home numbers them in the order in which it makes them.
struct Ticket {
  NodeRef home;  // nil: it was nobody's assignment
  std::uint64_t number = 0;
  template <typename A> void fields(A& a) { a(home, number); }
  // Of one home, and later: what it assigned first cannot depend on what it assigned then.
  bool follows(const Ticket& earlier) const {
    return !home.id.is_nil() && home == earlier.home && number > earlier.number;
  }
};

// Why there is no control connection.
enum class Loss : std::uint8_t {
  kClosed,    // an established connection ended
  kRefused,   // nobody listens there
  kTimedOut,  // no answer to the dial or the handshake
  kReplaced,  // somebody else answered at that address, or the same node in another incarnation
  kRejected,  // token or protocol version
};

// How a pull ended.
enum class PullEnd : std::uint8_t {
  kComplete,        // every byte arrived and the version is committed
  kRefused,         // the parent did not accept it
  kAborted,         // the parent accepted it and gave it up
  kConnectionLost,  // or could not be made
  kCancelled,       // by us
};

}  // namespace hoplite
