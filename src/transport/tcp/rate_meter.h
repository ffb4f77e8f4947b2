// How fast bytes come from a peer, counting only the time in which they were flowing. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "base/node_id.h"
#include "base/time.h"
#include "transport/transport.h"

namespace hoplite::tcp {

class RateMeter {
 public:
  void record(Time now, std::uint64_t bytes);
  std::uint64_t bytes_per_second() const;  // 0 = not measured yet

 private:
  mutable std::mutex mutex_;
  Time last_;
  Time window_start_;
  std::uint64_t window_bytes_ = 0;
  double smoothed_ = 0;
};

class RateMeters {
 public:
  std::shared_ptr<RateMeter> of(NodeId node);
  void forget(NodeId node);
  PeerRates rates() const;

 private:
  mutable std::mutex mutex_;
  std::map<NodeId, std::shared_ptr<RateMeter>> meters_;
};

}  // namespace hoplite::tcp
