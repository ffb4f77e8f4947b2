// A local cluster for the length of a few acts, with a client at each of its nodes.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "common/local_cluster.h"
#include "common/terminal.h"
#include "hoplite/client.h"

namespace hoplite {

class Attendants {
 public:
  static Result<Attendants> attach(const LocalCluster& cluster);

  std::size_t size() const { return clients_.size(); }
  Client& at(std::size_t node) { return clients_[node]; }
  // -1 for an id that is not one of ours.
  int index_of(const std::string& node_id) const;

 private:
  std::vector<Client> clients_;
  std::vector<std::string> node_ids_;
};

// Starts the daemons, and says so. kCancelled if somebody interrupts it.
Result<Attendants> start_and_attach(LocalCluster& cluster, const LocalClusterOptions& options,
                                    const Interrupts& interrupts);

// Starts the daemons, acts, and stops them: the act's result, or why they could not be started.
template <typename Act>
auto on_a_local_cluster(const LocalClusterOptions& options, const Interrupts& interrupts, Act act)
    -> std::invoke_result_t<Act, LocalCluster&, Attendants&> {
  LocalCluster cluster(options);
  auto nodes = start_and_attach(cluster, options, interrupts);
  if (!nodes) return nodes.error();
  auto result = act(cluster, *nodes);
  // The daemons end before the clients do: gets that are under way fail at once.
  cluster.stop();
  return result;
}

}  // namespace hoplite
