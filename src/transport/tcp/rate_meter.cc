#include "transport/tcp/rate_meter.h"

namespace hoplite::tcp {
namespace {

constexpr Duration kIdleGap = Duration::ms(20);  // a longer pause is not part of a flow: the peer had nothing to send
constexpr Duration kWindow = Duration::ms(2);    // one sample; shorter ones would measure bursts of the network card
constexpr double kWeight = 0.2;                  // of a new sample: a change of rate is believed after about 10 ms

}  // namespace

void RateMeter::record(Time now, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const bool flowing = now - last_ < kIdleGap;
  last_ = now;
  if (!flowing) {
    // These bytes took an unknown time to arrive.
    window_start_ = now;
    window_bytes_ = 0;
    return;
  }
  window_bytes_ += bytes;
  const Duration elapsed = now - window_start_;
  if (elapsed < kWindow) return;
  const double sample = static_cast<double>(window_bytes_) / elapsed.seconds();
  smoothed_ = smoothed_ == 0 ? sample : smoothed_ + kWeight * (sample - smoothed_);
  window_start_ = now;
  window_bytes_ = 0;
}

std::uint64_t RateMeter::bytes_per_second() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::uint64_t>(smoothed_);
}

std::shared_ptr<RateMeter> RateMeters::of(NodeId node) {
  const std::lock_guard lock(mutex_);
  auto& meter = meters_[node];
  if (!meter) meter = std::make_shared<RateMeter>();
  return meter;
}

void RateMeters::forget(NodeId node) {
  const std::lock_guard lock(mutex_);
  meters_.erase(node);
}

PeerRates RateMeters::rates() const {
  const std::lock_guard lock(mutex_);
  PeerRates out;
  for (const auto& [node, meter] : meters_) {
    if (const std::uint64_t rate = meter->bytes_per_second(); rate > 0) out.emplace(node, rate);
  }
  return out;
}

}  // namespace hoplite::tcp
