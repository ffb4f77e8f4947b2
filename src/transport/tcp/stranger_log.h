// Tells the operator about refused connections, once for each host and hour, whatever it sends.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/limits.h"
#include "transport/loop.h"

namespace hoplite::tcp {

class StrangerLog {
 public:
  // `log` is called on the loop's thread; it may be empty.
  StrangerLog(Loop& loop, const SocketLimits& limits, std::function<void(std::string)> log)
      : loop_(loop), limits_(limits), log_(std::move(log)) {}

  // Thread-safe.
  void refused(std::string host, std::string why);

 private:
  void tell(const std::string& host, const std::string& why);

  Loop& loop_;
  const SocketLimits limits_;
  const std::function<void(std::string)> log_;
  std::set<std::string> told_;  // hosts
  Time forget_at_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace hoplite::tcp
