// SIGTERM and SIGINT, which end the daemon, and SIGHUP, which does not, as events of a loop.
//
// Construct it before any thread starts: threads inherit the mask that keeps these signals from their default action.
// SIGPIPE is ignored from then on: writing to a connection that is gone is an ordinary error.
#pragma once

#include <functional>

#include "base/unique_fd.h"
#include "transport/loop.h"

namespace hoplite {

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  struct Handlers {
    std::function<void()> stop;
    std::function<void()> hang_up;
  };
  // The handlers are called on the loop thread for each signal, those that came before included. `loop` must outlive this
  // object, or `detach` must be called first.
  void attach(Loop& loop, Handlers handlers);
  void detach();

 private:
  UniqueFd descriptor_;
  Loop* loop_ = nullptr;
};

}  // namespace hoplite
