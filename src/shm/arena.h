// The daemon's shared memory: one memfd, sealed so that nobody can resize it under the others, mapped once.
//
// Clients get the read-only descriptor (views), and for their first create() the writable one, which ClientMapping
// opens extent by extent. See docs/adr/0002-arena.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "base/extent.h"
#include "base/unique_fd.h"
#include "hoplite/error.h"
#include "shm/mapped_region.h"
#include "shm/prefaulter.h"

namespace hoplite {

struct ArenaOptions {
  std::uint64_t bytes = 0;  // rounded up to whole pages
  // Kept populated beyond what is in use, at each end; less in small arenas. 0: pages come when they are touched.
  std::uint64_t prefault_ahead_bytes = 64 * kMiB;
};

class Arena {
 public:
  // An arena larger than the memory that is available now (of the machine and of the cgroup) is refused: its pages come
  // when they are first touched, and a touch that finds no memory left kills the process.
  static Result<std::unique_ptr<Arena>> create(const ArenaOptions& options);

  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::byte* base() const { return memory_.data(); }
  std::uint64_t size() const { return memory_.size(); }

  // To be passed to clients; they stay the arena's. What was mapped from them stays readable when the arena is gone.
  int read_only_fd() const { return read_only_fd_.get(); }
  int writable_fd() const { return writable_fd_.get(); }

  // To be told of every extent that the allocator hands out: moves what is populated in advance.
  void handed_out(Extent extent) { prefaulter_->handed_out(extent); }
  std::uint64_t prefaulted_bytes() const { return prefaulter_->populated_bytes(); }

  // Whether what is populated in advance comes in huge pages.
  bool huge_pages() const { return huge_pages_; }

 private:
  Arena(UniqueFd writable_fd, UniqueFd read_only_fd, MappedRegion memory, const ArenaOptions& options);

  UniqueFd writable_fd_;
  UniqueFd read_only_fd_;
  MappedRegion memory_;
  bool huge_pages_ = false;
  std::unique_ptr<Prefaulter> prefaulter_;  // after memory_: stops before it is unmapped
};

}  // namespace hoplite
