// The machines: which are on, what runs on them, and which of them can reach which.
//
// A host has an address for ever; processes come and go on it. What a process is to see goes through `defer`: a paused one
// (SIGSTOP) sees nothing, and everything at once when it goes on.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/address.h"
#include "base/node_id.h"
#include "base/random.h"
#include "sim/event_queue.h"

namespace hoplite::sim {

using NodeIndex = std::uint32_t;
constexpr NodeIndex kNobody = ~NodeIndex{0};

// One run of a process on a host.
struct ProcessId {
  NodeIndex node = kNobody;
  std::uint32_t start = 0;
  auto operator<=>(const ProcessId&) const = default;
};

struct LinkSpec {
  double up = 1e9;  // bytes per second
  double down = 1e9;
  Duration latency = Duration::us(50);  // one way, between two hosts with the same figure
  Duration jitter;                      // a message takes up to this much longer
};

struct Host {
  Address address;
  LinkSpec link;
  bool powered = true;   // false: nothing answers, not even the kernel
  bool running = false;  // a process listens
  bool paused = false;
  std::uint32_t start = 0;
  NodeRef ref;             // of the running process
  std::deque<Task> inbox;  // what waits for a paused process
};

class Hosts {
 public:
  explicit Hosts(Random& random) : random_(random) {}

  NodeIndex add(Address address, const LinkSpec& link) {
    const auto index = static_cast<NodeIndex>(hosts_.size());
    by_address_[address] = index;
    hosts_.push_back({});
    hosts_.back().address = std::move(address);
    hosts_.back().link = link;
    return index;
  }

  std::size_t size() const { return hosts_.size(); }
  Host& operator[](NodeIndex node) { return hosts_[node]; }
  const Host& operator[](NodeIndex node) const { return hosts_[node]; }
  // kNobody if there is no such host.
  NodeIndex find(const Address& address) const {
    const auto it = by_address_.find(address);
    return it == by_address_.end() ? kNobody : it->second;
  }

  ProcessId process(NodeIndex node) const { return {node, hosts_[node].start}; }
  bool alive(ProcessId process) const {
    return process.node != kNobody && hosts_[process.node].running && hosts_[process.node].start == process.start;
  }
  // True if the process is paused: then `task` runs when it goes on (and is forgotten if it dies).
  bool defer(NodeIndex node, Task task) {
    if (!hosts_[node].paused) return false;
    hosts_[node].inbox.push_back(task);
    return true;
  }

  void block(NodeIndex from, NodeIndex to) { blocked_.insert({from, to}); }
  void unblock(NodeIndex from, NodeIndex to) { blocked_.erase({from, to}); }
  // A firewall answers the dials of `from` to `to` with a reset.
  void refuse(NodeIndex from, NodeIndex to) { refused_.insert({from, to}); }
  void unblock_all() { blocked_.clear(), refused_.clear(); }
  bool any_blocked() const { return !blocked_.empty() || !refused_.empty(); }
  bool refuses(NodeIndex from, NodeIndex to) const { return !refused_.empty() && refused_.contains({from, to}); }
  // Whether packets of `from` arrive at `to`.
  bool path_open(NodeIndex from, NodeIndex to) const {
    return hosts_[from].powered && hosts_[to].powered && (blocked_.empty() || !blocked_.contains({from, to}));
  }

  // How long one packet takes now.
  Duration delay(NodeIndex from, NodeIndex to) {
    const LinkSpec& a = hosts_[from].link;
    const LinkSpec& b = hosts_[to].link;
    const Duration base = (a.latency + b.latency) / 2;
    const Duration jitter = a.jitter < b.jitter ? b.jitter : a.jitter;
    return jitter.ns == 0 ? base : base + Duration{static_cast<std::int64_t>(random_.below(jitter.ns))};
  }

 private:
  Random& random_;
  std::deque<Host> hosts_;
  std::map<Address, NodeIndex> by_address_;
  std::set<std::pair<NodeIndex, NodeIndex>> blocked_;
  std::set<std::pair<NodeIndex, NodeIndex>> refused_;
};

}  // namespace hoplite::sim
