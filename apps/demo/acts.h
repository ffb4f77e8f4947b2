// What the demo shows, and the times that it took.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "common/terminal.h"
#include "hoplite/error.h"

namespace hoplite {

struct DemoOptions {
  int nodes = 8;
  std::uint64_t size = 64 * kMiB;
  std::uint64_t rate = 25'000'000;  // 200 Mbit/s: slow enough to watch, and light for two cores

  // Of each array that is summed: they are many, and half is enough to watch.
  std::uint64_t array_bytes() const { return size / 2 / 64 * 64; }
  // How long a link needs for so many bytes.
  double wire_s(std::uint64_t bytes) const { return static_cast<double>(bytes) / static_cast<double>(rate); }
};

// Seconds. All acts print what they do; kCancelled if somebody interrupts them.
struct BroadcastTimes {
  double naive = 0;
  double together = 0;
  double killed = 0;
};
Result<BroadcastTimes> broadcast_acts(const DemoOptions& options, const Interrupts& interrupts);

struct ReduceTimes {
  double naive = 0;
  double together = 0;
  double late = 0;  // after the last array was there
  double killed = 0;
};
Result<ReduceTimes> reduce_acts(const DemoOptions& options, const Interrupts& interrupts);

}  // namespace hoplite
