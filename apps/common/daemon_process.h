// Starting `hoplited` and knowing when it is ready.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "hoplite/error.h"

namespace hoplite {

// Beside our own program, else in $PATH.
Result<std::string> find_daemon();

struct SpawnOptions {
  std::vector<std::string> arguments;  // of hoplited
  std::string output_file;             // its standard output and error are appended here
  bool detached = false;               // in a session of its own, to outlive us; else it is ended when we end
  std::chrono::seconds ready_timeout{30};
};

struct DaemonProcess {
  pid_t pid = -1;
  std::string socket;
  std::string address;
};

// Returns when the daemon listens, or with the reason why it does not.
Result<DaemonProcess> spawn_daemon(const SpawnOptions& options);

// Replaces this process. Returns only if that fails.
Error exec_daemon(const std::vector<std::string>& arguments);

// "ready SOCKET PID ADDRESS" or "error MESSAGE", as the daemon says through HOPLITE_READY_FD.
Result<DaemonProcess> parse_ready_line(const std::string& line);

}  // namespace hoplite
