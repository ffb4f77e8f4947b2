// The agent's whole contact with the world: events go in, effects come out.
//
// `node` turns sockets, timers and clients into these events and carries out the effects; `sim` does the same with a
// simulated network. Effects are carried out in order, before the next event.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "base/address.h"
#include "base/extent.h"
#include "base/node_id.h"
#include "protocol/bulk.h"
#include "protocol/client_messages.h"
#include "protocol/combine.h"
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

// --- the data plane

struct PullAsked {  // a peer wants bytes of a copy
  NodeRef peer;
  ChannelId channel = 0;
  PullRequest pull;
};
struct PullAccepted {
  TransferId transfer = 0;
};
struct PullSilent {  // no frame for as long as it was to be patient. The pull goes on until it is cancelled.
  TransferId transfer = 0;
};
// The pull is over, and no thread touches the copy for it any more.
struct PullEnded {
  TransferId transfer = 0;
  PullEnd how = PullEnd::kComplete;
  std::uint64_t watermark = 0;  // absolute offset up to which the slice is valid
};
struct ServeEnded {  // all sent, stopped, cancelled by the child, or the connection is gone
  ServeId serve = 0;
};
struct CopyClosed {  // answers effect::CloseCopy: no thread touches the extent any more
  CopyKey copy = 0;
};
struct Combined {  // effect::Combine has come to its end
  CopyKey out = 0;
  std::uint32_t slice = 0;
};
struct CopyGrown {  // only for copies with effect::FollowCopy; may skip steps
  CopyKey copy = 0;
};

// --- clients

struct ClientAsked {
  ClientKey client = 0;
  std::uint64_t request = 0;
  client::Request message;  // all but Hello, GetStatus, GetObjects and GetNodes
  std::uint64_t payload_bytes = 0;
};
struct ClientGone {
  ClientKey client = 0;
};

// The daemon is told to stop: finish what runs, then tell the others (Agent::has_left).
struct Leave {};

}  // namespace event

using Event = std::variant<event::Tick, event::Received, event::PeerLost, event::PullAsked, event::PullAccepted,
                           event::PullSilent, event::PullEnded, event::ServeEnded, event::CopyClosed, event::Combined,
                           event::CopyGrown, event::ClientAsked, event::ClientGone, event::Leave>;

namespace effect {

enum class Payload : std::uint8_t {
  kNone,
  kExtent,  // the bytes of `extent`
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

// --- the data plane. A copy is opened before it is pulled into or served from.

struct OpenCopy {
  CopyKey copy = 0;
  Extent extent;
  std::uint32_t slices = 1;
  bool complete = false;
  // Of an object of this size the copy has only this slice, and the extent is just that; kAllSlices: all of it.
  std::uint64_t size = 0;
  std::uint32_t only = kAllSlices;
};
struct GrowCopy {  // written by a client: the first `bytes` are valid (one slice)
  CopyKey copy = 0;
  std::uint64_t bytes = 0;
};
struct SealCopy {  // all bytes are there and committed: its serves may end with kEnd
  CopyKey copy = 0;
  std::uint32_t slice = kAllSlices;  // or only this one's
};
// Fills a slice of a copy with the combination of others, as far as all of them are valid; event::Combined at the end. It
// uses the copies until then, or until `out` is closed; the inputs stay open that long.
using Combine = CombineOrder;
struct FollowCopy {  // CopyGrown events from now on
  CopyKey copy = 0;
};
struct CloseCopy {  // abort its serves and pulls; CopyClosed when done (ServeEnded and PullEnded come before)
  CopyKey copy = 0;
};
struct StartPull {
  NodeRef parent;
  Address address;
  CopyKey copy = 0;
  PullRequest pull;
  Duration patience;  // so much silence is reported
};
struct CancelPull {
  TransferId transfer = 0;
};
struct AcceptPull {
  ChannelId channel = 0;
  ServeId serve = 0;
  CopyKey copy = 0;
  PullRequest pull;
};
struct RefusePull {
  ChannelId channel = 0;
  TransferId transfer = 0;
  Code code = Code::kUnavailable;
};
struct StopServe {
  ServeId serve = 0;
  Code code = Code::kUnavailable;
};

// --- clients

struct Reply {
  ClientKey client = 0;
  std::uint64_t request = 0;
  client::Reply message;
};

// Something an operator should know (a conflict, a wrong verdict). One line.
struct Log {
  std::string text;
};

}  // namespace effect

using Effect = std::variant<effect::Send, effect::SendToAddress, effect::Disconnect, effect::StorePayload,
                            effect::OpenCopy, effect::GrowCopy, effect::SealCopy, effect::Combine, effect::FollowCopy,
                            effect::CloseCopy, effect::StartPull, effect::CancelPull, effect::AcceptPull,
                            effect::RefusePull, effect::StopServe, effect::Reply, effect::Log>;
using Effects = std::vector<Effect>;

// What the agent may ask of the data plane at any time: how far an opened copy is.
class Progress {
 public:
  virtual ~Progress() = default;
  // Absolute offset up to which slice `slice` is valid; 0 for a copy that is not open.
  virtual std::uint64_t watermark(CopyKey copy, std::uint32_t slice) const = 0;
};

}  // namespace hoplite
