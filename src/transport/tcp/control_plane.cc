#include "transport/tcp/control_plane.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/type_name.h"

namespace hoplite::tcp {
namespace {

constexpr std::size_t kScratchBytes = 256 * kKiB;  // one recv: dozens of messages, or a small object with its message
constexpr std::size_t kKeptBytes = 256 * kKiB;     // an empty queue keeps no more memory than this
constexpr std::size_t kFlushBytes = 256 * kKiB;    // queued in one batch: the kernel can start with it
constexpr std::size_t kLengthBytes = sizeof(std::uint32_t);

std::string in_words(const HandshakeFailure& failure) {
  switch (failure.loss) {
    case Loss::kRefused: return "refused the connection";
    case Loss::kTimedOut: return "cannot be reached: " + failure.why;
    default: return "did not let us in: " + failure.why;
  }
}

}  // namespace

// A connection that we dial. It has a node from the start, or from the end of its handshake on.
struct ControlPlane::Outbound {
  NodeRef node;
  Address address;
  std::unique_ptr<Dial> dial;  // until it is established
  NodeRef claimed;             // who it is by its own, unproved word; its handshake is in the last step
  UniqueFd fd;                 // once it is established
  std::unique_ptr<ConnectionCount> counted;
  std::string queue;
  std::size_t sent = 0;   // of the queue
  std::size_t next = 0;   // in the queue: where a message begins; none before it begins at `sent` or behind
  std::size_t signs = 0;  // likewise: so far those that go first
  bool dirty = false;
  bool blocked = false;  // waits for EPOLLOUT
  bool gone = false;
};

struct ControlPlane::Inbound {
  NodeRef node;
  UniqueFd fd;
  ConnectionCount counted;
  std::vector<std::byte> partial;  // the front of a message whose rest has not arrived
  bool gone = false;
};

ControlPlane::ControlPlane(Shared& shared, const Identity& identity)
    : shared_(shared), identity_(identity), scratch_(kScratchBytes) {}

ControlPlane::~ControlPlane() { disconnect_all(); }

// --- sending

void ControlPlane::send(NodeRef to, const Address& address, const Message& message, ByteView payload) {
  const auto it = by_node_.find(to);
  enqueue(it != by_node_.end() ? it->second : dial(to, address), message, payload);
}

void ControlPlane::send_to_address(const Address& address, const Message& message) {
  OutboundPtr peer = find_by_address(address);
  enqueue(peer ? peer : dial(NodeRef{}, address), message, {});
}

ControlPlane::OutboundPtr ControlPlane::find_by_address(const Address& address) const {
  const auto it = by_address_.find(address);
  if (it != by_address_.end()) return it->second;
  for (const auto& [node, peer] : by_node_) {
    if (peer->address == address) return peer;
  }
  return nullptr;
}

ControlPlane::OutboundPtr ControlPlane::dial(NodeRef node, const Address& address) {
  auto peer = std::make_shared<Outbound>();
  peer->node = node;
  peer->address = address;
  Dial::Options options{shared_.options.limits.sockets, address, Role::kControl, node, {}};
  // The Dial is the Outbound's own; holding it strongly would be a cycle.
  const std::weak_ptr<Outbound> weak = peer;
  options.on_claim = [this, weak](NodeRef claimed) { return on_claim(weak.lock(), claimed); };
  peer->dial = std::make_unique<Dial>(shared_.loop, identity_, std::move(options), [this, weak](Dial::Outcome outcome) {
    if (const OutboundPtr still = weak.lock()) on_dialled(still, std::move(outcome));
  });
  if (node == NodeRef{}) {
    by_address_[address] = peer;
  } else {
    by_node_[node] = peer;
  }
  return peer;
}

std::uint64_t ControlPlane::backlog(NodeRef to) const {
  const auto it = by_node_.find(to);
  return it == by_node_.end() ? 0 : it->second->queue.size() - it->second->sent;
}

bool ControlPlane::is_sign_of_life(const Message& message) {
  return std::holds_alternative<Ping>(message) || std::holds_alternative<Ack>(message) ||
         std::holds_alternative<PingRequest>(message) || std::holds_alternative<News>(message);
}

// Where the first message begins of which nothing has been sent.
std::size_t ControlPlane::next_message(Outbound& peer) {
  while (peer.next < peer.sent) {
    std::uint32_t length = 0;
    std::memcpy(&length, peer.queue.data() + peer.next, kLengthBytes);
    peer.next += kLengthBytes + length;
  }
  return peer.next;
}

void ControlPlane::enqueue(const OutboundPtr& peer, const Message& message, ByteView payload) {
  std::string& queue = peer->queue;
  const std::size_t start = queue.size();
  queue.append(kLengthBytes, '\0');
  encode_message(message, queue);
  queue.append(reinterpret_cast<const char*>(payload.data()), payload.size());
  const auto length = static_cast<std::uint32_t>(queue.size() - start - kLengthBytes);
  CHECK(length <= shared_.options.limits.max_message_bytes, type_name(message), length);
  std::memcpy(queue.data() + start, &length, kLengthBytes);
  if (is_sign_of_life(message)) {
    const std::size_t place = std::max(next_message(*peer), peer->signs);
    const std::string sign = queue.substr(start);
    queue.resize(start);
    queue.insert(place, sign);
    peer->signs = place + kLengthBytes + length;
  }
  if (peer->fd && !peer->blocked && queue.size() - peer->sent > kFlushBytes && !write_out(*peer)) {
    // Handlers are not called from inside a call of ours: the flush at the end of the batch finds out again.
    return mark_dirty(peer);
  }
  if (queue.size() - peer->sent > shared_.options.limits.sockets.max_queued_bytes) {
    // Handlers are not called from inside a call of ours.
    forget(peer);
    if (peer->node == NodeRef{}) return;
    shared_.loop.post([this, node = peer->node, alive = std::weak_ptr(alive_)] {
      if (!alive.expired()) shared_.handler.on_peer_lost(node, Loss::kClosed);
    });
    return;
  }
  if (peer->fd) mark_dirty(peer);
}

void ControlPlane::mark_dirty(const OutboundPtr& peer) {
  if (!std::exchange(peer->dirty, true)) dirty_.push_back(peer);
}

void ControlPlane::flush() {
  if (dirty_.empty()) return;
  const std::vector<OutboundPtr> dirty = std::exchange(dirty_, {});
  for (const OutboundPtr& peer : dirty) {
    peer->dirty = false;
    if (!peer->gone && !peer->blocked) flush(peer);
  }
}

void ControlPlane::flush(const OutboundPtr& peer) {
  if (!write_out(*peer)) lose(peer, Loss::kClosed);
}

bool ControlPlane::write_out(Outbound& peer) {
  while (peer.sent < peer.queue.size()) {
    const std::size_t wanted = peer.queue.size() - peer.sent;
    const ssize_t sent = ::send(peer.fd.get(), peer.queue.data() + peer.sent, wanted, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && !would_block(errno)) return false;
    if (sent > 0) {
      peer.sent += static_cast<std::size_t>(sent);
      shared_.limiter.charge(shared_.loop.now(), static_cast<std::uint64_t>(sent));
    }
    if (sent < 0 || static_cast<std::size_t>(sent) < wanted) break;
  }
  const bool blocked = peer.sent < peer.queue.size();
  if (!blocked) {
    peer.queue.clear();
    peer.sent = peer.next = peer.signs = 0;
    if (peer.queue.capacity() > kKeptBytes) std::string().swap(peer.queue);
  } else if (peer.sent > peer.queue.size() / 2) {
    peer.next = next_message(peer) - peer.sent;
    peer.signs -= std::min(peer.signs, peer.sent);
    peer.queue.erase(0, std::exchange(peer.sent, 0));
  }
  if (blocked != std::exchange(peer.blocked, blocked))
    shared_.loop.modify(peer.fd.get(), blocked ? EPOLLIN | EPOLLOUT : EPOLLIN);
  return true;
}

// --- connections that we dial

// At most one connection to a node may get as far as its proof, because the acceptor keeps only the latest. Of two, one
// that is meant for that node goes before one that only listens at some address.
bool ControlPlane::on_claim(const OutboundPtr& peer, NodeRef claimed) {
  if (!peer) return false;
  const bool meant = peer->node != NodeRef{};
  if (const auto it = by_node_.find(claimed); it != by_node_.end() && !meant) {
    absorb(it->second, peer);
    return false;
  }
  if (const OutboundPtr other = find_claiming(claimed); other && !meant) {
    absorb(other, peer);
    return false;
  } else if (other) {
    absorb(peer, other);
    forget(other);
  }
  peer->claimed = claimed;
  return true;
}

ControlPlane::OutboundPtr ControlPlane::find_claiming(NodeRef node) const {
  for (const auto& [address, peer] : by_address_) {
    if (peer->claimed == node) return peer;
  }
  return nullptr;
}

void ControlPlane::absorb(const OutboundPtr& into, const OutboundPtr& from) {
  into->queue.append(from->queue, from->sent);
  from->queue.clear();
  from->sent = from->next = from->signs = 0;
  if (into->fd) mark_dirty(into);
}

void ControlPlane::on_dialled(const OutboundPtr& peer, Dial::Outcome outcome) {
  if (outcome.failure) {
    if (outcome.failure->tell_operator) {
      ++shared_.counters.rejected;
      shared_.strangers.refused(peer->address.host, outcome.failure->why);
    }
    if (peer->node == NodeRef{}) shared_.handler.on_not_reached(peer->address, in_words(*outcome.failure));
    return lose(peer, outcome.failure->loss);
  }
  if (peer->node == NodeRef{}) {
    peer->node = outcome.peer;
    by_address_.erase(peer->address);
    // Sends that came since the claim have begun a dial of their own; it has not reached its proof.
    if (const auto it = by_node_.find(peer->node); it != by_node_.end()) {
      const OutboundPtr later = it->second;
      absorb(peer, later);
      forget(later);
    }
    by_node_[peer->node] = peer;
  }
  peer->dial.reset();
  peer->fd = std::move(outcome.fd);
  peer->counted = std::make_unique<ConnectionCount>(shared_.counters);
  tune_control(peer->fd.get());
  shared_.loop.add(peer->fd.get(), EPOLLIN, [this, peer](std::uint32_t events) { on_outbound_event(peer, events); });
  mark_dirty(peer);
}

void ControlPlane::on_outbound_event(const OutboundPtr& peer, std::uint32_t events) {
  if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
    // The acceptor never speaks here; readable means that it is gone.
    std::byte unexpected{};
    const ssize_t got = recv(peer->fd.get(), &unexpected, 1, MSG_DONTWAIT);
    if (got >= 0 || !would_block(errno)) return lose(peer, Loss::kClosed);
  }
  if (events & EPOLLOUT) flush(peer);
}

