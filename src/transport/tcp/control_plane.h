// Control messages: to each peer one connection that we dial, from each peer one that it dials.
//
// On the wire a message is its length (32 bits) and then what encode_message wrote, with the payload behind it.
// Messages are queued during a batch of the loop and sent at its end, all of one peer in one system call; earlier, if they
// are many. Signs of life go before whatever else is queued: a peer that is sent much is not taken for dead. The kernel keeps
// little that has not left, so that this holds. Loop thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "transport/loop.h"
#include "transport/tcp/dial.h"
#include "transport/tcp/shared.h"
#include "transport/transport.h"

namespace hoplite::tcp {

class ControlPlane {
 public:
  // `shared` and `identity` outlive it.
  ControlPlane(Shared& shared, const Identity& identity);
  ~ControlPlane();
  ControlPlane(const ControlPlane&) = delete;
  ControlPlane& operator=(const ControlPlane&) = delete;

  void send(NodeRef to, const Address& address, const Message& message, ByteView payload);
  void send_to_address(const Address& address, const Message& message);
  // Bytes for this node that have not been given to the kernel.
  std::uint64_t backlog(NodeRef to) const;
  // Closes the connections to and from `node`, without on_peer_lost.
  void disconnect(NodeId node);
  void disconnect_all();
  // A connection that a peer dialled; it takes the place of an older one.
  void adopt(UniqueFd fd, const Hello& peer);
  // Sends what was queued. Call at the end of each batch.
  void flush();

 private:
  struct Outbound;
  struct Inbound;
  using OutboundPtr = std::shared_ptr<Outbound>;
  using InboundPtr = std::shared_ptr<Inbound>;
  // Functions that let go of a connection take the pointer by value: a reference may be to the map's own.

  OutboundPtr dial(NodeRef node, const Address& address);
  OutboundPtr find_by_address(const Address& address) const;
  void enqueue(const OutboundPtr& peer, const Message& message, ByteView payload);
  void absorb(const OutboundPtr& into, const OutboundPtr& from);
  OutboundPtr find_claiming(NodeRef node) const;
  bool on_claim(const OutboundPtr& peer, NodeRef claimed);
  void on_dialled(const OutboundPtr& peer, Dial::Outcome outcome);
  void on_outbound_event(const OutboundPtr& peer, std::uint32_t events);
  void flush(const OutboundPtr& peer);
  static bool is_sign_of_life(const Message& message);
  static std::size_t next_message(Outbound& peer);
  // False: the connection is gone.
  bool write_out(Outbound& peer);
  void mark_dirty(const OutboundPtr& peer);
  void forget(OutboundPtr peer);
  void lose(OutboundPtr peer, Loss why);

  void on_inbound_readable(InboundPtr peer);
  // How many bytes of `in` were whole messages; they have been handed to the handler.
  std::size_t deliver(const InboundPtr& peer, ByteView in);
  void close(InboundPtr peer);
  void lose(InboundPtr peer, const std::string& why);

  Shared& shared_;
  const Identity& identity_;
  std::unordered_map<NodeRef, OutboundPtr> by_node_;
  std::map<Address, OutboundPtr> by_address_;  // dialled by send_to_address, until we know who it is
  std::vector<OutboundPtr> dirty_;             // have something to flush
  std::unordered_map<NodeId, InboundPtr> inbound_;
  std::vector<std::byte> scratch_;  // what recv writes to
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace hoplite::tcp
