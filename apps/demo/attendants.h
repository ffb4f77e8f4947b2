// A local cluster for the length of a few acts, with a client at each of its nodes.
#pragma once

#include <functional>
#include <string>
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

// Starts the daemons, acts, and stops them. kCancelled if somebody interrupts the start.
Result<void> on_a_local_cluster(const LocalClusterOptions& options, const Interrupts& interrupts,
                                const std::function<Result<void>(LocalCluster&, Attendants&)>& act);

}  // namespace hoplite