void ControlPlane::forget(OutboundPtr peer) {
  if (std::exchange(peer->gone, true)) return;
  if (const auto it = by_node_.find(peer->node); it != by_node_.end() && it->second == peer) by_node_.erase(it);
  if (const auto it = by_address_.find(peer->address); it != by_address_.end() && it->second == peer)
    by_address_.erase(it);
  peer->dial.reset();
  peer->counted.reset();
  if (!peer->fd) return;
  shared_.loop.remove(peer->fd.get());
  peer->fd.reset();
}

void ControlPlane::lose(OutboundPtr peer, Loss why) {
  forget(peer);
  if (peer->node != NodeRef{}) shared_.handler.on_peer_lost(peer->node, why);
}

// --- connections that peers dialled

void ControlPlane::adopt(UniqueFd fd, const Hello& hello) {
  if (const auto it = inbound_.find(hello.node.id); it != inbound_.end()) {
    // A handshake of an earlier life that was still in the buffers.
    if (hello.node.incarnation < it->second->node.incarnation) return;
    close(it->second);
  }
  tune_control(fd.get());
  const int raw = fd.get();
  const InboundPtr peer(new Inbound{hello.node, std::move(fd), ConnectionCount(shared_.counters), {}});
  inbound_[hello.node.id] = peer;
  shared_.loop.add(raw, EPOLLIN, [this, peer](std::uint32_t) { on_inbound_readable(peer); });
}

