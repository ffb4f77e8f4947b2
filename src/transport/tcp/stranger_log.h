// Tells the operator about refused connections, once for each host and hour, whatever it sends.
//
// Loop thread only.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "base/limits.h"

namespace hoplite::tcp {

class StrangerLog {
 public:
  StrangerLog(const SocketLimits& limits, std::function<void(std::string)> log)
      : max_told_(limits.max_strangers), forget_after_(limits.strangers_for), log_(std::move(log)) {}

  void refused(Time now, const std::string& host, const std::string& why);

 private:
  const std::size_t max_told_;
  const Duration forget_after_;
  const std::function<void(std::string)> log_;
  std::set<std::string> told_;  // hosts
  Time forget_at_;
};

}  // namespace hoplite::tcp
