// Simulated links of the data plane (dataplane/link.h): what a TCP connection between two hosts does, and how it ends.
//
// A node's uplink sends one piece at a time, taking turns among its links; the downlink takes what arrives in order; a window
// bounds what is under way on a link. Payload is read at the end of each piece's time on the wire, so that memory which is
// used for something else too early is seen. When a connection breaks, some front of what was under way still arrives, the
// rest is gone, and both ends learn of it, each in its own time. A blocked path holds everything back until it heals, also the
// news that a connection is gone.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "dataplane/link.h"
#include "sim/hosts.h"

namespace hoplite::sim {

struct LinkOptions {
  std::uint64_t piece_bytes = 64 * kKiB;  // what one turn on the uplink sends at most
  bool uneven_pieces = false;             // draw each piece's size, as TCP delivers
  std::uint64_t window_bytes = 512 * kKiB;
  Duration dial_timeout = Duration::s(1);
  Duration retransmit = Duration::ms(300);  // at most this long after a path healed, what was held back arrives
  Duration trickle = Duration::ms(50);      // on a slow link bytes trickle, and do not come in lumps rarer than this
};

class LinksSink {
 public:
  virtual ~LinksSink() = default;
  // `child` has dialled: the lane that is to serve it makes its end.
  virtual void link_arrived(NodeIndex at, ProcessId child, NodeRef ref, const dataplane::MakeLink& make) = 0;
  // A link of this node has called its user.
  virtual void link_ran(NodeIndex at) = 0;
};

class Links {
 public:
  Links(EventQueue& queue, Hosts& hosts, Random& random, LinksSink& sink, const LinkOptions& options)
      : queue_(queue), hosts_(hosts), random_(random), sink_(sink), options_(options) {}

  void add_node() { uplinks_.emplace_back(); }  // once for each host, in the same order
  // Called by a running process.
  std::unique_ptr<dataplane::Link> dial(NodeIndex child, NodeRef parent, const Address& address,
                                        dataplane::LinkUser& user);

  // --- faults, as in Network
  void process_died(NodeIndex node, bool with_machine);  // before its data plane is destroyed
  void process_resumed(NodeIndex node) { take_turn(node); }
  void break_between(NodeIndex a, NodeIndex b);
  void paths_changed();

  std::uint64_t bytes_delivered() const { return bytes_delivered_; }
  std::uint64_t bytes_sent(NodeIndex node) const { return uplinks_[node].bytes_sent; }

 private:
  class End;  // a dataplane::Link
  enum class State : std::uint8_t { kDialling, kOpen, kClosed };
  enum Side : std::uint8_t { kChild, kParent };
  static Side other(Side side) { return side == kChild ? kParent : kChild; }
  using Number = std::uint32_t;

  struct Item {  // a frame without payload, or a piece of one's payload
    FrameHeader frame;
    std::string bytes{};              // the body, or the payload if the run carries bytes
    std::uint64_t payload_bytes = 0;  // 0: a frame without payload
    bool begins = false;              // the first piece
  };
  struct Direction {              // what goes to one side
    std::deque<Item> under_way;   // before the connection is open: waiting for that
    std::size_t on_downlink = 0;  // of them, from the front: arrived, and waiting for the downlink
    std::uint64_t in_flight = 0;  // bytes of payload
    Time last_arrival;
    std::uint32_t held = 0;  // arrivals that found the path blocked
    bool end_held = false;   // the news that the connection is gone did
    bool sending = false;    // a data frame: this one
    FrameHeader frame;
    const std::byte* payload = nullptr;
    std::uint64_t sent = 0;   // of its payload
    std::uint64_t piece = 0;  // on the uplink now
    std::string detached;
    std::vector<Item> behind;  // frames that wait for its end
    bool user_waits = false;   // for on_writable
    bool window_full = false;  // it goes on when something has arrived
  };
  struct EndState {
    ProcessId process;
    NodeRef ref;
    dataplane::LinkUser* user = nullptr;
    bool open = false;  // it has not closed it, nor heard that it is closed
  };
  struct Connection {
    State state = State::kDialling;
    std::array<EndState, 2> ends;  // by side
    std::array<Direction, 2> to;   // by side
  };
  struct Uplink {
    std::deque<std::pair<Number, Side>> turns;  // directions with a data frame
    bool busy = false;
    Time downlink_free;
    std::uint64_t bytes_sent = 0;
  };

  // --- for End
  void send(Number number, Side from, const FrameHeader& frame, ByteView body);
  dataplane::Link::Sent send_data(Number number, Side from, const FrameHeader& frame, const std::byte* payload);
  void detach(Number number, Side from);
  void closed(Number number, Side side);

  void knock(Number number);
  void opened(Number number);
  void dial_failed(Number number);
  void push(Number number, Side to, Item item);
  void schedule_arrival(Number number, Side to);
  void arrive(Number number, Side to);
  void deliver(Number number, Side to);
  bool hand_over(EndState& end, const Item& item);
  void arrived_payload(Number number, Side to, std::uint64_t bytes);
  void take_turn(NodeIndex node);
  std::uint64_t piece_of(const Direction& direction, NodeIndex from, NodeIndex to);
  void piece_sent(ProcessId process, Number number, Side to);
  void queue_turn(Number number, Side to);
  void frame_sent(Number number, Side to);
  void tell_writable(Number number, Side side);
  void tell_end(Number number, Side side);
  void break_end(Number number, Side side);
  void tell_end_later(Number number, Side side);
  Duration retransmission() { return Duration{static_cast<std::int64_t>(random_.below(options_.retransmit.ns + 1))}; }

  EventQueue& queue_;
  Hosts& hosts_;
  Random& random_;
  LinksSink& sink_;
  LinkOptions options_;
  std::deque<Connection> connections_;  // by number
  std::deque<Uplink> uplinks_;          // by node
  std::uint64_t bytes_delivered_ = 0;
};

}  // namespace hoplite::sim
