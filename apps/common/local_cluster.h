// Several daemons on this machine, for trying things out: on loopback ports, with sockets and logs in a temporary folder.
// Whatever happens, nothing is left behind: the destructor stops the daemons and removes the folder, and daemons whose
// parent was killed end by themselves.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/daemon_process.h"
#include "hoplite/error.h"

namespace hoplite {

struct LocalClusterOptions {
  int nodes = 3;
  std::uint64_t memory_bytes = 0;  // of each store
  std::uint64_t max_rate = 0;      // egress of each, bytes per second; 0: no limit
};

class LocalCluster {
 public:
  explicit LocalCluster(LocalClusterOptions options) : options_(options) {}
  LocalCluster(const LocalCluster&) = delete;
  LocalCluster& operator=(const LocalCluster&) = delete;
  ~LocalCluster() { stop(); }

  struct Node {
    DaemonProcess process;
    std::string log_file;
    bool running = false;
  };

  // Starts them one after another and waits until each sees all the others; `interrupted` is asked in between.
  Result<void> start(const std::function<bool()>& interrupted);
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::string& folder() const { return folder_; }

  // kill -9: as if that machine had lost its power.
  void kill(int node);
  // The nodes that have ended since the last call, with a word about how.
  std::vector<std::pair<int, std::string>> reap();
  // SIGTERM to all, SIGKILL to those that do not end; removes the folder.
  void stop();

 private:
  Result<void> start_node(int index);
  Result<void> wait_until_joined(const std::function<bool()>& interrupted);

  LocalClusterOptions options_;
  std::string folder_;
  std::vector<Node> nodes_;
};

}  // namespace hoplite
