#include "sim/quiet_checks.h"

#include <map>

namespace hoplite::sim {
namespace {

struct Truth {
  std::set<NodeRef> complete;
  std::size_t primaries = 0;
  std::set<NodeId> homes;  // as the holders see it
};

std::map<ObjectId, Truth> copies_that_exist(World& world) {
  std::map<ObjectId, Truth> truth;
  for (const NodeIndex node : world.running_nodes()) {
    for (const ipc::ObjectInfo& info : world.agent(node).objects()) {
      if (info.state != CopyState::kComplete) continue;
      Truth& object = truth[info.id];
      object.complete.insert(world.agent(node).self());
      object.primaries += info.primary ? 1 : 0;
      object.homes.insert(info.home);
    }
  }
  return truth;
}

std::string names_of(World& world, const std::set<NodeRef>& nodes) {
  std::string text;
  for (const NodeRef& node : nodes) text += (text.empty() ? "" : " ") + world.trace().names().node(node);
  return text.empty() ? "nobody" : text;
}

std::string compare_entry(World& world, NodeIndex node, const DirectorySummary& entry, const Truth& truth) {
  const std::string who = node_name(node) + " lists " + world.trace().names().object(entry.id);
  if (!truth.homes.empty() && !truth.homes.contains(world.agent(node).self().id)) return who + ", but is not its home";
  std::set<NodeRef> listed;
  std::size_t primaries = 0;
  for (const DirectoryHolder& holder : entry.holders) {
    if (holder.state != CopyState::kComplete) continue;
    listed.insert(holder.ref);
    primaries += holder.primary ? 1 : 0;
  }
  if (listed != truth.complete)
    return who + " complete on " + names_of(world, listed) + ", but it is on " + names_of(world, truth.complete);
  if (!truth.complete.empty() && (primaries != 1 || truth.primaries != 1))
    return who + " with " + std::to_string(primaries) + " primaries, and there are " + std::to_string(truth.primaries);
  return "";
}

}  // namespace

bool members_converged(World& world) {
  std::set<NodeRef> alive;
  for (const NodeIndex node : world.running_nodes()) alive.insert(world.agent(node).self());
  for (const NodeIndex node : world.running_nodes()) {
    std::set<NodeRef> known;
    for (const ipc::NodeInfo& info : world.agent(node).nodes())
      if (info.life == Life::kAlive) known.insert(info.ref);
    if (known != alive) return false;
  }
  return true;
}

std::string members_of_all(World& world) {
  std::string text;
  for (const NodeIndex node : world.running_nodes()) {
    text += (text.empty() ? "" : "; ") + world.trace().names().node(world.agent(node).self()) + " knows";
    for (const ipc::NodeInfo& info : world.agent(node).nodes())
      if (info.life == Life::kAlive) text += " " + world.trace().names().node(info.ref);
  }
  return text;
}

std::string directory_disagreement(World& world) {
  const std::map<ObjectId, Truth> truth = copies_that_exist(world);
  std::set<ObjectId> listed;
  for (const NodeIndex node : world.running_nodes()) {
    for (const DirectorySummary& entry : world.agent(node).directory()) {
      const auto it = truth.find(entry.id);
      const std::string wrong = compare_entry(world, node, entry, it == truth.end() ? Truth{} : it->second);
      if (!wrong.empty()) return wrong;
      listed.insert(entry.id);
    }
  }
  for (const auto& [id, object] : truth) {
    const std::string what = world.trace().names().object(id) + " is on " + names_of(world, object.complete);
    if (object.homes.size() > 1) return what + ", which disagree about its home";
    if (!listed.contains(id)) return what + ", but no home lists it";
  }
  return "";
}

std::set<ObjectId> ids_with_copies(World& world) {
  std::set<ObjectId> ids;
  for (const NodeIndex node : world.running_nodes())
    for (const ipc::ObjectInfo& info : world.agent(node).objects()) ids.insert(info.id);
  return ids;
}

std::string leftovers(World& world, NodeIndex node) {
  const ipc::Status status = world.agent(node).status();
  const dataplane::DataPlane& data = world.plane(node).data();
  if (status.used == 0 && status.waiting == 0 && status.growing == 0 && data.open_copies() == 0 &&
      data.active_pulls() == 0 && data.active_serves() == 0)
    return "";
  std::string text = node_name(node) + " has " + std::to_string(status.used) + " B reserved, " +
                     std::to_string(status.waiting) + " requests, " + std::to_string(data.open_copies()) +
                     " copies open, " + std::to_string(data.active_pulls()) + " pulls, " +
                     std::to_string(data.active_serves()) + " serves;";
  for (const ipc::ObjectInfo& info : world.agent(node).objects())
    text += " " + world.trace().names().object(info.id) + " (" + std::to_string(info.bytes) + " of " +
            std::to_string(info.size) + " B, " + std::to_string(info.views) + " views)";
  return text;
}

std::string leftovers(World& world) {
  for (const NodeIndex node : world.running_nodes())
    if (std::string text = leftovers(world, node); !text.empty()) return text;
  return "";
}

}  // namespace hoplite::sim
