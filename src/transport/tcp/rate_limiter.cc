#include "transport/tcp/rate_limiter.h"

#include <algorithm>

#include "base/bytes.h"

namespace hoplite::tcp {
namespace {

__extension__ using Wide = unsigned __int128;
constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

// What may be made up for after a late wake-up: a loaded machine schedules a thread within a few milliseconds.
constexpr std::uint64_t kBurstsPerSecond = 500;
constexpr std::uint64_t kMinBurstBytes = 64 * kKiB;  // one full TCP segmentation offload
// Waking up for less would cost more processor time than it smooths: a quarter of the burst.
constexpr std::uint64_t kWorthwhilePart = 4;

}  // namespace

RateLimiter::RateLimiter(std::uint64_t bytes_per_second)
    : rate_(bytes_per_second),
      burst_bytes_(std::max(bytes_per_second / kBurstsPerSecond, kMinBurstBytes)),
      worthwhile_bytes_(burst_bytes_ / kWorthwhilePart) {}

RateLimiter::Grant RateLimiter::take(Time now, std::uint64_t wanted) {
  if (unlimited() || wanted == 0) return {wanted, now};
  const std::lock_guard lock(mutex_);
  skip_idle_time(now);
  const std::int64_t unused_ns = std::max<std::int64_t>(0, (now - sent_until_).ns);
  const auto available = static_cast<std::uint64_t>(static_cast<Wide>(unused_ns) * rate_ / kNsPerSecond);
  const std::uint64_t worthwhile = std::min(wanted, worthwhile_bytes_);
  const std::uint64_t granted = std::clamp(available, worthwhile, wanted);
  sent_until_ = sent_until_ + time_for(granted);
  return {granted, std::max(now, sent_until_)};
}

void RateLimiter::give_back(std::uint64_t bytes) {
  if (unlimited() || bytes == 0) return;
  const std::lock_guard lock(mutex_);
  sent_until_ = Time{sent_until_.ns - time_for(bytes).ns};
}

void RateLimiter::charge(Time now, std::uint64_t bytes) {
  if (unlimited()) return;
  const std::lock_guard lock(mutex_);
  skip_idle_time(now);
  sent_until_ = sent_until_ + time_for(bytes);
}

Duration RateLimiter::time_for(std::uint64_t bytes) const {
  return {static_cast<std::int64_t>((static_cast<Wide>(bytes) * kNsPerSecond + rate_ - 1) / rate_)};
}

void RateLimiter::skip_idle_time(Time now) {
  sent_until_ = std::max(sent_until_, Time{now.ns - time_for(burst_bytes_).ns});
}

}  // namespace hoplite::tcp
