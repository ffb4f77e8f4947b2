#include "hoplite/status.h"

#include "client/states.h"
#include "protocol/metadata.h"

namespace hoplite {
namespace {

using client::Call;
using client::Link;
using client::Sending;

Result<StoreStatus> to_store_status(const Link&, const Call& call, Result<ipc::Reply> reply) {
  if (!reply) return reply.error();
  const auto* answer = std::get_if<ipc::Status>(&*reply);
  if (answer == nullptr) return client::unexpected(call.subject);
  StoreStatus status;
  status.node = answer->node.id.to_string();
  status.incarnation = answer->node.incarnation;
  status.address = answer->listen;
  status.software = answer->version;
  status.pid = answer->pid;
  status.uptime = std::chrono::milliseconds(answer->uptime_ms);
  status.capacity_bytes = answer->capacity;
  status.used_bytes = answer->used;
  status.pinned_bytes = answer->pinned;
  status.objects = answer->objects;
  status.growing = answer->growing;
  status.clients = answer->clients;
  status.members = answer->members;
  status.directory_entries = answer->directory;
  status.waiting = answer->waiting;
  status.bytes_in = answer->bytes_in;
  status.bytes_out = answer->bytes_out;
  status.max_rate = answer->max_rate;
  return status;
}

Result<ObjectList> to_list(const Link&, const Call& call, Result<ipc::Reply> reply) {
  if (!reply) return reply.error();
  const auto* answer = std::get_if<ipc::Objects>(&*reply);
  if (answer == nullptr) return client::unexpected(call.subject);
  ObjectList list;
  list.truncated = answer->truncated;
  list.objects.reserve(answer->objects.size());
  for (const ipc::ObjectInfo& info : answer->objects) {
    Metadata metadata = decode_metadata(info.meta);
    list.objects.push_back({info.id,
                            info.size,
                            info.bytes,
                            info.state,
                            info.primary,
                            info.views,
                            info.children,
                            name_of(info.parent),
                            name_of(info.home),
                            std::move(metadata.text),
                            {metadata.type, std::move(metadata.shape)}});
  }
  return list;
}

Result<std::vector<NodeStatus>> to_nodes(const Link&, const Call& call, Result<ipc::Reply> reply) {
  if (!reply) return reply.error();
  const auto* answer = std::get_if<ipc::Nodes>(&*reply);
  if (answer == nullptr) return client::unexpected(call.subject);
  std::vector<NodeStatus> nodes;
  nodes.reserve(answer->nodes.size());
  for (const ipc::NodeInfo& info : answer->nodes)
    nodes.push_back({info.ref.id.to_string(), info.ref.incarnation, info.address.to_string(), info.life == Life::kAlive,
                     info.self, info.rate, std::chrono::microseconds(info.rtt_us)});
  return nodes;
}

Future<StoreStatus> start_status(const Link& connection, const Timeout& timeout, Sending sending) {
  const auto call = client::new_call({"status", {}}, client::Deadline::after(timeout));
  return client::start<StoreStatus, to_store_status>(connection, call, ipc::GetStatus{}, sending);
}

Future<ObjectList> start_objects(const Link& connection, const Timeout& timeout, Sending sending) {
  const auto call = client::new_call({"objects", {}}, client::Deadline::after(timeout));
  return client::start<ObjectList, to_list>(connection, call, ipc::GetObjects{}, sending);
}

Future<std::vector<NodeStatus>> start_nodes(const Link& connection, const Timeout& timeout, Sending sending) {
  const auto call = client::new_call({"nodes", {}}, client::Deadline::after(timeout));
  return client::start<std::vector<NodeStatus>, to_nodes>(connection, call, ipc::GetNodes{}, sending);
}

}  // namespace

std::string_view to_string(CopyState state) {
  switch (state) {
    case CopyState::kKnows: return "known";
    case CopyState::kGrowing: return "fetching";
    case CopyState::kWriting: return "writing";
    case CopyState::kComplete: return "complete";
  }
  return "unknown";
}

Result<StoreStatus> Client::status(Timeout timeout) {
  return start_status(connection_, timeout, Sending::kByWaiter).get();
}

Future<StoreStatus> Client::status_async(Timeout timeout) {
  return start_status(connection_, timeout, Sending::kBatched);
}

Result<ObjectList> Client::objects(Timeout timeout) {
  return start_objects(connection_, timeout, Sending::kByWaiter).get();
}

Future<ObjectList> Client::objects_async(Timeout timeout) {
  return start_objects(connection_, timeout, Sending::kBatched);
}

Result<std::vector<NodeStatus>> Client::nodes(Timeout timeout) {
  return start_nodes(connection_, timeout, Sending::kByWaiter).get();
}

Future<std::vector<NodeStatus>> Client::nodes_async(Timeout timeout) {
  return start_nodes(connection_, timeout, Sending::kBatched);
}

}  // namespace hoplite
