// A thread with a loop and a Worker on it.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "transport/loop.h"
#include "transport/tcp/worker.h"

namespace hoplite::tcp {

class IoThread {
 public:
  struct Options {
    std::uint32_t index = 0;
    bool busy_poll = false;
    const Limits& limits;
    RateLimiter& limiter;
    RateMeters& meters;
    Counters& counters;
    std::function<void(BulkEvents)> deliver;
    std::function<void(std::uint32_t thread, CopyPtr copy)> wake_other;
  };

  // Runs from `start` on, until it is stopped or destroyed.
  IoThread(const Options& options, const Identity& identity);
  ~IoThread();
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  void start();
  void stop();

  // Runs `command` on the thread, in order. Thread-safe; after `stop` it does nothing.
  void run(std::function<void(Worker&)> command);

 private:
  Loop loop_;
  Worker worker_;
  std::thread thread_;
};

}  // namespace hoplite::tcp
