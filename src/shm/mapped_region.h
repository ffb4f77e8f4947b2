// Owns a range of address space, aligned to 2 MiB so that page tables can be moved whole and huge pages fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "hoplite/error.h"

namespace hoplite {

constexpr std::uint64_t kPageBytes = 4096;  // the unit of protection

class MappedRegion {
 public:
  static constexpr std::uint64_t kAlignment = 2 * 1024 * 1024;

  // Address space in which every touch faults. `bytes` is rounded up to whole pages, here and below.
  static Result<MappedRegion> reserve(std::uint64_t bytes);
  // The first `bytes` of `fd`, shared.
  static Result<MappedRegion> map(int fd, std::uint64_t bytes, int protection);

  MappedRegion() = default;
  MappedRegion(MappedRegion&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MappedRegion& operator=(MappedRegion&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~MappedRegion();

  std::byte* data() const { return data_; }
  std::uint64_t size() const { return size_; }
  explicit operator bool() const { return data_ != nullptr; }

  // Replaces the part at `offset` by the first `bytes` of `fd`.
  Result<void> map_at(std::uint64_t offset, int fd, std::uint64_t bytes, int protection);

 private:
  MappedRegion(std::byte* data, std::uint64_t size) : data_(data), size_(size) {}

  std::byte* data_ = nullptr;
  std::uint64_t size_ = 0;
};

}  // namespace hoplite
