#include "sim/links.h"

#include <algorithm>
#include <cstring>

namespace hoplite::sim {

class Links::End final : public dataplane::Link {
 public:
  End(Links& links, Number number, Side side) : links_(links), number_(number), side_(side) {}
  ~End() override { links_.closed(number_, side_); }

  void send(const FrameHeader& frame, ByteView body) override { links_.send(number_, side_, frame, body); }
  void flush() override {}
  std::uint64_t queued_bytes() const override {
    return links_.connections_[number_].to[other(side_)].behind.size() * FrameHeader::kSize;
  }
  Sent send_data(const FrameHeader& frame, const std::byte* payload, bool) override {
    return links_.send_data(number_, side_, frame, payload);
  }
  void detach() override { links_.detach(number_, side_); }

 private:
  Links& links_;
  const Number number_;
  const Side side_;
};

// --- beginning and end

std::unique_ptr<dataplane::Link> Links::dial(NodeIndex child, NodeRef parent, const Address& address,
                                             dataplane::LinkUser& user) {
  const auto number = static_cast<Number>(connections_.size());
  Connection& connection = connections_.emplace_back();
  connection.ends[kChild] = {hosts_.process(child), hosts_[child].ref, &user, true};
  connection.ends[kParent] = {{hosts_.find(address), 0}, parent, nullptr, false};
  const NodeIndex there = connection.ends[kParent].process.node;
  if (there != kNobody) queue_.after(hosts_.delay(child, there), [this, number] { knock(number); });
  queue_.after(options_.dial_timeout, [this, number] { dial_failed(number); });
  return std::make_unique<End>(*this, number, kChild);
}

void Links::knock(Number number) {
  Connection& connection = connections_[number];
  const EndState& child = connection.ends[kChild];
  EndState& parent = connection.ends[kParent];
  const NodeIndex from = child.process.node;
  const NodeIndex at = parent.process.node;
  if (connection.state != State::kDialling || !hosts_.path_open(from, at) || !hosts_.path_open(at, from)) return;
  if (hosts_[at].running && hosts_.defer(at, [this, number] { knock(number); })) return;
  if (!hosts_[at].running || hosts_[at].ref != parent.ref || hosts_.refuses(from, at)) {
    queue_.after(hosts_.delay(at, from), [this, number] { dial_failed(number); });
    return;
  }
  parent.process = hosts_.process(at);
  parent.open = true;
  sink_.link_arrived(at, child.process, child.ref, [this, number](dataplane::LinkUser& user) {
    connections_[number].ends[kParent].user = &user;
    return std::make_unique<End>(*this, number, kParent);
  });
  queue_.after(hosts_.delay(at, from), [this, number] { opened(number); });
}

void Links::opened(Number number) {
  Connection& connection = connections_[number];
  const EndState& child = connection.ends[kChild];
  const EndState& parent = connection.ends[kParent];
  if (connection.state != State::kDialling || !hosts_.alive(child.process)) return;
  if (!hosts_.path_open(parent.process.node, child.process.node)) return;
  if (hosts_.defer(child.process.node, [this, number] { opened(number); })) return;
  if (hosts_.refuses(child.process.node, parent.process.node)) return dial_failed(number);
  connection.state = State::kOpen;
  for (std::size_t i = 0; i < connection.to[kParent].under_way.size(); ++i) schedule_arrival(number, kParent);
  if (!parent.open) tell_end(number, kChild);
}

void Links::dial_failed(Number number) {
  const Connection& connection = connections_[number];
  const ProcessId child = connection.ends[kChild].process;
  if (connection.state != State::kDialling || !hosts_.alive(child)) return;
  if (hosts_.defer(child.node, [this, number] { dial_failed(number); })) return;
  break_end(number, kChild);
}

// Its user closes it.
void Links::closed(Number number, Side side) {
  Connection& connection = connections_[number];
  EndState& end = connection.ends[side];
  end.user = nullptr;
  if (!std::exchange(end.open, false)) return;
  connection.to[other(side)].sending = false;
  if (side == kChild) connection.state = State::kClosed;
  tell_end_later(number, other(side));
}

void Links::tell_end_later(Number number, Side side) {
  const Connection& connection = connections_[number];
  if (!connection.ends[side].open) return;
  const NodeIndex from = connection.ends[other(side)].process.node;
  if (from == kNobody) return;
  queue_.after(hosts_.delay(from, connection.ends[side].process.node),
               [this, number, side] { tell_end(number, side); });
}

// That the other side is gone.
void Links::tell_end(Number number, Side side) {
  Connection& connection = connections_[number];
  const EndState& end = connection.ends[side];
  if (!end.open || !hosts_.alive(end.process) || (side == kChild && connection.state != State::kOpen)) return;
  if (!hosts_.path_open(connection.ends[other(side)].process.node, end.process.node)) {
    connection.to[side].end_held = true;
    return;
  }
  if (hosts_.defer(end.process.node, [this, number, side] { tell_end(number, side); })) return;
  break_end(number, side);
}

void Links::break_end(Number number, Side side) {
  Connection& connection = connections_[number];
  EndState& end = connection.ends[side];
  if (!std::exchange(end.open, false)) return;
  connection.to[other(side)].sending = false;
  if (side == kChild) connection.state = State::kClosed;
  if (end.user != nullptr) end.user->on_broken();
  tell_end_later(number, other(side));
  sink_.link_ran(end.process.node);
}

// --- frames

void Links::send(Number number, Side from, const FrameHeader& frame, ByteView body) {
  Connection& connection = connections_[number];
  if (!connection.ends[from].open) return;
  Direction& direction = connection.to[other(from)];
  Item item{frame, std::string(reinterpret_cast<const char*>(body.data()), body.size())};
  if (direction.sending) direction.behind.push_back(std::move(item));
  else push(number, other(from), std::move(item));
}

void Links::push(Number number, Side to, Item item) {
  Connection& connection = connections_[number];
  connection.to[to].under_way.push_back(std::move(item));
  if (to == kChild || connection.state == State::kOpen) schedule_arrival(number, to);
}

void Links::schedule_arrival(Number number, Side to) {
  Connection& connection = connections_[number];
  const NodeIndex from = connection.ends[other(to)].process.node;
  Direction& direction = connection.to[to];
  const Time when = queue_.now() + hosts_.delay(from, connection.ends[to].process.node);
  direction.last_arrival = std::max(direction.last_arrival, when);
  queue_.at(direction.last_arrival, [this, number, to] { arrive(number, to); });
}

// The last bit is there; the downlink may need longer if others came before.
void Links::arrive(Number number, Side to) {
  Connection& connection = connections_[number];
  const EndState& end = connection.ends[to];
  Direction& direction = connection.to[to];
  if (!end.open || !hosts_.alive(end.process) || direction.on_downlink == direction.under_way.size()) return;
  const NodeIndex at = end.process.node;
  if (!hosts_.path_open(connection.ends[other(to)].process.node, at)) {
    ++direction.held;
    return;
  }
  const Item& item = direction.under_way[direction.on_downlink++];
  const Duration wire = Duration::from_seconds(static_cast<double>(item.payload_bytes) / hosts_[at].link.down);
  Time& free = uplinks_[at].downlink_free;
  free = std::max(queue_.now(), free + wire);
  if (free > queue_.now()) queue_.at(free, [this, number, to] { deliver(number, to); });
  else deliver(number, to);
}

void Links::deliver(Number number, Side to) {
  Connection& connection = connections_[number];
  EndState& end = connection.ends[to];
  Direction& direction = connection.to[to];
  if (!end.open || !hosts_.alive(end.process) || direction.on_downlink == 0) return;
  if (hosts_.defer(end.process.node, [this, number, to] { deliver(number, to); })) return;
  const Item item = std::move(direction.under_way.front());
  direction.under_way.pop_front();
  --direction.on_downlink;
  const bool sane = hand_over(end, item);
  if (item.payload_bytes > 0) arrived_payload(number, to, item.payload_bytes);
  if (sane) sink_.link_ran(end.process.node);
  else break_end(number, to);
}

// False if the user says that it makes no sense.
bool Links::hand_over(EndState& end, const Item& item) {
  if (item.payload_bytes == 0) return end.user->on_frame(item.frame, as_bytes(item.bytes));
  if (item.begins && !end.user->on_data(item.frame)) return false;
  std::byte* const place = end.user->data_place();
  if (place != nullptr && !item.bytes.empty()) std::memcpy(place, item.bytes.data(), item.bytes.size());
  end.user->on_data_bytes(item.payload_bytes);
  return true;
}

void Links::arrived_payload(Number number, Side to, std::uint64_t bytes) {
  Direction& direction = connections_[number].to[to];
  bytes_delivered_ += bytes;
  direction.in_flight -= bytes;
  if (direction.in_flight >= options_.window_bytes) return;
  if (direction.sending && std::exchange(direction.window_full, false)) queue_turn(number, to);
  if (!direction.sending && direction.user_waits) tell_writable(number, other(to));
}

void Links::tell_writable(Number number, Side side) {
  Connection& connection = connections_[number];
  const EndState& end = connection.ends[side];
  Direction& direction = connection.to[other(side)];
  if (!end.open || !hosts_.alive(end.process) || direction.sending || !direction.user_waits) return;
  if (hosts_.defer(end.process.node, [this, number, side] { tell_writable(number, side); })) return;
  direction.user_waits = false;
  end.user->on_writable();
  sink_.link_ran(end.process.node);
}

// --- payload

dataplane::Link::Sent Links::send_data(Number number, Side from, const FrameHeader& frame, const std::byte* payload) {
  Connection& connection = connections_[number];
  Direction& direction = connection.to[other(from)];
  direction.user_waits = true;
  if (!connection.ends[from].open || direction.sending || direction.in_flight >= options_.window_bytes)
    return dataplane::Link::Sent::kNothing;
  direction.sending = true;
  direction.frame = frame;
  direction.payload = payload;
  direction.sent = direction.piece = 0;
  direction.window_full = false;
  queue_turn(number, other(from));
  return dataplane::Link::Sent::kPart;
}

void Links::detach(Number number, Side from) {
  Direction& direction = connections_[number].to[other(from)];
  if (!direction.sending || direction.payload == nullptr) return;
  direction.detached.assign(reinterpret_cast<const char*>(direction.payload), direction.frame.length);
  direction.payload = reinterpret_cast<const std::byte*>(direction.detached.data());
}

void Links::queue_turn(Number number, Side to) {
  const NodeIndex from = connections_[number].ends[other(to)].process.node;
  uplinks_[from].turns.emplace_back(number, to);
  take_turn(from);
}

void Links::take_turn(NodeIndex node) {
  Uplink& uplink = uplinks_[node];
  while (!uplink.busy && !uplink.turns.empty() && !hosts_[node].paused) {
    const auto [number, to] = uplink.turns.front();
    uplink.turns.pop_front();
    Connection& connection = connections_[number];
    Direction& direction = connection.to[to];
    const ProcessId process = connection.ends[other(to)].process;
    if (!direction.sending || !hosts_.alive(process)) continue;
    direction.piece = piece_of(direction, node, connection.ends[to].process.node);
    uplink.busy = true;
    const Duration wire = Duration::from_seconds(static_cast<double>(direction.piece) / hosts_[node].link.up);
    queue_.after(wire, [this, process, number = number, to = to] { piece_sent(process, number, to); });
  }
}

// Bytes trickle over a slow link, they do not come in lumps: nobody whose turn it is falls silent.
std::uint64_t Links::piece_of(const Direction& direction, NodeIndex from, NodeIndex to) {
  const double rate = std::min(hosts_[from].link.up, hosts_[to].link.down);
  const double trickle = rate * options_.trickle.seconds() / static_cast<double>(uplinks_[from].turns.size() + 1);
  std::uint64_t most = std::min(options_.piece_bytes, static_cast<std::uint64_t>(trickle) + 1);
  if (options_.uneven_pieces) most = 1 + random_.below(most);
  return std::min(direction.frame.length - direction.sent, most);
}

void Links::piece_sent(ProcessId process, Number number, Side to) {
  if (!hosts_.alive(process)) return;
  uplinks_[process.node].busy = false;
  Direction& direction = connections_[number].to[to];
  if (direction.sending && direction.piece > 0) {
    Item item{direction.frame, {}, direction.piece, direction.sent == 0};
    if (direction.payload != nullptr)
      item.bytes.assign(reinterpret_cast<const char*>(direction.payload) + direction.sent, direction.piece);
    direction.in_flight += direction.piece;
    direction.sent += direction.piece;
    uplinks_[process.node].bytes_sent += direction.piece;
    direction.piece = 0;
    push(number, to, std::move(item));
    if (direction.sent == direction.frame.length) frame_sent(number, to);
    else if (direction.in_flight >= options_.window_bytes) direction.window_full = true;
    else queue_turn(number, to);
  }
  take_turn(process.node);
}

void Links::frame_sent(Number number, Side to) {
  Direction& direction = connections_[number].to[to];
  direction.sending = false;
  direction.detached.clear();
  for (Item& item : std::exchange(direction.behind, {})) push(number, to, std::move(item));
  tell_writable(number, other(to));
}

// --- faults

// The peers' kernels learn of it, or not; what the process itself had is simply gone.
void Links::process_died(NodeIndex node, bool with_machine) {
  const ProcessId process = hosts_.process(node);
  for (Number number = 0; number < connections_.size(); ++number) {
    Connection& connection = connections_[number];
    for (const Side side : {kChild, kParent}) {
      EndState& end = connection.ends[side];
      if (end.process != process || !end.open) continue;
      closed(number, side);
      Direction& direction = connection.to[other(side)];
      if (!with_machine) continue;
      direction.under_way.clear();
      direction.on_downlink = 0;
    }
  }
  uplinks_[node].turns.clear();
  uplinks_[node].busy = false;
}

void Links::break_between(NodeIndex a, NodeIndex b) {
  for (Number number = 0; number < connections_.size(); ++number) {
    const Connection& connection = connections_[number];
    const NodeIndex child = connection.ends[kChild].process.node;
    const NodeIndex parent = connection.ends[kParent].process.node;
    const bool between = (child == a && parent == b) || (child == b && parent == a);
    if (!between || connection.state != State::kOpen) continue;
    tell_end_later(number, kChild);
    tell_end_later(number, kParent);
  }
}

void Links::paths_changed() {
  for (Number number = 0; number < connections_.size(); ++number) {
    Connection& connection = connections_[number];
    if (connection.ends[kParent].process.node == kNobody) continue;
    for (const Side to : {kChild, kParent}) {
      Direction& direction = connection.to[to];
      if (!hosts_.path_open(connection.ends[other(to)].process.node, connection.ends[to].process.node)) continue;
      const Duration wait = retransmission();
      for (; direction.held > 0; --direction.held) queue_.after(wait, [this, number, to] { arrive(number, to); });
      if (std::exchange(direction.end_held, false)) queue_.after(wait, [this, number, to] { tell_end(number, to); });
    }
  }
}

}  // namespace hoplite::sim
