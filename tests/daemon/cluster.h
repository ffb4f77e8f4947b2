// Real daemons for tests: started on loopback with ports chosen by the kernel, sockets and logs in a folder of their own.
//
// Nothing survives a test: daemons get SIGKILL when the test's thread ends (PR_SET_PDEATHSIG), and the destructor ends them
// by pid and removes the folder. After a failure the daemons' logs are printed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hoplite/client.h"

namespace hoplite::testing {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): for tests only

struct DaemonSetup {
  std::string listen = "127.0.0.1:0";
  std::vector<std::string> join = {};
  std::vector<std::string> arguments = {};                            // further ones
  std::vector<std::pair<std::string, std::string>> environment = {};  // added to ours
  std::string socket = {};                                            // empty: one in the cluster's folder
  std::string memory = "256MiB";
};

class Daemon {
 public:
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  pid_t pid() const { return pid_; }
  const std::string& socket() const { return socket_; }
  const std::string& address() const { return address_; }
  const std::string& log_file() const { return log_file_; }
  std::string log() const;
  bool running();

  void kill();      // SIGKILL, and waits until it is gone
  void pause();     // SIGSTOP
  void resume();    // SIGCONT
  int terminate();  // SIGTERM, and waits; the exit status, -1 if it had to be killed
  void signal(int number) const;
  std::optional<int> wait_for_exit(std::chrono::milliseconds timeout);  // its status, as waitpid gives it

  Client connect() const;  // throws if it fails: a test cannot go on
  Result<Client> try_connect(const std::string& token = "") const;

 private:
  friend class Cluster;
  Daemon() = default;

  pid_t pid_ = -1;
  std::string socket_;
  std::string address_;
  std::string log_file_;
};

class Cluster {
 public:
  Cluster();
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // Starts one that joins the first running daemon, unless `setup` says whom to join. Throws with the daemon's own words
  // if it does not come up.
  Daemon& start(DaemonSetup setup = {});
  // The same; the daemon's error instead of an exception.
  Result<Daemon*> try_start(DaemonSetup setup = {});
  // `count` daemons that know each other.
  void start_many(std::size_t count, const DaemonSetup& setup = {});
  // Until every running daemon counts `members` live nodes.
  void wait_for_members(std::size_t members);

  Daemon& operator[](std::size_t i) { return *daemons_.at(i); }
  std::size_t size() const { return daemons_.size(); }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
  std::vector<std::unique_ptr<Daemon>> daemons_;
};

// `size` bytes that follow from `seed`.
std::vector<std::byte> pattern(std::size_t size, std::uint64_t seed);
// Compares without a copy of the expected bytes, so that it works for gigabytes. Empty: equal; else the first difference.
std::string difference(std::span<const std::byte> bytes, std::size_t size, std::uint64_t seed);

// Calls `holds` until it is true; false after `timeout`. Long timeouts cost nothing when all is well.
bool eventually(const std::function<bool()>& holds, std::chrono::milliseconds timeout = 30s);

// How many bytes of the object the daemon has; 0 if it does not know it.
std::uint64_t bytes_at(Client& client, ObjectId id);

// Memory of the process outside the arena, which is file-backed.
std::uint64_t anonymous_kib(pid_t pid);

}  // namespace hoplite::testing
