#include "hoplite/status.h"

#include "base/enum_names.h"
#include "client/states.h"
#include "protocol/metadata.h"

namespace hoplite {
namespace {

using client::Link;
using client::Sending;

StoreStatus to_store_status(const ipc::Status& answer) {
  StoreStatus status;
  status.node = answer.node.id.to_string();
  status.incarnation = answer.node.incarnation;
  status.address = answer.listen;
  status.software = answer.version;
  status.pid = answer.pid;
  status.uptime = std::chrono::milliseconds(answer.uptime_ms);
  status.capacity_bytes = answer.capacity;
  status.used_bytes = answer.used;
  status.pinned_bytes = answer.pinned;
  status.objects = answer.objects;
  status.growing = answer.growing;
  status.clients = answer.clients;
  status.members = answer.members;
  status.directory_entries = answer.directory;
  status.waiting = answer.waiting;
  status.bytes_in = answer.bytes_in;
  status.bytes_out = answer.bytes_out;
  status.max_rate = answer.max_rate;
  for (const ipc::Holder& holder : answer.holders)
    status.holders.push_back({holder.pid, holder.bytes, holder.views, holder.attached});
  status.joining = answer.joining;
  status.join_problems = answer.join_problems;
  return status;
}

ObjectList to_list(const ipc::Objects& answer) {
  ObjectList list;
  list.truncated = answer.truncated;
  list.objects.reserve(answer.objects.size());
  for (const ipc::ObjectInfo& info : answer.objects) {
    Metadata metadata = decode_metadata(info.meta);
    std::string name = name_in_metadata(info.id, info.meta);
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
                            {metadata.type, std::move(metadata.shape)},
                            std::move(name),
                            metadata.failure});
  }
  return list;
}

std::vector<NodeStatus> to_nodes(const ipc::Nodes& answer) {
  std::vector<NodeStatus> nodes;
  nodes.reserve(answer.nodes.size());
  for (const ipc::NodeInfo& info : answer.nodes)
    nodes.push_back({info.ref.id.to_string(), info.ref.incarnation, info.address.to_string(), info.life == Life::kAlive,
                     info.self, info.rate, std::chrono::microseconds(info.rtt_us), info.self && answer.joining});
  return nodes;
}

// Asks the daemon about itself.
template <typename Message, auto Made>
auto start_query(const Link& connection, const char* verb, const ipc::Request& request, const Timeout& timeout,
                 Sending sending) {
  const auto call = client::new_call({verb, {}}, client::Deadline::after(timeout));
  return client::start<client::from_reply<Message, Made>>(connection, call, request, sending);
}
constexpr auto start_status = start_query<ipc::Status, to_store_status>;
constexpr auto start_objects = start_query<ipc::Objects, to_list>;
constexpr auto start_nodes = start_query<ipc::Nodes, to_nodes>;

}  // namespace

std::string_view to_string(CopyState state) {
  static constexpr std::string_view kNames[] = {"known", "fetching", "writing", "complete"};
  return name_in(kNames, state);
}

Result<StoreStatus> Client::status(Timeout timeout) {
  return start_status(connection_, "status", ipc::GetStatus{}, timeout, Sending::kByWaiter).get();
}

Future<StoreStatus> Client::status_async(Timeout timeout) {
  return start_status(connection_, "status", ipc::GetStatus{}, timeout, Sending::kBatched);
}

Result<ObjectList> Client::objects(Timeout timeout) {
  return start_objects(connection_, "objects", ipc::GetObjects{}, timeout, Sending::kByWaiter).get();
}

Future<ObjectList> Client::objects_async(Timeout timeout) {
  return start_objects(connection_, "objects", ipc::GetObjects{}, timeout, Sending::kBatched);
}

Result<std::vector<NodeStatus>> Client::nodes(Timeout timeout) {
  return start_nodes(connection_, "nodes", ipc::GetNodes{}, timeout, Sending::kByWaiter).get();
}

Future<std::vector<NodeStatus>> Client::nodes_async(Timeout timeout) {
  return start_nodes(connection_, "nodes", ipc::GetNodes{}, timeout, Sending::kBatched);
}

}  // namespace hoplite
