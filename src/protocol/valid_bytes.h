// Slices of an object, and which bytes of a slice a copy has.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/check.h"

namespace hoplite {

constexpr std::uint32_t kAllSlices = ~std::uint32_t{0};

// Bytes [begin, end), counted from the start of the object.
struct SliceRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  constexpr std::uint64_t size() const { return end - begin; }
  bool operator==(const SliceRange&) const = default;
};

// Slice i of an object of `size` bytes that is cut into `slices` parts; begins are aligned to 64 bytes.
constexpr SliceRange slice_range(std::uint64_t size, std::uint32_t slices, std::uint32_t slice) {
  const std::uint64_t step = round_up((size + slices - 1) / slices, 64);
  const std::uint64_t begin = step * slice < size ? step * slice : size;
  const std::uint64_t end = begin + step < size ? begin + step : size;
  return {begin, end};
}

// The bytes of one slice that are valid: today all of them up to a front, which only moves forward. A delivery that tolerates
// loss adds ranges behind the front here; whoever asks in these words need not know.
class ValidBytes {
 public:
  constexpr ValidBytes() = default;  // of nothing
  constexpr explicit ValidBytes(SliceRange slice) : slice_(slice), front_(slice.begin) {}
  constexpr ValidBytes(SliceRange slice, std::uint64_t front) : slice_(slice), front_(front) {
    CHECK(front >= slice.begin && front <= slice.end, front, slice.begin, slice.end);
  }
  static constexpr ValidBytes all(SliceRange slice) { return {slice, slice.end}; }

  constexpr SliceRange slice() const { return slice_; }
  // Every byte of the slice before this offset is valid. Counted from the start of the object.
  constexpr std::uint64_t front() const { return front_; }
  constexpr std::uint64_t count() const { return front_ - slice_.begin; }
  constexpr std::uint64_t missing() const { return slice_.end - front_; }
  constexpr bool complete() const { return front_ == slice_.end; }

  // More are valid now. What was valid stays so.
  constexpr void extend_to(std::uint64_t front) {
    CHECK(front >= front_ && front <= slice_.end, front, front_, slice_.end);
    front_ = front;
  }
  bool operator==(const ValidBytes&) const = default;

 private:
  SliceRange slice_;
  std::uint64_t front_ = 0;
};

}  // namespace hoplite
