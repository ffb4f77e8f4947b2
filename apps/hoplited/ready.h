// How a daemon tells the process that started it that it listens, or why it does not: one line on the descriptor named by
// the environment variable HOPLITE_READY_FD, "ready SOCKET PID ADDRESS" or "error MESSAGE".
#pragma once

#include <string>

#include "base/unique_fd.h"

namespace hoplite {

class ReadyPipe {
 public:
  // Nothing is said if the variable is not set.
  static ReadyPipe from_environment();

  void ready(const std::string& socket, const std::string& address);
  // False: nobody was told.
  bool error(const std::string& message);

 private:
  bool say(std::string line);

  UniqueFd pipe_;
};

}  // namespace hoplite
