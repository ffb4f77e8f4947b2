// Which parts of the arena are in use. Pure bookkeeping over the offsets [0, capacity): it lives in the daemon's heap
// and never touches the memory it hands out, so nothing that a client does to the arena can break it.
//
// Policy: address-ordered first fit from both ends. Big extents take the lowest place that fits, others the highest.
// - In long random churn at 65 % fill it refuses 20 times less often than best fit, and up to 56 % never
//   (docs/adr/0002-arena.md).
// - Objects of different sizes, which usually live differently long, do not sit between each other: when the big ones
//   go, the room they leave is in one piece.
// - Addresses used before are preferred: their pages are warm. Between high_water() and low_water() all is untouched.
// Small extents that need no pages of their own are packed into runs, so that the rest of the arena is in whole pages:
// an aligned request never meets a hole that is large enough and yet does not fit.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "base/extent.h"
#include "core/objects/free_ranges.h"

namespace hoplite {

enum class Alignment : std::uint8_t {
  kCacheLine,  // starts at a multiple of 64: written by the daemon only
  kPage,       // owns whole pages of 4096: a client may be allowed to write them
};

class ExtentAllocator {
 public:
  static constexpr std::uint64_t kLineBytes = 64;
  static constexpr std::uint64_t kPageBytes = 4096;

  // `capacity` is rounded down to whole pages.
  explicit ExtentAllocator(std::uint64_t capacity);

  // nullopt: no free range is large enough now. An extent of 0 bytes costs nothing and is always granted. O(log n).
  std::optional<Extent> allocate(std::uint64_t size, Alignment alignment);

  // Whether allocate() would grant this now.
  bool can_allocate(std::uint64_t size, Alignment alignment) const;

  // `extent` must be one that allocate() returned and that was not freed since. O(log n).
  void free(Extent extent);

  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t used() const { return used_; }  // bytes kept aside, with what rounding added
  std::uint64_t free_bytes() const { return capacity_ - used_; }
  std::uint64_t largest_free() const;

  // Whether an empty arena could hold `size` bytes. If not, waiting for room is pointless.
  bool fits(std::uint64_t size) const { return size <= capacity_; }

  // Extents from the low end never ended above high_water(), those from the high end never started below low_water().
  std::uint64_t high_water() const { return high_water_; }
  std::uint64_t low_water() const { return low_water_; }

  std::size_t live_extents() const { return sizes_.size() + empty_extents_; }
  std::size_t free_ranges() const { return pages_.count() + lines_.count(); }

 private:
  bool belongs_in_run(std::uint64_t size, Alignment alignment) const;
  std::optional<std::uint64_t> take_pages(std::uint64_t bytes);
  std::optional<std::uint64_t> take_lines(std::uint64_t bytes);
  std::optional<Extent> add_run(std::uint64_t at_least);
  void free_lines(Extent extent, Extent run);
  std::optional<Extent> run_around(std::uint64_t offset) const;

  std::uint64_t capacity_;
  std::uint64_t big_bytes_;    // extents of this size or more come from the low end
  std::uint64_t run_bytes_;    // usual size of a run
  std::uint64_t small_bytes_;  // extents up to this size go into runs

  FreeRanges pages_;                              // outside runs: offsets and sizes are whole pages
  FreeRanges lines_;                              // inside runs
  std::map<std::uint64_t, std::uint64_t> runs_;   // start -> bytes
  std::map<std::uint64_t, std::uint64_t> sizes_;  // of every extent, by offset
  std::size_t empty_extents_ = 0;

  std::uint64_t used_ = 0;
  std::uint64_t high_water_ = 0;
  std::uint64_t low_water_;
};

}  // namespace hoplite
