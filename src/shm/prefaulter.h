// Brings pages of the arena into memory before they are needed. Touching fresh shared memory costs ten times a warm
// copy: a thread of low priority pays that in advance, at both ends of the arena, from which the allocator hands out.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>

#include "base/bytes.h"
#include "base/extent.h"

namespace hoplite {

class Prefaulter {
 public:
  // Keeps `ahead_bytes` populated beyond what was handed out, at each end; with huge pages if told so. `memory` starts
  // at a multiple of 2 MiB and outlives this.
  Prefaulter(ByteSpan memory, std::uint64_t ahead_bytes, bool huge_pages);
  // Returns as soon as the step under way, a few milliseconds, is done.
  ~Prefaulter();
  Prefaulter(const Prefaulter&) = delete;
  Prefaulter& operator=(const Prefaulter&) = delete;

  // From any thread; cheap. What lies between the extent and the end of the memory that it is nearer to (or touches)
  // will be populated, and `ahead_bytes` beyond it.
  void handed_out(Extent extent);

  // How much is, by this thread's work.
  std::uint64_t populated_bytes() const;

 private:
  void run();
  Extent next_step() const;  // empty: nothing to do
  bool populate(Extent range) const;

  const ByteSpan memory_;
  const std::uint64_t ahead_bytes_;
  const bool huge_pages_;
  const std::uint64_t step_bytes_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  bool failed_ = false;  // the system refused; not tried again
  // Populated: [0, low_done_) and [high_done_, size). Wanted: [0, low_wanted_) and [high_wanted_, size).
  std::uint64_t low_done_ = 0;
  std::uint64_t low_wanted_ = 0;
  std::uint64_t high_done_ = 0;
  std::uint64_t high_wanted_ = 0;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace hoplite
