// What Transport::stats reports, counted by all threads.
#pragma once

#include <atomic>
#include <cstdint>

namespace hoplite::tcp {

struct Counters {
  std::atomic<std::uint64_t> bulk_bytes_in = 0;
  std::atomic<std::uint64_t> bulk_bytes_out = 0;
  std::atomic<std::uint64_t> connections = 0;
  std::atomic<std::uint64_t> rejected = 0;
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
