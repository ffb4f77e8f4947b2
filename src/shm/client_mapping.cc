#include "shm/client_mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"

namespace hoplite {
namespace {

constexpr std::uint64_t kPagesPerWord = 64;
constexpr int kWritable = PROT_READ | PROT_WRITE;

Extent whole_pages(Extent extent) { return {extent.offset, round_up(extent.size, kPageBytes)}; }

// A descriptor of another size, or one that may still shrink, would mean SIGBUS in the middle of a read.
Result<void> check_descriptor(int fd, std::uint64_t arena_bytes) {
  struct stat status{};
  if (fstat(fd, &status) != 0) {
    return Error{Code::kUnavailable, std::string("the arena's descriptor is not usable: ") + std::strerror(errno)};
  }
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || static_cast<std::uint64_t>(status.st_size) < arena_bytes) {
    return Error{Code::kInvalidArgument, "the descriptor received is not an arena of " + format_size(arena_bytes)};
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<ClientMapping>> ClientMapping::create(int read_only_fd, std::uint64_t arena_bytes) {
  if (Result<void> status = check_descriptor(read_only_fd, arena_bytes); !status) return status.error();
  Result<MappedRegion> views = MappedRegion::map(read_only_fd, arena_bytes, PROT_READ);
  if (!views) return views.error();
  return std::unique_ptr<ClientMapping>(new ClientMapping(*std::move(views)));
}

Result<ByteView> ClientMapping::view(Extent extent) const {
  if (Result<void> status = check_inside(extent); !status) return status.error();
  return ByteView(views_.data() + extent.offset, extent.size);
}

Result<void> ClientMapping::accept_writable(UniqueFd writable_fd, Windows windows) {
  CHECK(!writable());
  if (Result<void> status = check_descriptor(writable_fd.get(), size()); !status) return status;
  Result<MappedRegion> region = MappedRegion::reserve(2 * round_up(size(), kGuardBytes) + 3 * kGuardBytes);
  if (!region) return region.error();
  const std::uint64_t windows_at = kGuardBytes;
  const std::uint64_t parked_at = windows_at + round_up(size(), kGuardBytes) + kGuardBytes;
  if (Result<void> mapped = region->map_at(windows_at, writable_fd.get(), size(), PROT_NONE); !mapped) return mapped;
  if (Result<void> mapped = region->map_at(parked_at, writable_fd.get(), size(), kWritable); !mapped) return mapped;
  windows_region_ = *std::move(region);
  windows_ = windows_region_.data() + windows_at;
  parked_ = windows_region_.data() + parked_at;
  writable_fd_ = std::move(writable_fd);
  move_ = windows == Windows::kMove;
  populated_ = std::make_unique<std::atomic<std::uint64_t>[]>(size() / kPageBytes / kPagesPerWord + 1);
  return {};
}

Result<ByteSpan> ClientMapping::open_window(Extent extent) {
  CHECK(writable() && !left_, "no writable descriptor was received");
  if (Result<void> status = check_inside(extent); !status) return status.error();
  if (extent.offset % kPageBytes != 0) {
    return Error{Code::kInvalidArgument, "the extent at " + std::to_string(extent.offset) + " does not own its pages"};
  }
  const ByteSpan window(windows_ + extent.offset, extent.size);
  if (extent.size == 0) return window;
  const Extent pages = whole_pages(extent);
  {
    const std::lock_guard lock(mutex_);
    CHECK(open_windows_.insert(pages).second, "opened twice:", extent.offset, extent.size);
  }
  Result<void> status = make_writable(pages);
  if (status) status = populate(pages);
  if (!status) {
    close_window(extent);
    return status.error();
  }
  return window;
}

void ClientMapping::leave_windows() {
  left_ = true;
  writable_fd_.reset();
  if (!windows_region_) return;
  constexpr int kNothing = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  CHECK(mmap(windows_region_.data(), windows_region_.size(), PROT_NONE, kNothing, -1, 0) != MAP_FAILED, errno);
}

void ClientMapping::close_window(Extent extent) {
  if (extent.size == 0 || left_) return;
  const Extent pages = whole_pages(extent);
  {
    const std::lock_guard lock(mutex_);
    CHECK(open_windows_.erase(pages) == 1, "not open:", extent.offset, extent.size);
  }
  make_inaccessible(pages);
}

Result<void> ClientMapping::make_writable(Extent pages) {
  if (move_ && move_pages(parked_, windows_, pages, PROT_NONE)) return {};
  if (mprotect(windows_ + pages.offset, pages.size, kWritable) == 0) return {};
  const std::string reason = std::strerror(errno);
  return Error{Code::kUnavailable, "the system refuses another window into shared memory: " + reason};
}

// What the pages leave behind would bring them back at the next touch, so it is closed too. If the system refuses that
// (it may be at its limit of mappings), the window stays open: that costs protection, not correctness.
void ClientMapping::make_inaccessible(Extent pages) {
  if (move_) move_pages(windows_, parked_, pages, kWritable);
  mprotect(windows_ + pages.offset, pages.size, PROT_NONE);
}

// Moves the pages with their page tables. The addresses they leave stay mapped, without pages.
bool ClientMapping::move_pages(std::byte* from, std::byte* to, Extent pages, int protection_of_to) {
  const int flags = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
  if (mremap(from + pages.offset, pages.size, pages.size, flags, to + pages.offset) != MAP_FAILED) return true;
  // It may have failed after it had unmapped `to`. Nobody else's mapping may ever come to lie in such a hole. If there
  // is none, this does nothing.
  [[maybe_unused]] const void* restored =
      mmap(to + pages.offset, pages.size, protection_of_to, MAP_SHARED | MAP_FIXED_NOREPLACE, writable_fd_.get(),
           static_cast<off_t>(pages.offset));
  return false;
}

Result<void> ClientMapping::check_inside(Extent extent) const {
  if (extent.size <= size() && extent.offset <= size() - extent.size) return {};
  return Error{Code::kInvalidArgument, "the extent at " + std::to_string(extent.offset) + " of " +
                                           format_size(extent.size) + " is not inside the arena of " +
                                           format_size(size())};
}

// A page that this process touches for the first time costs a fault, even if it is in memory; asked for many at a time
// it costs a seventh of that. Once is enough: pages keep their entries when windows close.
Result<void> ClientMapping::populate(Extent pages) {
  const std::uint64_t first = pages.offset / kPageBytes;
  const std::uint64_t last = pages.end() / kPageBytes;
  for (std::uint64_t page = first; page < last;) {
    const std::uint64_t word_end = std::min((page / kPagesPerWord + 1) * kPagesPerWord, last);
    const std::uint64_t count = word_end - page;
    const std::uint64_t ones = count == kPagesPerWord ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
    const std::uint64_t mask = ones << (page % kPagesPerWord);
    std::atomic<std::uint64_t>& word = populated_[page / kPagesPerWord];
    if ((word.load(std::memory_order_relaxed) & mask) != mask) {
      const int result = madvise(windows_ + page * kPageBytes, count * kPageBytes, MADV_POPULATE_WRITE);
      if (result != 0 && errno != EINVAL) {  // EINVAL: a kernel before 5.14, which cannot
        return Error{Code::kStoreFull,
                     "no memory for " + format_size(pages.size) + " of the arena: " + std::strerror(errno)};
      }
      word.fetch_or(mask, std::memory_order_relaxed);
    }
    page = word_end;
  }
  return {};
}

}  // namespace hoplite
