// Control connections between processes: what TCP gives and what it does not.
//
// A connection carries messages one way, from the process that dialled it, in order. It is dialled by the first `send`, a
// round trip; messages wait for that. Messages are lost only together with the connection: when it breaks, some front of
// what was under way still arrives, the rest is gone, and both sides learn of it, each in its own time. A blocked path holds
// everything back until it heals, also the news that a connection is gone.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "protocol/transfer.h"
#include "sim/hosts.h"

namespace hoplite::sim {

class NetworkSink {
 public:
  virtual ~NetworkSink() = default;
  virtual void message_arrived(NodeIndex at, NodeRef from, const std::string& bytes) = 0;
  virtual void peer_lost(NodeIndex at, NodeRef peer, Loss why) = 0;
};

struct NetworkOptions {
  Duration dial_timeout = Duration::s(1);
  Duration retransmit = Duration::ms(300);  // at most this long after a path healed, what was held back arrives
};

class Network {
 public:
  Network(EventQueue& queue, Hosts& hosts, Random& random, NetworkSink& sink, NetworkOptions options = {})
      : queue_(queue), hosts_(hosts), random_(random), sink_(sink), options_(options) {}

  void add_node() { outgoing_.emplace_back(), sent_.push_back(0); }  // once for each host, in the same order

  // Called by a running process. The message is encoded.
  void send(NodeIndex from, NodeRef to, const Address& address, std::string bytes);
  void send_to_address(NodeIndex from, const Address& address, std::string bytes);
  // `self` closes its connections to and from `peer`, or to and from everybody; it hears nothing of it.
  void disconnect(NodeIndex self, NodeId peer);
  void disconnect_all(NodeIndex self);

  // --- faults
  // The process is gone. Its kernel tells the peers, unless the machine went down with it.
  void process_died(NodeIndex node, bool with_machine);
  // Every connection between the two, in both directions, is reset.
  void break_between(NodeIndex a, NodeIndex b);
  // A path was opened, or a machine came back: what was held back moves again.
  void paths_changed();

  std::size_t open_connections() const;
  // Bytes of messages from the one to the other that have not arrived.
  std::uint64_t backlog(NodeIndex from, NodeRef to) const;
  std::uint64_t bytes_sent(NodeIndex node) const { return sent_[node]; }  // all its processes, without headers

 private:
  enum class State : std::uint8_t { kDialling, kOpen, kClosed };
  struct Item {
    std::string bytes{};
    bool close = false;  // the sender's end of the connection: nothing comes behind it
  };
  struct Connection {
    ProcessId from, to;
    NodeRef from_ref, to_ref;
    bool one_shot = false;  // to whoever answers; one message, and nobody is told how it went
    State state = State::kDialling;
    bool sender_open = true;     // the sender has not closed it, nor heard that it is closed
    bool receiver_open = false;  // accepted, and not closed since
    std::deque<Item> items;      // waiting for the dial, then under way
    Time last_arrival;
    std::uint32_t held = 0;  // arrivals that found the path blocked
    bool news_for_sender_held = false;
  };
  using Number = std::uint32_t;

  Number dial(NodeIndex from, NodeRef to, const Address& address);
  void knock(Number number);
  void opened(Number number);
  void dial_failed(Number number, Loss why);
  void schedule_arrival(Number number);
  void arrive(Number number);
  void close_at_sender(Number number);  // deliberately, or because it died
  void close_at_receiver(Number number);
  void tell_sender(Number number);  // that the connection is gone
  void forget_outgoing(Number number);
  void lose_tail(Connection& connection);
  Duration retransmission() { return Duration{static_cast<std::int64_t>(random_.below(options_.retransmit.ns + 1))}; }

  EventQueue& queue_;
  Hosts& hosts_;
  Random& random_;
  NetworkSink& sink_;
  NetworkOptions options_;
  std::deque<Connection> connections_;                         // by number
  std::vector<std::uint64_t> sent_;                            // by node
  std::vector<std::unordered_map<NodeRef, Number>> outgoing_;  // by sending node; looked up, never iterated
};

}  // namespace hoplite::sim
