#include "dataplane/uplink.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace hoplite::dataplane {

bool Uplink::flows(Time now, const Class& c) const {
  return c.serves > 0 && c.sent_at != Time::never() && now - c.sent_at < options_.idle_after;
}

void Uplink::remove(Priority priority) {
  Class& c = class_of(priority);
  CHECK(c.serves > 0, priority);
  if (--c.serves > 0) return;
  c = {};
  released_ = true;
}

std::uint64_t Uplink::admitted(Time now, Priority priority) const {
  for (auto i = static_cast<std::size_t>(priority) + 1; i < classes_.size(); ++i) {
    if (!flows(now, classes_[i])) continue;
    const std::uint64_t owed = classes_[static_cast<std::size_t>(priority)].owed_bytes / (options_.least_share - 1);
    return owed < options_.turn_bytes ? 0 : owed;
  }
  return kUnlimited;
}

void Uplink::sent(Time now, Priority priority, std::uint64_t bytes) {
  const std::uint64_t share = options_.least_share - 1;
  Class& served = class_of(priority);
  served.sent_at = now;
  served.owed_bytes -= std::min(served.owed_bytes, bytes * share);
  for (std::size_t i = 0; i < static_cast<std::size_t>(priority); ++i)
    classes_[i].owed_bytes = std::min(classes_[i].owed_bytes + bytes, 2 * options_.turn_bytes * share);
}

bool Uplink::take_released() { return std::exchange(released_, false); }

}  // namespace hoplite::dataplane
