// An open copy as the threads share it: where its bytes are and how many of them are valid.
//
// The loop thread opens and closes it. Each slice has one producer at a time (the loop thread for a client's put, an
// I/O thread for a pull or for a combination of other copies), which alone moves that slice's watermark; anybody may read
// it. Bytes below a watermark do not change until the copy is closed. An I/O thread touches the extent only for a pull, a
// serve or a combination that has not ended, be it what the combination makes or one of its inputs.
//
// A copy may have only one slice of its object. Offsets count from the start of the object all the same.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "protocol/bulk.h"
#include "protocol/client_messages.h"

namespace hoplite::tcp {

constexpr std::uint32_t kMaxIoThreads = 64;  // bits of a mask

class Copy : public std::enable_shared_from_this<Copy> {
 public:
  // `only`: the one slice that is at `memory`, or kAllSlices.
  Copy(CopyKey key, std::byte* memory, std::uint64_t size, std::uint32_t slices, std::uint32_t only, bool complete)
      : key_(key), memory_(memory), size_(size), slices_(slices), only_(only), marks_(new Mark[slices]) {
    for (std::uint32_t i = 0; i < slices; ++i) marks_[i].valid = complete && has(i) ? range(i).end : range(i).begin;
    sealed_ = complete;
  }

  CopyKey key() const { return key_; }
  std::uint64_t size() const { return size_; }  // of the object
  std::uint32_t slices() const { return slices_; }
  SliceRange range(std::uint32_t slice) const { return slice_range(size_, slices_, slice); }
  bool has(std::uint32_t slice) const { return slice < slices_ && (only_ == kAllSlices || slice == only_); }
  // The part of the object that there is room for.
  SliceRange room() const { return only_ == kAllSlices ? SliceRange{0, size_} : range(only_); }
  // Where the byte at `offset` of the object is: one of the room's.
  std::byte* at(std::uint64_t offset) const { return memory_ + (offset - room().begin); }
  // Whether a pull of this slice can be served. A sealed copy has every byte, however it was cut when it grew; of a growing
  // one only its own slices can be followed.
  bool can_serve(std::uint32_t slice, std::uint32_t slices) const {
    if (only_ == kAllSlices && sealed()) return slice < slices;
    return slices == slices_ && has(slice);
  }

  // Absolute offset up to which the slice is valid.
  std::uint64_t watermark(std::uint32_t slice) const { return marks_[slice].valid.load(); }
  void set_watermark(std::uint32_t slice, std::uint64_t bytes) { marks_[slice].valid.store(bytes); }
  // It has all bytes that it has room for, and the version is committed.
  bool sealed() const { return sealed_.load(); }
  void seal() { sealed_.store(true); }
  // The same of one slice: whoever pulled it has heard its end, or it was sealed by itself. Two copies may each wait for a
  // slice of the other, so a slice's end must not wait for the whole.
  bool final(std::uint32_t slice) const { return sealed() || (slice < slices_ && marks_[slice].final.load()); }
  void set_final(std::uint32_t slice) { marks_[slice].final.store(true); }

  // --- who wants to hear of progress. A producer moves the watermark and then looks here; a consumer registers here
  // and then looks at the watermark. All are sequentially consistent, so one of them sees the other.

  // Threads that serve it to others, and threads that combine it into others.
  std::uint64_t following_threads() const { return serving_threads_.load() | combining_threads_.load(); }
  void set_serving(std::uint32_t thread, bool serving) { set_bit(serving_threads_, thread, serving); }
  void set_combining(std::uint32_t thread, bool combining) { set_bit(combining_threads_, thread, combining); }
  // True if no wake-up of that thread is under way: the caller is to send one.
  bool begin_wake(std::uint32_t thread) {
    const std::uint64_t bit = std::uint64_t{1} << thread;
    return (woken_threads_.fetch_or(bit) & bit) == 0;
  }
  void end_wake(std::uint32_t thread) { woken_threads_.fetch_and(~(std::uint64_t{1} << thread)); }

  void follow() { followed_.store(true); }
  // True if the handler is to be told of growth and no such event is under way.
  bool begin_growth_event() { return followed_.load() && !growth_event_.exchange(true); }
  void end_growth_event() { growth_event_.store(false); }

 private:
  struct Mark {
    std::atomic<std::uint64_t> valid = 0;
    std::atomic<bool> final = false;
  };

  static void set_bit(std::atomic<std::uint64_t>& mask, std::uint32_t thread, bool on) {
    const std::uint64_t bit = std::uint64_t{1} << thread;
    on ? mask.fetch_or(bit) : mask.fetch_and(~bit);
  }

  const CopyKey key_;
  std::byte* const memory_;
  const std::uint64_t size_;
  const std::uint32_t slices_;
  const std::uint32_t only_;
  std::atomic<bool> sealed_ = false;
  std::atomic<bool> followed_ = false;
  std::atomic<bool> growth_event_ = false;
  std::atomic<std::uint64_t> serving_threads_ = 0;
  std::atomic<std::uint64_t> combining_threads_ = 0;
  std::atomic<std::uint64_t> woken_threads_ = 0;
  std::unique_ptr<Mark[]> marks_;
};

using CopyPtr = std::shared_ptr<Copy>;

}  // namespace hoplite::tcp
