#include "shm/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>

#include "shm/mapped_region.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25  // Linux 6.1; not in Debian 12's headers
#endif

namespace hoplite {
namespace {

constexpr std::uint64_t kHugePageBytes = 2 * kMiB;

}  // namespace

bool make_huge(ByteSpan memory) {
  const std::uint64_t skipped = round_up(reinterpret_cast<std::uintptr_t>(memory.data()), kHugePageBytes) -
                                reinterpret_cast<std::uintptr_t>(memory.data());
  if (memory.size() < skipped + kHugePageBytes) return false;
  const std::uint64_t bytes = (memory.size() - skipped) / kHugePageBytes * kHugePageBytes;
  std::byte* start = memory.data() + skipped;
  // The kernel collapses only what has at least one page. The rest of it then comes as zeros, without ever having been
  // small pages that need copying.
  for (std::uint64_t at = 0; at < bytes; at += kHugePageBytes) {
    if (madvise(start + at, kPageBytes, MADV_POPULATE_WRITE) != 0) return false;
  }
  return madvise(start, bytes, MADV_COLLAPSE) == 0;
}

}  // namespace hoplite
