// What the daemon tells about itself: the agent's facts, and the transport's.
#include <unistd.h>

#include <algorithm>
#include <map>

#include "node/node.h"

namespace hoplite {
namespace {

// The fixed fields of a ipc::ObjectInfo on the wire, rounded up.
constexpr std::size_t kObjectInfoBytes = 96;

}  // namespace

ipc::Status Node::status() const {
  const Time now = monotonic_now();
  ipc::Status status = agent_->status();
  const TransportStats transport = transport_->stats();
  status.listen = address_.to_string();
  status.uptime_ms = static_cast<std::uint64_t>((now - started_).ns / 1'000'000);
  status.pid = static_cast<std::uint64_t>(::getpid());
  status.version = options_.software_version;
  status.clients = clients_->clients();
  status.bytes_in = transport.bulk_bytes_in;
  status.bytes_out = transport.bulk_bytes_out;
  status.max_rate = options_.max_rate;
  status.holders = holders();
  status.joining = agent_->is_joining();
  status.join_problems = status.joining ? joiner_->problems() : "";
  return status;
}

// A process may have several clients.
std::vector<ipc::Holder> Node::holders() const {
  std::map<pid_t, ipc::Holder> processes;
  for (const ClientHolding& holding : agent_->holdings()) {
    const Leases::Tenant tenant = clients_->process_of(holding.client);
    ipc::Holder& process = processes[tenant.pid];
    process.pid = static_cast<std::uint64_t>(tenant.pid);
    process.bytes += holding.bytes;
    process.views += holding.views;
    process.attached = process.attached || tenant.attached;
  }
  std::vector<ipc::Holder> largest;
  for (const auto& [pid, process] : processes) largest.push_back(process);
  std::ranges::stable_sort(largest, std::ranges::greater{}, &ipc::Holder::bytes);
  largest.resize(std::min(largest.size(), options_.limits.clients.max_holders));
  return largest;
}

ipc::Objects Node::objects() const {
  // One more than can fit tells that there are more.
  ipc::Objects answer{agent_->objects(options_.limits.max_message_bytes / kObjectInfoBytes + 1), false};
  std::size_t bytes = kObjectInfoBytes;
  std::size_t fit = 0;
  while (fit < answer.objects.size()) {
    bytes += kObjectInfoBytes + answer.objects[fit].meta.size();
    if (bytes > options_.limits.max_message_bytes) break;
    ++fit;
  }
  answer.truncated = fit < answer.objects.size();
  answer.objects.resize(fit);
  return answer;
}

ipc::Nodes Node::nodes() const {
  const PeerRates rates = transport_->rates();
  ipc::Nodes answer{agent_->nodes(), agent_->is_joining()};
  for (ipc::NodeInfo& node : answer.nodes) {
    if (const auto rate = rates.find(node.ref.id); rate != rates.end()) node.rate = rate->second;
  }
  return answer;
}

}  // namespace hoplite
