// A thread with a loop and a lane of the data plane on it, over TCP.
#pragma once

#include <functional>
#include <thread>

#include "dataplane/lane.h"
#include "transport/loop.h"
#include "transport/tcp/tcp_link.h"

namespace hoplite::tcp {

class IoThread final : private dataplane::Lane::Host {
 public:
  struct Options {  // the references outlive it; the functions are thread-safe
    std::uint32_t index = 0;
    bool busy_poll = false;
    const Limits& limits;
    RateLimiter& limiter;
    RateMeters& meters;
    Counters& counters;
    std::function<void(dataplane::LaneEvents)> deliver;
    std::function<void(std::uint32_t lane, dataplane::BufferPtr buffer)> wake;
    std::function<void(std::string host, std::string why)> refused;  // a peer that is to be told to the operator
  };

  // Runs from `start` on, until it is stopped or destroyed.
  IoThread(const Options& options, const Identity& identity);
  ~IoThread();
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  void start();
  void stop();

  // These run on the thread, in order. Thread-safe; after `stop` they do nothing.
  void run(std::function<void(dataplane::Lane&)> command);
  // A connection that a child dialled.
  void adopt(UniqueFd fd, NodeRef child, ChannelId channel);
  // From now on we are `identity`.
  void rename(const Identity& identity);

 private:
  Time now() const override { return loop_.now(); }
  void deliver(dataplane::LaneEvents events) override { options_.deliver(std::move(events)); }
  void wake(std::uint32_t lane, dataplane::BufferPtr buffer) override { options_.wake(lane, std::move(buffer)); }
  void after_batch();
  void arm_timer();

  const Options options_;
  Loop loop_;
  Identity identity_;
  TcpDialler dialler_;
  dataplane::Lane lane_;
  Loop::TimerId timer_ = 0;
  Time timer_at_ = Time::never();
  std::thread thread_;
};

}  // namespace hoplite::tcp
