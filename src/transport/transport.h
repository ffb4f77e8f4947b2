// Moving messages and bytes between nodes.
//
// Control messages: `send` to a peer, in order, on a connection that we dial (and dial again when it is gone); arriving
// ones come from connections that the peer dialled. Bulk bytes: `start_pull` from a parent into a copy, `accept_pull` to
// serve a child from one; the bytes go straight from arena to socket to arena, moved by I/O threads. The same threads do
// the arithmetic of `combine`, which makes one copy of several while they grow.
//
// Every function is called on the loop thread, and every handler function is called on it, never from inside a call of
// ours: from `Loop::run_once`. Failure is an ordinary event with a defined next state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/extent.h"
#include "base/limits.h"
#include "base/node_id.h"
#include "hoplite/dtype.h"
#include "protocol/bulk.h"
#include "protocol/client_messages.h"
#include "protocol/data_plane.h"
#include "protocol/messages.h"
#include "protocol/transfer.h"
#include "transport/loop.h"

namespace hoplite {

class TransportHandler {
 public:
  virtual ~TransportHandler() = default;
  // `payload` is valid during the call.
  virtual void on_message(NodeRef from, Message message, ByteView payload) = 0;
  virtual void on_peer_lost(NodeRef peer, Loss why) = 0;
  virtual void on_pull_asked(NodeRef peer, ChannelId channel, const PullRequest& pull) = 0;
  virtual void on_pull_accepted(TransferId transfer) = 0;
  virtual void on_pull_silent(TransferId transfer) = 0;
  virtual void on_pull_ended(TransferId transfer, PullEnd how, ValidBytes valid) = 0;
  virtual void on_serve_ended(ServeId serve) = 0;
  virtual void on_copy_closed(CopyKey copy) = 0;
  virtual void on_combined(CopyKey out, std::uint32_t slice) = 0;
  virtual void on_copy_grown(CopyKey copy) = 0;  // coalesced: at most one under way for each copy
};

struct PeerRate {
  NodeId node;
  std::uint64_t bytes_per_second = 0;  // smoothed, while bytes were flowing from that peer to us
};

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

  // --- control. `payload` is copied before the call returns.
  virtual void send(NodeRef to, const Address& address, const Message& message, ByteView payload) = 0;
  virtual void send_to_address(const Address& address, const Message& message) = 0;
  virtual void disconnect(NodeId node) = 0;

  // --- bulk. Offsets are from the start of the object, also in a copy that has only one slice of it.
  virtual void open_copy(const effect::OpenCopy& open) = 0;
  virtual void grow_copy(CopyKey copy, std::uint64_t bytes) = 0;
  // kAllSlices: all bytes are there. Or only those of one slice, whose watermark is at its end.
  virtual void seal_copy(CopyKey copy, std::uint32_t slice) = 0;
  // Exactly one on_combined, unless `out` is closed before. Until then, or until `out` is closed, the inputs stay open.
  // The slice is empty, whole elements long, and nobody else fills it.
  virtual void combine(const effect::Combine& order) = 0;
  virtual void follow_copy(CopyKey copy) = 0;
  virtual void close_copy(CopyKey copy) = 0;
  virtual ValidBytes valid(CopyKey copy, std::uint32_t slice) const = 0;
  virtual void start_pull(NodeRef parent, const Address& address, CopyKey copy, const PullRequest& pull,
                          Duration patience) = 0;
  virtual void cancel_pull(TransferId transfer) = 0;
  virtual void accept_pull(ChannelId channel, ServeId serve, CopyKey copy, const PullRequest& pull) = 0;
  virtual void refuse_pull(ChannelId channel, TransferId transfer, Code code) = 0;
  virtual void stop_serve(ServeId serve, Code code) = 0;

  virtual TransportStats stats() const = 0;
  virtual std::vector<PeerRate> rates() const = 0;
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
