#include "sim/network.h"

#include <algorithm>

namespace hoplite::sim {

void Network::send(NodeIndex from, NodeRef to, const Address& address, std::string bytes) {
  sent_[from] += bytes.size();
  const auto known = outgoing_[from].find(to);
  const Number number = known != outgoing_[from].end() ? known->second : dial(from, to, address);
  outgoing_[from][to] = number;
  Connection& connection = connections_[number];
  connection.items.push_back({std::move(bytes)});
  if (connection.state == State::kOpen) schedule_arrival(number);
}

void Network::send_to_address(NodeIndex from, const Address& address, std::string bytes) {
  sent_[from] += bytes.size();
  const Number number = dial(from, NodeRef{}, address);
  connections_[number].one_shot = true;
  connections_[number].items.push_back({std::move(bytes)});
}

Network::Number Network::dial(NodeIndex from, NodeRef to, const Address& address) {
  const auto number = static_cast<Number>(connections_.size());
  Connection& connection = connections_.emplace_back();
  connection.from = hosts_.process(from);
  connection.from_ref = hosts_[from].ref;
  connection.to = {hosts_.find(address), 0};
  connection.to_ref = to;
  if (connection.to.node != kNobody)
    queue_.after(hosts_.delay(from, connection.to.node), [this, number] { knock(number); });
  queue_.after(options_.dial_timeout, [this, number] { dial_failed(number, Loss::kTimedOut); });
  return number;
}

void Network::knock(Number number) {
  Connection& connection = connections_[number];
  const NodeIndex from = connection.from.node;
  const NodeIndex to = connection.to.node;
  if (connection.state != State::kDialling || !hosts_.path_open(from, to) || !hosts_.path_open(to, from)) return;
  const Duration back = hosts_.delay(to, from);
  if (!hosts_[to].running || hosts_.refuses(from, to)) {
    queue_.after(back, [this, number] { dial_failed(number, Loss::kRefused); });
    return;
  }
  if (hosts_.defer(to, [this, number] { knock(number); })) return;
  if (!connection.one_shot && hosts_[to].ref != connection.to_ref) {
    queue_.after(back, [this, number] { dial_failed(number, Loss::kReplaced); });
    return;
  }
  connection.to = hosts_.process(to);
  connection.receiver_open = true;
  queue_.after(back, [this, number] { opened(number); });
}

void Network::opened(Number number) {
  Connection& connection = connections_[number];
  if (connection.state != State::kDialling || !hosts_.alive(connection.from)) return;
  if (!hosts_.path_open(connection.to.node, connection.from.node)) return;
  if (hosts_.defer(connection.from.node, [this, number] { opened(number); })) return;
  if (hosts_.refuses(connection.from.node, connection.to.node)) return dial_failed(number, Loss::kRefused);
  connection.state = State::kOpen;
  for (std::size_t i = 0; i < connection.items.size(); ++i) schedule_arrival(number);
  if (!connection.receiver_open) tell_sender(number);
}

void Network::dial_failed(Number number, Loss why) {
  Connection& connection = connections_[number];
  if (connection.state != State::kDialling || !hosts_.alive(connection.from)) return;
  if (hosts_.defer(connection.from.node, [this, number, why] { dial_failed(number, why); })) return;
  close_at_sender(number);
  if (!connection.one_shot) sink_.peer_lost(connection.from.node, connection.to_ref, why);
}

void Network::schedule_arrival(Number number) {
  Connection& connection = connections_[number];
  const auto bytes = static_cast<double>(connection.items.back().bytes.size());
  const Duration wire = Duration::from_seconds(bytes / hosts_[connection.from.node].link.up);
  const Time when = queue_.now() + hosts_.delay(connection.from.node, connection.to.node) + wire;
  connection.last_arrival = std::max(connection.last_arrival, when);
  queue_.at(connection.last_arrival, [this, number] { arrive(number); });
}

// There are at least as many arrivals as items, and each takes the front: so order holds whatever delays them.
void Network::arrive(Number number) {
  Connection& connection = connections_[number];
  const NodeIndex to = connection.to.node;
  if (!connection.receiver_open || !hosts_.alive(connection.to) || connection.items.empty()) return;
  if (!hosts_.path_open(connection.from.node, to)) {
    ++connection.held;
    return;
  }
  if (hosts_.defer(to, [this, number] { arrive(number); })) return;
  const Item item = std::move(connection.items.front());
  connection.items.pop_front();
  if (!item.close) {
    sink_.message_arrived(to, connection.from_ref, item.bytes);
    return;
  }
  connection.receiver_open = false;
  if (!connection.one_shot) sink_.peer_lost(to, connection.from_ref, Loss::kClosed);
}

void Network::forget_outgoing(Number number) {
  const Connection& connection = connections_[number];
  auto& outgoing = outgoing_[connection.from.node];
  const auto it = outgoing.find(connection.to_ref);
  if (it != outgoing.end() && it->second == number) outgoing.erase(it);
}

// What is not yet with the receiver's kernel is gone; how much that is, nobody can say.
void Network::lose_tail(Connection& connection) {
  if (!random_.chance(0.5)) return;
  const std::size_t keep = random_.below(connection.items.size() + 1);
  while (connection.items.size() > keep) connection.items.pop_back();
}

void Network::close_at_sender(Number number) {
  Connection& connection = connections_[number];
  if (!connection.sender_open) return;
  connection.sender_open = false;
  if (!connection.one_shot) forget_outgoing(number);
  if (connection.state == State::kDialling) connection.items.clear();
  connection.state = State::kClosed;
  if (!connection.receiver_open) return;
  lose_tail(connection);
  connection.items.push_back({{}, true});
  schedule_arrival(number);
}

void Network::close_at_receiver(Number number) {
  Connection& connection = connections_[number];
  if (!connection.receiver_open) return;
  connection.receiver_open = false;
  connection.items.clear();
  queue_.after(hosts_.delay(connection.to.node, connection.from.node), [this, number] { tell_sender(number); });
}

void Network::tell_sender(Number number) {
  Connection& connection = connections_[number];
  // A dial that is still under way learns of it when it would have been opened.
  if (!connection.sender_open || connection.state != State::kOpen || !hosts_.alive(connection.from)) return;
  if (!hosts_.path_open(connection.to.node, connection.from.node)) {
    connection.news_for_sender_held = true;
    return;
  }
  if (hosts_.defer(connection.from.node, [this, number] { tell_sender(number); })) return;
  connection.sender_open = false;
  connection.state = State::kClosed;
  connection.items.clear();
  forget_outgoing(number);
  if (!connection.one_shot) sink_.peer_lost(connection.from.node, connection.to_ref, Loss::kClosed);
}

void Network::disconnect(NodeIndex self, NodeId peer) {
  const ProcessId process = hosts_.process(self);
  for (Number number = 0; number < connections_.size(); ++number) {
    const Connection& connection = connections_[number];
    if (connection.from == process && connection.to_ref.id == peer) close_at_sender(number);
    if (connection.to == process && connection.from_ref.id == peer) close_at_receiver(number);
  }
}

void Network::disconnect_all(NodeIndex self) {
  const ProcessId process = hosts_.process(self);
  for (Number number = 0; number < connections_.size(); ++number) {
    if (connections_[number].from == process) close_at_sender(number);
    if (connections_[number].to == process) close_at_receiver(number);
  }
}

void Network::process_died(NodeIndex node, bool with_machine) {
  const ProcessId process = hosts_.process(node);
  for (Number number = 0; number < connections_.size(); ++number) {
    Connection& connection = connections_[number];
    if (connection.from == process && connection.sender_open) {
      // A kernel goes on sending for a dead process, but not for itself. The close is then held back, too, until the
      // machine answers again.
      if (with_machine) connection.items.clear();
      close_at_sender(number);
    }
    if (connection.to == process) close_at_receiver(number);
  }
}

void Network::break_between(NodeIndex a, NodeIndex b) {
  for (Number number = 0; number < connections_.size(); ++number) {
    Connection& connection = connections_[number];
    const bool forth = connection.from.node == a && connection.to.node == b;
    const bool back = connection.from.node == b && connection.to.node == a;
    if ((!forth && !back) || connection.state != State::kOpen || !connection.receiver_open) continue;
    lose_tail(connection);
    connection.items.push_back({{}, true});
    schedule_arrival(number);
    queue_.after(hosts_.delay(a, b) + hosts_.delay(b, a), [this, number] { tell_sender(number); });
  }
}

void Network::paths_changed() {
  for (Number number = 0; number < connections_.size(); ++number) {
    Connection& connection = connections_[number];
    if (connection.to.node == kNobody) continue;
    if (connection.held > 0 && hosts_.path_open(connection.from.node, connection.to.node)) {
      const Duration wait = retransmission();
      for (; connection.held > 0; --connection.held) queue_.after(wait, [this, number] { arrive(number); });
    }
    if (connection.news_for_sender_held && hosts_.path_open(connection.to.node, connection.from.node)) {
      connection.news_for_sender_held = false;
      queue_.after(retransmission(), [this, number] { tell_sender(number); });
    }
  }
}

std::uint64_t Network::backlog(NodeIndex from, NodeRef to) const {
  const auto number = outgoing_[from].find(to);
  if (number == outgoing_[from].end()) return 0;
  std::uint64_t bytes = 0;
  for (const Item& item : connections_[number->second].items) bytes += item.bytes.size();
  return bytes;
}

std::size_t Network::open_connections() const {
  return static_cast<std::size_t>(std::count_if(connections_.begin(), connections_.end(),
                                                [](const Connection& c) { return c.state == State::kOpen; }));
}

}  // namespace hoplite::sim
