// What the connections and threads of one transport share. Its parts are thread-safe, but for the handler, which is the loop
// thread's.
#pragma once

#include <atomic>
#include <cstdint>

#include "transport/tcp/rate_limiter.h"
#include "transport/tcp/rate_meter.h"
#include "transport/tcp/stranger_log.h"
#include "transport/transport.h"

namespace hoplite::tcp {

// What Transport::stats reports.
struct Counters {
  std::atomic<std::uint64_t> bulk_bytes_in = 0;
  std::atomic<std::uint64_t> bulk_bytes_out = 0;
  std::atomic<std::uint64_t> connections = 0;
  std::atomic<std::uint64_t> rejected = 0;
};

struct Shared {
  Shared(Loop& the_loop, TransportHandler& the_handler, const TcpOptions& the_options)
      : loop(the_loop),
        handler(the_handler),
        options(the_options),
        limiter(the_options.max_rate),
        strangers(the_loop, options.limits.sockets, the_options.log) {}

  Loop& loop;
  TransportHandler& handler;
  const TcpOptions options;
  RateLimiter limiter;
  RateMeters meters;
  Counters counters;
  StrangerLog strangers;
};

// Counts an established connection for as long as it lives.
class ConnectionCount {
 public:
  explicit ConnectionCount(Counters& counters) : counters_(counters) { ++counters_.connections; }
  ~ConnectionCount() { --counters_.connections; }
  ConnectionCount(const ConnectionCount&) = delete;
  ConnectionCount& operator=(const ConnectionCount&) = delete;

 private:
  Counters& counters_;
};

}  // namespace hoplite::tcp
