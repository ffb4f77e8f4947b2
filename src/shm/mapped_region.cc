#include "shm/mapped_region.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/check.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25  // Linux 6.1; not in Debian 12's headers
#endif

namespace hoplite {
namespace {

Error cannot_map(std::uint64_t bytes) {
  const std::string reason = std::strerror(errno);
  return Error{Code::kUnavailable, "cannot map " + format_size(bytes) + " of shared memory: " + reason};
}

}  // namespace

Result<MappedRegion> MappedRegion::reserve(std::uint64_t bytes) {
  const std::uint64_t size = round_up(bytes, kPageBytes);
  const std::uint64_t enough = size + kAlignment;
  void* found = mmap(nullptr, enough, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) return cannot_map(size);
  // Give back what alignment leaves over at either end.
  const auto start = reinterpret_cast<std::uintptr_t>(found);
  const std::uint64_t before = round_up(start, kAlignment) - start;
  std::byte* data = static_cast<std::byte*>(found) + before;
  if (before > 0) munmap(found, before);
  munmap(data + size, enough - before - size);
  return MappedRegion(data, size);
}

Result<MappedRegion> MappedRegion::map(int fd, std::uint64_t bytes, int protection) {
  Result<MappedRegion> region = reserve(bytes);
  if (!region) return region.error();
  if (Result<void> mapped = region->map_at(0, fd, bytes, protection); !mapped) return mapped.error();
  return region;
}

void Unmap::operator()(std::byte* data) const { munmap(data, size); }

Result<void> MappedRegion::map_at(std::uint64_t offset, int fd, std::uint64_t bytes, int protection) {
  const std::uint64_t size = round_up(bytes, kPageBytes);
  const std::uint64_t room = this->size();
  CHECK(offset % kPageBytes == 0 && size <= room && offset <= room - size, offset, size, room);
  if (mmap(data() + offset, size, protection, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) return cannot_map(size);
  return {};
}

bool make_huge(ByteSpan memory) {
  const std::uint64_t skipped = round_up(reinterpret_cast<std::uintptr_t>(memory.data()), MappedRegion::kAlignment) -
                                reinterpret_cast<std::uintptr_t>(memory.data());
  if (memory.size() < skipped + MappedRegion::kAlignment) return false;
  const std::uint64_t bytes = (memory.size() - skipped) / MappedRegion::kAlignment * MappedRegion::kAlignment;
  std::byte* start = memory.data() + skipped;
  // The kernel collapses only what has at least one page. The rest of it then comes as zeros, without ever having been
  // small pages that need copying.
  for (std::uint64_t at = 0; at < bytes; at += MappedRegion::kAlignment) {
    if (madvise(start + at, kPageBytes, MADV_POPULATE_WRITE) != 0) return false;
  }
  return madvise(start, bytes, MADV_COLLAPSE) == 0;
}

}  // namespace hoplite
