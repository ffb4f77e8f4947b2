#include "transport/tcp/tcp_lanes.h"

#include <utility>

namespace hoplite::tcp {

using dataplane::BufferPtr;
using dataplane::Lane;
using dataplane::LaneEvents;

TcpLanes::TcpLanes(const Environment& environment, const Identity& identity)
    : env_(environment),
      plane_({environment.options.arena, environment.options.arena_bytes, environment.options.io_threads}, *this) {
  const auto wake = [this](std::uint32_t lane, const BufferPtr& buffer) {
    threads_[lane]->run([buffer](Lane& other) { other.wake(*buffer); });
  };
  const auto refused = [this, alive = std::weak_ptr(alive_), &loop = env_.loop](std::string host, std::string why) {
    loop.post([this, alive, host = std::move(host), why = std::move(why)] {
      if (!alive.expired()) env_.log.refused(env_.loop.now(), host, why);
    });
  };
  for (std::uint32_t i = 0; i < env_.options.io_threads; ++i) {
    const IoThread::Options options{i,
                                    env_.options.busy_poll,
                                    env_.options.limits,
                                    env_.limiter,
                                    env_.meters,
                                    env_.counters,
                                    [this](LaneEvents events) { deliver(std::move(events)); },
                                    wake,
                                    refused};
    threads_.push_back(std::make_unique<IoThread>(options, identity));
  }
  for (auto& thread : threads_) thread->start();
}

// All threads stop before any of them is destroyed: they wake each other.
TcpLanes::~TcpLanes() {
  for (auto& thread : threads_) thread->stop();
}

void TcpLanes::adopt(UniqueFd fd, NodeRef child) {
  const auto [channel, lane] = plane_.new_channel();
  threads_[lane]->adopt(std::move(fd), child, channel);
}

void TcpLanes::rename(const Identity& identity) {
  plane_.disconnect_all();
  for (auto& thread : threads_) thread->rename(identity);
}

void TcpLanes::run(std::uint32_t lane, std::function<void(Lane&)> command) { threads_[lane]->run(std::move(command)); }

void TcpLanes::deliver(LaneEvents events) {
  env_.loop.post([this, alive = std::weak_ptr(alive_), events = std::move(events)] {
    if (!alive.expired()) plane_.take(events);
  });
}

}  // namespace hoplite::tcp
