// Tells the operator about refused connections, once for each host and hour, whatever it sends.
//
// Loop thread only.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "base/time.h"

namespace hoplite::tcp {

class StrangerLog {
 public:
  explicit StrangerLog(std::function<void(std::string)> log) : log_(std::move(log)) {}

  void refused(Time now, const std::string& host, const std::string& why);

 private:
  std::function<void(std::string)> log_;
  std::set<std::string> told_;  // hosts
  Time forget_at_;
};

}  // namespace hoplite::tcp
