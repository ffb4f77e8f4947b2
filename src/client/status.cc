#include "hoplite/status.h"

#include "client/connection.h"
#include "hoplite/client.h"
#include "protocol/metadata.h"

namespace hoplite {
namespace {

using client::Deadline;

// Asks for one kind of facts.
template <typename Answer>
Result<Answer> ask(client::Connection& connection, const char* verb, const client::Request& request,
                   const Timeout& timeout) {
  auto reply = connection.ask({verb, {}}, request, Deadline::after(timeout));
  if (!reply) return reply.error();
  auto* answer = std::get_if<Answer>(&*reply);
  if (answer == nullptr) return Error{Code::kInternal, std::string(verb) + ": the daemon's reply is of the wrong kind"};
  return std::move(*answer);
}

CopyPhase phase_of(CopyState state) {
  switch (state) {
    case CopyState::kKnows: return CopyPhase::kKnown;
    case CopyState::kGrowing: return CopyPhase::kFetching;
    case CopyState::kWriting: return CopyPhase::kWriting;
    case CopyState::kComplete: return CopyPhase::kComplete;
  }
  return CopyPhase::kKnown;
}

}  // namespace

const char* copy_phase_name(CopyPhase phase) {
  switch (phase) {
    case CopyPhase::kKnown: return "known";
    case CopyPhase::kFetching: return "fetching";
    case CopyPhase::kWriting: return "writing";
    case CopyPhase::kComplete: return "complete";
  }
  return "";
}

Result<StoreStatus> Client::status(Timeout timeout) {
  auto answer = ask<client::Status>(*connection_, "status", client::GetStatus{}, timeout);
  if (!answer) return answer.error();
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

Result<ObjectList> Client::objects(Timeout timeout) {
  auto answer = ask<client::Objects>(*connection_, "objects", client::GetObjects{}, timeout);
  if (!answer) return answer.error();
  ObjectList list;
  list.truncated = answer->truncated;
  list.objects.reserve(answer->objects.size());
  for (const client::ObjectInfo& info : answer->objects) {
    Metadata metadata = decode_metadata(info.meta);
    list.objects.push_back({info.id,
                            info.size,
                            info.bytes,
                            phase_of(info.state),
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

Result<std::vector<NodeStatus>> Client::nodes(Timeout timeout) {
  auto answer = ask<client::Nodes>(*connection_, "nodes", client::GetNodes{}, timeout);
  if (!answer) return answer.error();
  std::vector<NodeStatus> nodes;
  nodes.reserve(answer->nodes.size());
  for (const client::NodeInfo& info : answer->nodes)
    nodes.push_back({info.ref.id.to_string(), info.ref.incarnation, info.address.to_string(), info.life == Life::kAlive,
                     info.self, info.rate, std::chrono::microseconds(info.rtt_us)});
  return nodes;
}

}  // namespace hoplite
