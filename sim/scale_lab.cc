#include "sim/scale_lab.h"

namespace hoplite::sim {

Address scale_address(NodeIndex node) {
  return {"10." + std::to_string(node >> 16) + "." + std::to_string(node >> 8 & 255) + "." + std::to_string(node & 255),
          7411};
}

std::ostream& operator<<(std::ostream& out, const Cluster& cluster) {
  return out << cluster.nodes << " nodes, " << format_size(cluster.size) << ", "
             << format_rate(static_cast<double>(cluster.rate)) << ", " << format_duration(cluster.latency)
             << " one way";
}

WorldOptions ScaleLab::world_options(const Cluster& cluster, std::uint64_t piece_bytes, double pipes) {
  WorldOptions world;
  world.seed = 1;
  world.carry_bytes = false;
  world.limits.default_rate = cluster.rate;  // as measured by earlier transfers
  world.links.piece_bytes = piece_bytes;
  const double pipe = cluster.latency.seconds() * static_cast<double>(cluster.rate);
  world.links.window_bytes = piece_bytes * 4 + static_cast<std::uint64_t>(pipes * pipe);
  world.trace = cluster.trace;
  return world;
}

ScaleLab::ScaleLab(const Cluster& cluster, const WorldOptions& options, std::uint64_t room)
    : world_(options), size_(cluster.size) {
  world_.observe(this);
  LinkSpec link;
  link.up = link.down = static_cast<double>(cluster.rate);
  link.latency = cluster.latency;
  for (NodeIndex node = 0; node < cluster.nodes; ++node) world_.add_node({scale_address(node), link, room, {}});
  world_.start_acquainted();
}

ClientKey ScaleLab::client(NodeIndex node) {
  ClientKey& key = clients_[node];
  if (key == 0) key = world_.attach(node);
  return key;
}

bool ScaleLab::put(std::uint32_t count, std::uint64_t number) {
  created_.clear();
  sealed_ = 0;
  const Duration step = Duration::ms(1);
  const Duration patience = Duration::s(30);
  for (NodeIndex node = 0; node < count; ++node) ask(node, ipc::Create{id(node, number), size_, {}, kNoTimeout});
  if (!run_until(step, patience, [&] { return created_.size() == count; })) blame("the objects were not created");
  for (const auto& [node, copy] : created_) {
    ask(node, ipc::Advance{copy, size_});
    ask(node, ipc::Seal{copy, kNoTimeout});
  }
  if (!run_until(step, patience, [&] { return sealed_ == count; })) blame("the objects were not sealed");
  return !failed();
}

bool ScaleLab::run_until(Duration step, Duration patience, const std::function<bool()>& there) {
  const Time end = world_.now() + patience;
  while (!there() && !failed() && world_.now() < end)
    if (!world_.run_for(step)) break;
  if (world_.violation()) blame(world_.violation()->invariant + ": " + world_.violation()->text);
  return there();
}

void ScaleLab::end(ScaleOutcome& outcome) const {
  outcome.failure = failure_;
  outcome.events = world_.queue().executed();
  // tidy: how long the simulation itself takes
  outcome.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
}

void ScaleLab::on_reply(ClientKey client, std::uint64_t, const ipc::Reply& reply) {
  const NodeIndex node = world_.node_of(client);
  if (const auto* failure = std::get_if<ipc::Failed>(&reply)) blame(failure->message);
  if (const auto* created = std::get_if<ipc::Created>(&reply)) created_[node] = created->copy;
  if (std::holds_alternative<ipc::PutDone>(reply)) ++sealed_;
  if (std::holds_alternative<ipc::View>(reply)) on_view(node);
}

}  // namespace hoplite::sim
