#include "core/objects/extent_allocator.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/check.h"

namespace hoplite {
namespace {

// Holds a few of the largest small extents with little left over, and is itself small against what is refused last.
constexpr std::uint64_t kMaxRunBytes = 256 * kKiB;
constexpr std::uint64_t kRunsPerArena = 256;  // at least, in arenas too small for kMaxRunBytes
constexpr std::uint64_t kSmallestPerRun = 4;
// 1/64 of the arena: most of the bytes of a mixed load are in extents above it, most of the extents below.
constexpr std::uint64_t kBigFraction = 64;

std::uint64_t whole_pages_in(std::uint64_t bytes) {
  return bytes / ExtentAllocator::kPageBytes * ExtentAllocator::kPageBytes;
}

}  // namespace

ExtentAllocator::ExtentAllocator(std::uint64_t capacity)
    : capacity_(whole_pages_in(capacity)),
      big_bytes_(capacity_ / kBigFraction),
      run_bytes_(std::clamp(whole_pages_in(capacity_ / kRunsPerArena), kPageBytes, kMaxRunBytes)),
      small_bytes_(run_bytes_ / kSmallestPerRun),
      low_water_(capacity_) {
  if (capacity_ > 0) pages_.insert({0, capacity_}, {0, capacity_});
}

std::optional<Extent> ExtentAllocator::allocate(std::uint64_t size, Alignment alignment) {
  if (size == 0) {
    ++empty_extents_;
    return Extent{};
  }
  if (!fits(size)) return std::nullopt;
  const bool in_run = belongs_in_run(size, alignment);
  const std::uint64_t bytes = round_up(size, in_run ? kLineBytes : kPageBytes);
  const std::optional<std::uint64_t> offset = in_run ? take_lines(bytes) : take_pages(bytes);
  if (!offset) return std::nullopt;
  used_ += bytes;
  const bool fresh = sizes_.emplace(*offset, size).second;
  CHECK(fresh, "handed out twice:", *offset, size);
  return Extent{*offset, size};
}

bool ExtentAllocator::can_allocate(std::uint64_t size, Alignment alignment) const {
  if (size == 0) return true;
  if (!fits(size)) return false;
  const bool in_run = belongs_in_run(size, alignment) && round_up(size, kLineBytes) <= lines_.largest();
  return in_run || round_up(size, kPageBytes) <= pages_.largest();
}

void ExtentAllocator::free(Extent extent) {
  if (extent.size == 0) {
    CHECK(empty_extents_ > 0, "no empty extent to free");
    --empty_extents_;
    return;
  }
  const auto found = sizes_.find(extent.offset);
  CHECK(found != sizes_.end() && found->second == extent.size, "unknown extent:", extent.offset, extent.size);
  sizes_.erase(found);
  if (const std::optional<Extent> run = run_around(extent.offset)) {
    free_lines(extent, *run);
    return;
  }
  const std::uint64_t bytes = round_up(extent.size, kPageBytes);
  used_ -= bytes;
  pages_.insert({extent.offset, bytes}, {0, capacity_});
}

std::uint64_t ExtentAllocator::largest_free() const { return std::max(pages_.largest(), lines_.largest()); }

bool ExtentAllocator::belongs_in_run(std::uint64_t size, Alignment alignment) const {
  return alignment == Alignment::kCacheLine && size <= small_bytes_;
}

std::optional<std::uint64_t> ExtentAllocator::take_pages(std::uint64_t bytes) {
  const bool big = bytes >= big_bytes_;
  const std::optional<std::uint64_t> offset = big ? pages_.take_lowest(bytes) : pages_.take_highest(bytes);
  if (!offset) return std::nullopt;
  if (big) {
    high_water_ = std::max(high_water_, *offset + bytes);
  } else {
    low_water_ = std::min(low_water_, *offset);
  }
  return offset;
}

std::optional<std::uint64_t> ExtentAllocator::take_lines(std::uint64_t bytes) {
  if (lines_.largest() < bytes) {
    const std::optional<Extent> run = add_run(bytes);
    if (!run) return std::nullopt;
    lines_.insert(*run, *run);
  }
  return lines_.take_highest(bytes);
}

std::optional<Extent> ExtentAllocator::add_run(std::uint64_t at_least) {
  // When no run of the usual size fits any more, the pages that this one extent needs may still.
  for (const std::uint64_t bytes : {run_bytes_, round_up(at_least, kPageBytes)}) {
    const std::optional<std::uint64_t> offset = pages_.take_highest(bytes);
    if (!offset) continue;
    low_water_ = std::min(low_water_, *offset);
    runs_.emplace(*offset, bytes);
    return Extent{*offset, bytes};
  }
  return std::nullopt;
}

void ExtentAllocator::free_lines(Extent extent, Extent run) {
  const std::uint64_t bytes = round_up(extent.size, kLineBytes);
  used_ -= bytes;
  const Extent merged = lines_.insert({extent.offset, bytes}, run);
  if (merged != run) return;
  lines_.erase(run);
  runs_.erase(run.offset);
  pages_.insert(run, {0, capacity_});
}

std::optional<Extent> ExtentAllocator::run_around(std::uint64_t offset) const {
  auto after = runs_.upper_bound(offset);
  if (after == runs_.begin()) return std::nullopt;
  const auto& [start, bytes] = *std::prev(after);
  if (offset >= start + bytes) return std::nullopt;
  return Extent{start, bytes};
}

}  // namespace hoplite
