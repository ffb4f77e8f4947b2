// The agent's whole contact with the world: events go in, effects come out.
//
// `node` turns sockets, timers and clients into these events and carries out the effects; `sim` does the same with a
// simulated network. Effects are carried out in order, before the next event.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/address.h"
#include "base/extent.h"
#include "base/node_id.h"
#include "protocol/client_messages.h"
#include "protocol/data_plane.h"
#include "protocol/messages.h"
#include "protocol/transfer.h"

namespace hoplite {

namespace event {

struct Tick {};  // time has passed: `Agent::next_wakeup` is due

// A control message. Its payload can be stored or passed on during this step only.
struct Received {
  NodeRef from;
  Message message;
  std::uint64_t payload_bytes = 0;
};

// A control connection to or from the peer was lost or could not be made; what was queued for it is gone. One event for
// each loss; the next Send dials again.
struct PeerLost {
  NodeRef peer;
  Loss why = Loss::kClosed;
};

// --- clients

struct ClientAsked {
  ClientKey client = 0;
  std::uint64_t request = 0;
  ipc::Request message;  // all but Hello, GetStatus, GetObjects and GetNodes
  std::uint64_t payload_bytes = 0;
};
// Its connection has ended. It may still give back views, with Release, and hears nothing more.
struct ClientGone {
  ClientKey client = 0;
};
// The last event of a client, after ClientGone: no process can see what it viewed or wrote any more.
struct LeaseEnded {
  ClientKey client = 0;
};

// The first place to join through is this node itself: if nobody answers for a while, it is the cluster.
struct MayBeFirst {};

// The daemon is told to stop: finish what runs, then tell the others (Agent::has_left).
struct Leave {};

}  // namespace event

// With those of the data plane (protocol/data_plane.h).
using Event = std::variant<event::Tick, event::Received, event::PeerLost, event::PullAsked, event::PullAccepted,
                           event::PullSilent, event::PullEnded, event::ServePrioritized, event::ServeEnded,
                           event::CopyClosed, event::Combined, event::CopyGrown, event::ClientAsked, event::ClientGone,
                           event::LeaseEnded, event::MayBeFirst, event::Leave>;

namespace effect {

enum class Payload : std::uint8_t {
  kNone,
  kExtent,    // the bytes of `extent`
  kReceived,  // of the message that is being handled
};

struct Send {  // dials if there is no connection. If that fails: PeerLost.
  NodeRef to;
  Address address;
  Message message;
  Payload payload = Payload::kNone;
  Extent extent;
};
// To whoever listens there: how a node joins. No event if it fails.
struct SendToAddress {
  Address address;
  Message message;
};
// Close all connections to and from this node (all its incarnations). Pulls and serves on them end as usual; no PeerLost.
struct Disconnect {
  NodeId node;
};
struct StorePayload {  // the payload of the event that is being handled, into the arena
  Extent extent;
};

// --- clients

struct Reply {
  ClientKey client = 0;
  std::uint64_t request = 0;
  ipc::Reply message;
};

// Something an operator should know (a conflict, a wrong verdict). One line.
struct Log {
  enum class Kind : std::uint8_t { kTrouble, kFact };
  std::string text;
  Kind kind = Kind::kTrouble;
};

// For those who look closely (--log-level debug). Facts, not text: they cost nothing when nobody looks.
struct Happened {
  enum class What : std::uint8_t { kEvicted, kReduceStarted, kReduceDone, kReduceFailed };
  What what = What::kEvicted;
  ObjectId id;
  std::uint64_t bytes = 0;  // of the copy, or of the result
  std::string why;          // of a failure
};

}  // namespace effect

// With the commands to the data plane (protocol/data_plane.h).
using Effect = std::variant<effect::Send, effect::SendToAddress, effect::Disconnect, effect::StorePayload,
                            effect::OpenCopy, effect::GrowCopy, effect::SealCopy, effect::Combine, effect::FollowCopy,
                            effect::CloseCopy, effect::StartPull, effect::CancelPull, effect::PrioritizePull,
                            effect::AcceptPull, effect::RefusePull, effect::Reply, effect::Log, effect::Happened>;
using Effects = std::vector<Effect>;

// What one client holds, for status displays.
struct ClientHolding {
  ClientKey client = 0;
  std::uint64_t bytes = 0;  // of distinct copies that it views or writes
  std::uint64_t views = 0;
};

// What the agent may ask of the data plane and the transport at any time: how far things are.
class Progress {
 public:
  virtual ~Progress() = default;
  // Of an opened copy. Nothing for one that is not open.
  virtual ValidBytes valid(CopyKey copy, std::uint32_t slice) const = 0;
  // Bytes of messages that were given out for this node and have not left.
  virtual std::uint64_t backlog(NodeRef peer) const = 0;
};

}  // namespace hoplite
