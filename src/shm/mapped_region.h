// Owns a range of address space, aligned to 2 MiB so that page tables can be moved whole and huge pages fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "hoplite/error.h"

namespace hoplite {

constexpr std::uint64_t kPageBytes = 4096;  // the unit of protection

struct Unmap {
  std::uint64_t size = 0;
  void operator()(std::byte* data) const;
};

class MappedRegion {
 public:
  static constexpr std::uint64_t kAlignment = 2 * 1024 * 1024;

  // Address space in which every touch faults. `bytes` is rounded up to whole pages, here and below.
  static Result<MappedRegion> reserve(std::uint64_t bytes);
  // The first `bytes` of `fd`, shared.
  static Result<MappedRegion> map(int fd, std::uint64_t bytes, int protection);

  MappedRegion() = default;

  std::byte* data() const { return data_.get(); }
  std::uint64_t size() const { return data_.get_deleter().size; }
  explicit operator bool() const { return data_ != nullptr; }

  // Replaces the part at `offset` by the first `bytes` of `fd`.
  Result<void> map_at(std::uint64_t offset, int fd, std::uint64_t bytes, int protection);

 private:
  MappedRegion(std::byte* data, std::uint64_t size) : data_(data, Unmap{size}) {}

  std::unique_ptr<std::byte[], Unmap> data_;
};

// Backs the whole huge pages (2 MiB, aligned) inside `memory`, a shared mapping, with huge pages; its bytes stay. They cost a
// third per byte to bring in, and a client's first touch of them a fortieth (docs/adr/0002-arena.md). Works whatever
// /sys/kernel/mm/transparent_hugepage/shmem_enabled says, unless that is "deny": a process may ask for its own memory. False
// if the kernel (before 6.1) or a lack of unbroken memory prevented it: all works without, slower.
bool make_huge(ByteSpan memory);

}  // namespace hoplite
