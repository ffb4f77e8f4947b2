// A token bucket for all that a daemon sends. Thread-safe.
//
// It is kept as a time: when everything granted so far would have left at the asked rate. That time may lie behind now
// by at most the burst, so the rate over any period is exceeded by at most one burst. It may lie ahead of now: whoever
// asks when nothing is left gets the next piece for later, so those who wait are served in turn.
#pragma once

#include <cstdint>
#include <mutex>

#include "base/time.h"

namespace hoplite::tcp {

class RateLimiter {
 public:
  // 0 = no limit.
  explicit RateLimiter(std::uint64_t bytes_per_second);

  bool unlimited() const { return rate_ == 0; }

  struct Grant {
    std::uint64_t bytes = 0;  // 1 to what was wanted
    Time at;                  // when they may be sent
  };
  Grant take(Time now, std::uint64_t wanted);
  // Of a grant that was not used up.
  void give_back(std::uint64_t bytes);
  // Sent already, as control messages are: what comes later waits the longer.
  void charge(Time now, std::uint64_t bytes);

  std::uint64_t burst_bytes() const { return burst_bytes_; }

 private:
  Duration time_for(std::uint64_t bytes) const;
  void skip_idle_time(Time now);

  const std::uint64_t rate_;
  const std::uint64_t burst_bytes_;
  const std::uint64_t worthwhile_bytes_;
  std::mutex mutex_;
  Time sent_until_;  // guarded by mutex_
};

}  // namespace hoplite::tcp
