// Moving messages and bytes between nodes.
//
// Control messages: `send` to a peer, in order, on a connection that we dial (and dial again when it is gone); arriving
// ones come from connections that the peer dialled. Bulk bytes are the data plane's business (src/dataplane), which the
// transport gives its links: commands go to `data_plane()`, events come to the handler.
//
// Every function is called on the loop thread, and every handler function is called on it, never from inside a call of
// ours: from `Loop::run_once`. Failure is an ordinary event with a defined next state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/address.h"
#include "base/limits.h"
#include "base/node_id.h"
#include "dataplane/data_plane.h"
#include "protocol/messages.h"
#include "transport/loop.h"

namespace hoplite {

class TransportHandler {
 public:
  virtual ~TransportHandler() = default;
  // `payload` is valid during the call.
  virtual void on_message(NodeRef from, Message message, ByteView payload) = 0;
  virtual void on_peer_lost(NodeRef peer, Loss why) = 0;
  // Nobody there took what `send_to_address` was to say: "refused the connection".
  virtual void on_not_reached(const Address& address, const std::string& why) = 0;
  virtual void on_data_plane(DataPlaneEvent event) = 0;
};

// Bytes per second, smoothed, while bytes were flowing from that peer to us.
using PeerRates = std::map<NodeId, std::uint64_t>;

struct TransportStats {
  std::uint64_t bulk_bytes_in = 0;
  std::uint64_t bulk_bytes_out = 0;
  std::uint64_t connections = 0;  // established, control and bulk, both directions
  std::uint64_t rejected = 0;     // strangers: bad bytes, wrong token, wrong version, too slow
};

class Transport {
 public:
  virtual ~Transport() = default;

  // Where we really listen: the port is known even if 0 was asked for.
  virtual Address listen_address() const = 0;
  // Our identity changed (a new incarnation): close everything; later handshakes use `self`. No on_peer_lost.
  virtual void rename(NodeRef self) = 0;

  // `payload` is copied before the call returns.
  virtual void send(NodeRef to, const Address& address, const Message& message, ByteView payload) = 0;
  virtual void send_to_address(const Address& address, const Message& message) = 0;
  // Bytes of messages to this node that have not been given to the kernel.
  virtual std::uint64_t backlog(NodeRef to) const = 0;
  // Closes the links of the data plane, too.
  virtual void disconnect(NodeId node) = 0;

  virtual dataplane::DataPlane& data_plane() = 0;

  virtual TransportStats stats() const = 0;
  virtual PeerRates rates() const = 0;
};

struct TcpOptions {
  NodeRef self;
  Address listen;     // port 0 = any
  Address advertise;  // what we tell others; empty = the listen address
  std::string token;  // the cluster token; empty = none
  std::uint32_t io_threads = 1;
  std::uint64_t max_rate = 0;  // egress limit in bytes per second over all peers; 0 = none
  bool busy_poll = false;      // I/O threads spin while there are transfers
  std::byte* arena = nullptr;  // extents are offsets into this mapping
  std::uint64_t arena_bytes = 0;
  Limits limits;
  std::function<void(std::string)> log;  // one line for the operator, on the loop thread; may be empty
};

// kInvalidArgument or kUnavailable with the reason ("address 10.0.0.1:7411 is in use").
Result<std::unique_ptr<Transport>> make_tcp_transport(Loop& loop, TransportHandler& handler, const TcpOptions& options);

}  // namespace hoplite
