// What a client process and its daemon say to each other on the unix socket.
//
// Frame: 32-bit length of what follows, 64-bit request number chosen by the client, one byte of type, the fields, and for
// Put the bytes. The daemon speaks first (Greeting, request 0); the client answers with Hello; the daemon ends the
// handshake with Welcome, which carries the arena's read-only descriptor and the client's lease, or with Failed. Every later
// request gets its replies under its own number, in any order; all but follow and the one-way messages get exactly one.
//
// The lease is one end of a pair of sockets (SOCK_SEQPACKET). What the client holds - views, and the memory of objects that
// it writes - stays its own until the connection has ended and every copy of that descriptor is closed, in forked children
// too. When the connection has ended, views are given back through the lease: each packet is a list of CopyKeys.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "hoplite/priority.h"
#include "protocol/messages.h"
#include "protocol/transfer.h"

namespace hoplite {

constexpr std::uint16_t kClientProtocolVersion = 4;
constexpr std::int64_t kNoTimeout = -1;

namespace ipc {

// --- requests

struct Hello {
  std::uint16_t version = kClientProtocolVersion;
  std::string proof;  // HMAC over the greeting's nonce, if the daemon asked for one
  template <typename A> void fields(A& a) { a(version, proof); }
};
// Payload: the bytes, at most Welcome::inline_bytes. Reply: PutDone, or UseCreate when there is no room now.
struct Put {
  ObjectId id;  // nil: the daemon mints one
  std::string meta;
  std::int64_t timeout_ns = kNoTimeout;
  Priority priority = Priority::kNormal;
  template <typename A> void fields(A& a) { a(id, meta, timeout_ns, priority); }
};
struct Create {  // reply: Created once there is room
  ObjectId id;
  std::uint64_t size = 0;
  std::string meta;
  std::int64_t timeout_ns = kNoTimeout;
  Priority priority = Priority::kNormal;
  bool wants_descriptor = true;  // the client does not have the arena's writable descriptor, or lost it on its way
  template <typename A> void fields(A& a) { a(id, size, meta, timeout_ns, priority, wants_descriptor); }
};
struct Advance {  // one way: `bytes` from the front are written
  CopyKey copy = 0;
  std::uint64_t bytes = 0;
  template <typename A> void fields(A& a) { a(copy, bytes); }
};
struct Seal {  // reply: PutDone, after the home has accepted the id
  CopyKey copy = 0;
  std::int64_t timeout_ns = kNoTimeout;
  template <typename A> void fields(A& a) { a(copy, timeout_ns); }
};
struct Abort {  // one way: give up a created object
  CopyKey copy = 0;
  template <typename A> void fields(A& a) { a(copy); }
};
struct Get {  // reply: View. With follow: Opened, Grown ..., (Reset, Opened ...), and at last View
  ObjectId id;
  std::int64_t timeout_ns = kNoTimeout;
  bool wait_if_lost = false;
  bool follow = false;
  Priority priority = Priority::kNormal;
  template <typename A> void fields(A& a) { a(id, timeout_ns, wait_if_lost, follow, priority); }
};
struct Prioritize {  // this client's gets of `id` that are under way have this priority from now on. Reply: Prioritized
  ObjectId id;
  Priority priority = Priority::kNormal;
  template <typename A> void fields(A& a) { a(id, priority); }
};
struct Cancel {  // one way: request `target` ends with Failed{kCancelled} unless it has ended already
  std::uint64_t target = 0;
  template <typename A> void fields(A& a) { a(target); }
};
struct Release {  // one way: one View of each copy is given back
  std::vector<CopyKey> copies;
  template <typename A> void fields(A& a) { a(copies); }
};
// Reply: WaitDone when `count` of the ids are ready (committed anywhere), when so many are deleted or lost that fewer can
// become ready, or at the timeout.
struct Wait {
  std::vector<ObjectId> ids;
  std::uint32_t count = 1;
  std::int64_t timeout_ns = kNoTimeout;
  template <typename A> void fields(A& a) { a(ids, count, timeout_ns); }
};
struct Remove {  // reply: Removed
  ObjectId id;
  std::int64_t timeout_ns = kNoTimeout;
  template <typename A> void fields(A& a) { a(id, timeout_ns); }
};
struct GetStatus {
  template <typename A> void fields(A&) {}
};
struct GetObjects {
  template <typename A> void fields(A&) {}
};
struct GetNodes {
  template <typename A> void fields(A&) {}
};

struct Reduce {     // reply: Reducing, as soon as the target's home has taken it
  ReduceSpec spec;  // a nil target: the daemon mints one
  template <typename A> void fields(A& a) { a(spec); }
};
struct AddSources {  // to a reduce for which fewer than its count have arrived. Reply: Reducing
  ObjectId target;
  std::vector<ObjectId> sources;
  std::vector<std::string> names = {};  // of sources
  template <typename A> void fields(A& a) { a(target, sources, names); }
};
struct GetReduce {  // reply: Reported
  ObjectId target;
  template <typename A> void fields(A& a) { a(target); }
};

using Request = std::variant<Hello, Put, Create, Advance, Seal, Abort, Get, Cancel, Release, Wait, Remove, GetStatus,
                             GetObjects, GetNodes, Reduce, AddSources, GetReduce, Prioritize>;

// --- replies

struct Greeting {
  std::uint16_t version = kClientProtocolVersion;
  bool proof_wanted = false;
  std::string nonce;
  template <typename A> void fields(A& a) { a(version, proof_wanted, nonce); }
};
struct Welcome {  // with the read-only descriptor of the arena and the client's end of its lease, in this order
  NodeId node;
  std::uint32_t client = 0;  // ids (node, client << 32 | n) are this client's to mint, n from 1; client < 2^31
  std::uint64_t arena_bytes = 0;
  std::uint64_t inline_bytes = 0;
  std::string listen;
  template <typename A> void fields(A& a) { a(node, client, arena_bytes, inline_bytes, listen); }
};
struct Failed {
  Code code = Code::kInternal;
  std::string message;
  template <typename A> void fields(A& a) { a(code, message); }
};
struct PutDone {
  ObjectId id;
  template <typename A> void fields(A& a) { a(id); }
};
struct UseCreate {
  template <typename A> void fields(A&) {}
};
struct Created {  // with the writable descriptor of the arena if a Create since the last Created wants it
  ObjectId id;
  CopyKey copy = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  template <typename A> void fields(A& a) { a(id, copy, offset, size); }
};
struct View {  // held until Release
  CopyKey copy = 0;
  Version version = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::string meta;
  template <typename A> void fields(A& a) { a(copy, version, offset, size, meta); }
};
struct Opened {  // a growing copy to follow; held until Release, as a View is
  CopyKey copy = 0;
  Version version = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::string meta;
  std::uint64_t bytes = 0;
  template <typename A> void fields(A& a) { a(copy, version, offset, size, meta, bytes); }
};
struct Grown {
  std::uint64_t bytes = 0;
  template <typename A> void fields(A& a) { a(bytes); }
};
struct Reset {  // what was followed will never be complete; another Opened may come
  template <typename A> void fields(A&) {}
};
struct Gone {  // it will not be ready unless it is put again: kDeleted or kLost
  ObjectId id;
  Code code = Code::kDeleted;
  template <typename A> void fields(A& a) { a(id, code); }
};
struct WaitDone {
  std::vector<ObjectId> ready;
  std::vector<Gone> gone;
  template <typename A> void fields(A& a) { a(ready, gone); }
};
struct Removed {
  bool existed = false;
  template <typename A> void fields(A& a) { a(existed); }
};
struct Holder {  // a process that holds views, or memory that it writes
  std::uint64_t pid = 0;
  std::uint64_t bytes = 0;  // of distinct copies
  std::uint64_t views = 0;
  bool attached = false;  // it has a connection; without one, it keeps what it had when that ended
  template <typename A> void fields(A& a) { a(pid, bytes, views, attached); }
};
struct Status {
  NodeRef node;
  std::string listen;
  std::uint64_t uptime_ms = 0;
  std::uint64_t pid = 0;
  std::string version;  // of the software
  std::uint64_t capacity = 0;
  std::uint64_t used = 0;     // reserved extents
  std::uint64_t pinned = 0;   // of them: primary or in use
  std::uint64_t objects = 0;  // complete copies here
  std::uint64_t growing = 0;
  std::uint64_t clients = 0;
  std::uint64_t members = 0;    // live nodes, this one included
  std::uint64_t directory = 0;  // entries kept as home
  std::uint64_t waiting = 0;    // requests that wait
  std::uint64_t bytes_in = 0;   // bulk bytes since the start
  std::uint64_t bytes_out = 0;
  std::uint64_t max_rate = 0;   // egress limit, bytes per second; 0 = none
  std::vector<Holder> holders;  // those of the most bytes, in that order
  bool joining = false;         // it was told to join a cluster, and has not
  std::string join_problems;    // why not, as far as that is known
  template <typename A> void fields(A& a) {
    a(node, listen, uptime_ms, pid, version, capacity, used, pinned, objects, growing, clients, members, directory,
      waiting, bytes_in, bytes_out, max_rate, holders, joining, join_problems);
  }
};
struct ObjectInfo {
  ObjectId id;
  std::uint64_t size = 0;
  std::uint64_t bytes = 0;  // valid so far
  CopyState state = CopyState::kKnows;
  bool primary = false;
  std::uint32_t views = 0;
  std::uint32_t children = 0;  // peers that pull it from here now
  NodeId parent;               // whom it is pulled from now, or nil
  NodeId home;
  std::string meta;
  template <typename A> void fields(A& a) { a(id, size, bytes, state, primary, views, children, parent, home, meta); }
};
struct Objects {
  std::vector<ObjectInfo> objects;
  bool truncated = false;  // there are more than fit in one message
  template <typename A> void fields(A& a) { a(objects, truncated); }
};
struct NodeInfo {
  NodeRef ref;
  Address address;
  Life life = Life::kAlive;
  bool self = false;
  std::uint64_t rate = 0;    // measured egress to us, bytes per second, 0 = not measured
  std::uint64_t rtt_us = 0;  // of the last ping, 0 = not measured
  template <typename A> void fields(A& a) { a(ref, address, life, self, rate, rtt_us); }
};
struct Nodes {
  std::vector<NodeInfo> nodes;
  bool joining = false;  // as in Status
  template <typename A> void fields(A& a) { a(nodes, joining); }
};

struct Reducing {
  ObjectId target;
  template <typename A> void fields(A& a) { a(target); }
};
struct Reported {
  ReduceReport report;
  template <typename A> void fields(A& a) { a(report); }
};
struct Prioritized {
  bool under_way = false;  // there was something to prioritize
  template <typename A> void fields(A& a) { a(under_way); }
};

using Reply = std::variant<Greeting, Welcome, Failed, PutDone, UseCreate, Created, View, Opened, Grown, Reset, WaitDone,
                           Removed, Status, Objects, Nodes, Reducing, Reported, Prioritized>;

struct ClientFrameHeader {
  static constexpr std::size_t kSize = 12;
  std::uint32_t length = 0;  // of what follows the header
  std::uint64_t request = 0;
};

// Appends a whole frame. `payload_bytes` is what the caller writes right behind it.
void encode_request(std::uint64_t request, const Request& message, std::size_t payload_bytes, std::string& out);
void encode_reply(std::uint64_t request, const Reply& message, std::string& out);

// Splits one frame off the front of `in`; nullopt-like: `complete` is false if more bytes are needed.
struct Frame {
  bool complete = false;
  std::uint64_t request = 0;
  ByteView body;
};
// kInvalidArgument if the length is over `max_bytes`.
Result<Frame> next_frame(ByteView& in, std::uint64_t max_bytes);

struct DecodedRequest {
  Request message;
  ByteView payload;
};
Result<DecodedRequest> decode_request(ByteView body);  // only Put has a payload
Result<Reply> decode_reply(ByteView body);

}  // namespace ipc
}  // namespace hoplite
