#include "attendants.h"

#include <algorithm>
#include <cstdio>

#include "base/bytes.h"

namespace hoplite {

Result<Attendants> Attendants::attach(const LocalCluster& cluster) {
  Attendants attendants;
  for (const auto& node : cluster.nodes()) {
    auto client = Client::connect({.socket = node.process.socket});
    if (!client) return client.error();
    const auto status = client->status();
    if (!status) return status.error();
    attendants.node_ids_.push_back(status->node);
    attendants.clients_.push_back(*std::move(client));
  }
  return attendants;
}

int Attendants::index_of(const std::string& node_id) const {
  const auto found = std::find(node_ids_.begin(), node_ids_.end(), node_id);
  return found == node_ids_.end() ? -1 : static_cast<int>(found - node_ids_.begin());
}

Result<Attendants> start_and_attach(LocalCluster& cluster, const LocalClusterOptions& options,
                                    const Interrupts& interrupts) {
  std::printf("Starting %d daemons, each limited to %s ...\n", options.nodes,
              format_rate(static_cast<double>(options.max_rate)).c_str());
  std::fflush(stdout);
  if (auto started = cluster.start([&] { return interrupts.asked(); }); !started) return started.error();
  return Attendants::attach(cluster);
}

}  // namespace hoplite
