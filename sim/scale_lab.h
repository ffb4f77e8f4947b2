// What measurements at scale have in common: very many nodes that are alike and know each other, objects of which only the
// sizes count, and a clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <ostream>
#include <string>

#include "sim/world.h"

namespace hoplite::sim {

struct Cluster {
  std::uint32_t nodes = 1;
  std::uint64_t size = 0;              // of every object
  std::uint64_t rate = 1'250'000'000;  // bytes per second, each way
  Duration latency = Duration::us(50);
  std::optional<std::uint64_t> piece_bytes = {};  // what one turn on a link sends, if not as usual
  std::optional<double> at_most = {};             // more than so many times the bound is a failure
  std::ostream* trace = nullptr;

  double transfer_s() const { return static_cast<double>(size) / static_cast<double>(rate); }
};
// "1000 nodes, 1GiB, 10Gbit/s, 50us one way"
std::ostream& operator<<(std::ostream& out, const Cluster& cluster);

struct ScaleOutcome {
  std::string failure;  // empty: everybody has it
  std::uint64_t events = 0;
  double wall_s = 0;  // how long the simulation itself took
};

// Of one of many hosts.
Address scale_address(NodeIndex node);

class ScaleLab : public WorldObserver {
 protected:
  // `pipes` times what a link holds in its latency, and four pieces, may be under way on it.
  static WorldOptions world_options(const Cluster& cluster, std::uint64_t piece_bytes, double pipes);
  // Each node with memory for `room` bytes.
  ScaleLab(const Cluster& cluster, const WorldOptions& options, std::uint64_t room);

  // As its own node would mint it.
  ObjectId id(NodeIndex node, std::uint64_t number) const {
    return {world_.hosts()[node].ref.id.value, std::uint64_t{1} << 32 | number};
  }
  void ask(NodeIndex node, ipc::Request request) { world_.ask(client(node), 1, std::move(request)); }
  // The first `count` nodes put an object each, and it is sealed. False, with the reason, if that fails.
  bool put(std::uint32_t count, std::uint64_t number);
  bool run_until(Duration step, Duration patience, const std::function<bool()>& there);
  bool failed() const { return !failure_.empty(); }
  // The first reason counts.
  void blame(const std::string& what) {
    if (!failed()) failure_ = what;
  }
  void end(ScaleOutcome& outcome) const;

  virtual void on_view(NodeIndex node) = 0;

  World world_;

 private:
  ClientKey client(NodeIndex node);
  void on_reply(ClientKey client, std::uint64_t request, const ipc::Reply& reply) final;
  void on_leave(NodeIndex) final {}
  void on_death(NodeIndex) final {}
  void on_rename(NodeIndex node, NodeRef) final { blame(node_name(node) + " was given up"); }

  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();  // tidy: for wall_s
  const std::uint64_t size_;
  std::string failure_;
  std::map<NodeIndex, ClientKey> clients_;
  std::map<NodeIndex, CopyKey> created_;
  std::uint32_t sealed_ = 0;
};

}  // namespace hoplite::sim