void ControlPlane::on_inbound_readable(InboundPtr peer) {
  const ssize_t got = recv(peer->fd.get(), scratch_.data(), scratch_.size(), MSG_DONTWAIT);
  if (got < 0 && would_block(errno)) return;
  if (got <= 0) return lose(peer, "");
  const ByteView fresh(scratch_.data(), static_cast<std::size_t>(got));
  std::vector<std::byte>& partial = peer->partial;
  if (partial.empty()) {
    const std::size_t used = deliver(peer, fresh);
    partial.assign(fresh.begin() + static_cast<std::ptrdiff_t>(used), fresh.end());
    return;
  }
  // Memory grows with what has arrived, not with what was announced.
  partial.insert(partial.end(), fresh.begin(), fresh.end());
  const std::size_t used = deliver(peer, partial);
  partial.erase(partial.begin(), partial.begin() + static_cast<std::ptrdiff_t>(used));
  if (partial.empty()) std::vector<std::byte>().swap(partial);
}

std::size_t ControlPlane::deliver(const InboundPtr& peer, ByteView in) {
  std::size_t used = 0;
  while (in.size() - used >= kLengthBytes) {
    std::uint32_t length = 0;
    std::memcpy(&length, in.data() + used, kLengthBytes);
    if (length > shared_.options.limits.max_message_bytes) {
      lose(peer, "it announced a message of " + std::to_string(length) + " bytes");
      return used;
    }
    if (in.size() - used - kLengthBytes < length) return used;
    auto decoded = decode_message(in.subspan(used + kLengthBytes, length));
    if (!decoded) {
      lose(peer, decoded.error().message);
      return used;
    }
    used += kLengthBytes + length;
    shared_.handler.on_message(peer->node, std::move(decoded->message), decoded->payload);
    if (peer->gone) return used;
  }
  return used;
}

void ControlPlane::close(InboundPtr peer) {
  if (std::exchange(peer->gone, true)) return;
  if (const auto it = inbound_.find(peer->node.id); it != inbound_.end() && it->second == peer) inbound_.erase(it);
  shared_.loop.remove(peer->fd.get());
  peer->fd.reset();
}

void ControlPlane::lose(InboundPtr peer, const std::string& why) {
  if (!why.empty()) shared_.strangers.refused(peer_host(peer->fd.get()), why);
  close(peer);
  shared_.handler.on_peer_lost(peer->node, Loss::kClosed);
}

// --- both

void ControlPlane::disconnect(NodeId node) {
  std::vector<OutboundPtr> outbound;
  for (const auto& [ref, peer] : by_node_) {
    if (ref.id == node) outbound.push_back(peer);
  }
  for (const OutboundPtr& peer : outbound) forget(peer);
  if (const auto it = inbound_.find(node); it != inbound_.end()) close(it->second);
}

void ControlPlane::disconnect_all() {
  while (!by_node_.empty()) forget(by_node_.begin()->second);
  while (!by_address_.empty()) forget(by_address_.begin()->second);
  while (!inbound_.empty()) close(inbound_.begin()->second);
}

}  // namespace hoplite::tcp
