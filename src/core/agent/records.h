// What the agent remembers about an object, a client and a request.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/agent/clients.h"
#include "core/agent/timers.h"
#include "core/objects/object_table.h"
#include "hoplite/priority.h"
#include "protocol/bulk.h"

namespace hoplite {

struct GetRequest {
  RequestKey key;
  bool wait_if_lost = false;
  bool follow = false;
  CopyKey followed = 0;  // the growing copy that it was shown
  Priority priority = Priority::kNormal;
};

struct PutState {
  CopyKey copy = 0;
  std::uint64_t first_request = 0;  // of the first PutRequest
  std::uint64_t request = 0;        // of the last one
  std::set<NodeRef> asked;          // homes that it was sent to: they are told if it is given up
  bool sealed_sent = false;         // that request said "sealed"
  bool claimed = false;             // the home has accepted the id
  bool sealing = false;             // the client has nothing to add
  ClientKey client = 0;
  std::uint64_t client_request = 0;  // to be answered with PutDone; 0 = none yet
  std::optional<Timers::Handle> retry;
};

enum class Fetch : std::uint8_t {
  kIdle,       // nothing under way
  kAsking,     // the home was asked, or will be when the timer says so
  kNeedsRoom,  // in the queue for room; the home is asked again after that
  kPulling,    // bytes come, or the pull is being set up
};

// Everything this node knows and wants about one id.
struct Record {
  ObjectId id;
  NodeRef home;
  CopyKey copy = 0;  // the current copy, 0 = none

  // reading
  std::vector<GetRequest> gets;
  Fetch fetch = Fetch::kIdle;
  std::uint64_t want_request = 0;
  bool told_waiting = false;       // the home says that nobody has put it
  bool told_reducing = false;      // the home says that it coordinates a reduce into it
  bool told_lost = false;          // the home says that it is lost; those who wait nevertheless wait on
  bool room_granted = false;       // its turn in the queue for room has come
  std::optional<Time> room_since;  // when that was, the last time
  std::vector<NodeId> avoid;
  std::optional<Timers::Handle> want_timer;

  // being told
  std::set<RequestKey> waits;
  std::set<ObjectId> watchers;       // targets of reduces coordinated here that have it as a source
  std::uint64_t watch_inline = 0;    // up to this size the bytes are welcome here
  bool notify_if_put_again = false;  // it is lost: the home has said so
  std::uint64_t notify_request = 0;
  std::optional<Timers::Handle> notify_timer;

  // writing
  std::optional<PutState> put;

  bool unused() const {
    return copy == 0 && gets.empty() && waits.empty() && watchers.empty() && !put && fetch == Fetch::kIdle;
  }
  bool wants_notice() const { return !waits.empty() || !watchers.empty(); }
};

struct WaitState {
  std::set<ObjectId> missing;
  std::vector<ObjectId> ready;
  std::size_t count = 0;
};

}  // namespace hoplite
