// An open copy as the threads of the data plane share it: where its bytes are, and which of them are valid.
//
// The loop thread opens and closes it. Each slice has one producer at a time (the loop thread for a client's put, a lane for
// a pull or for a combination of other buffers), which alone adds to the slice's valid bytes; any thread may look at them.
// Valid bytes do not change until the buffer is closed. A lane touches the memory only for a pull, a serve or a combination
// that has not ended, be it what the combination makes or one of its inputs.
//
// A buffer may have only one slice of its object. Offsets count from the start of the object all the same. In a simulation
// there may be no memory behind it: then only the counting is real.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "protocol/data_plane.h"

namespace hoplite::dataplane {

constexpr std::uint32_t kMaxLanes = 64;  // bits of a mask

class Buffer : public std::enable_shared_from_this<Buffer> {
 public:
  // `memory` is that of the first byte that there is room for; null: no memory.
  Buffer(const effect::OpenCopy& opened, std::byte* memory)
      : opened_(opened), memory_(memory), sealed_(opened.complete), slices_(new Slice[opened.slices]) {
    for (std::uint32_t i = 0; i < opened.slices; ++i)
      slices_[i].front = opened.complete && has(i) ? range(i).end : range(i).begin;
  }

  CopyKey key() const { return opened_.copy; }
  std::uint64_t size() const { return opened_.object_size(); }
  std::uint32_t slices() const { return opened_.slices; }
  SliceRange range(std::uint32_t slice) const { return slice_range(size(), slices(), slice); }
  bool has(std::uint32_t slice) const { return slice < slices() && (!of_one_slice() || slice == opened_.only); }
  // The part of the object that there is room for.
  SliceRange room() const { return of_one_slice() ? range(opened_.only) : SliceRange{0, size()}; }
  // Where the byte at `offset` of the object is, which is one of the room's; null if there is no memory.
  std::byte* at(std::uint64_t offset) const { return memory_ == nullptr ? nullptr : memory_ + (offset - room().begin); }
  // Whether a pull of this slice can be served. A sealed buffer has every byte, however it was cut when it grew; of a growing
  // one only its own slices can be followed.
  bool can_serve(std::uint32_t slice, std::uint32_t slices) const {
    if (!of_one_slice() && sealed()) return slice < slices;
    return slices == this->slices() && has(slice);
  }

  ValidBytes valid(std::uint32_t slice) const { return {range(slice), slices_[slice].front.load()}; }
  void set_valid(std::uint32_t slice, const ValidBytes& valid) { slices_[slice].front.store(valid.front()); }
  // It has all bytes that there is room for, and the version is committed.
  bool sealed() const { return sealed_.load(); }
  void seal() { sealed_.store(true); }
  // The same of one slice: whoever pulled it has heard its end, or it was sealed by itself. Two copies may each wait for a
  // slice of the other, so a slice's end must not wait for the whole.
  bool final(std::uint32_t slice) const { return sealed() || (slice < slices() && slices_[slice].final.load()); }
  void set_final(std::uint32_t slice) { slices_[slice].final.store(true); }

  // --- who wants to hear of progress. A producer adds valid bytes and then looks here; a consumer registers here and then
  // looks at the valid bytes. All are sequentially consistent, so one of them sees the other.

  // Lanes that serve it to others, and lanes that combine it into others.
  std::uint64_t following_lanes() const { return serving_lanes_.load() | combining_lanes_.load(); }
  void set_serving(std::uint32_t lane, bool serving) { set_bit(serving_lanes_, lane, serving); }
  void set_combining(std::uint32_t lane, bool combining) { set_bit(combining_lanes_, lane, combining); }
  // True if no wake-up of that lane is under way: the caller is to send one.
  bool begin_wake(std::uint32_t lane) {
    const std::uint64_t bit = std::uint64_t{1} << lane;
    return (woken_lanes_.fetch_or(bit) & bit) == 0;
  }
  void end_wake(std::uint32_t lane) { woken_lanes_.fetch_and(~(std::uint64_t{1} << lane)); }

  void follow() { followed_.store(true); }
  // True if growth is to be reported and no such report is under way.
  bool begin_growth_report() { return followed_.load() && !growth_report_.exchange(true); }
  void end_growth_report() { growth_report_.store(false); }

 private:
  struct Slice {
    std::atomic<std::uint64_t> front = 0;
    std::atomic<bool> final = false;
  };

  static void set_bit(std::atomic<std::uint64_t>& mask, std::uint32_t lane, bool on) {
    const std::uint64_t bit = std::uint64_t{1} << lane;
    on ? mask.fetch_or(bit) : mask.fetch_and(~bit);
  }

  bool of_one_slice() const { return opened_.only != kAllSlices; }

  const effect::OpenCopy opened_;
  std::byte* const memory_;
  std::atomic<bool> sealed_;
  std::atomic<bool> followed_ = false;
  std::atomic<bool> growth_report_ = false;
  std::atomic<std::uint64_t> serving_lanes_ = 0;
  std::atomic<std::uint64_t> combining_lanes_ = 0;
  std::atomic<std::uint64_t> woken_lanes_ = 0;
  std::unique_ptr<Slice[]> slices_;
};

using BufferPtr = std::shared_ptr<Buffer>;

}  // namespace hoplite::dataplane
