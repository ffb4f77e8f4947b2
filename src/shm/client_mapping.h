// A client's sight of its daemon's arena: everything readable, and only what it is writing writable.
//
// Views point into a mapping of the read-only descriptor: a write through one faults, and cannot be made legal.
// For puts there is a second range of addresses, the windows, in which every touch faults until open_window(). Opening
// and closing moves the extent's pages between there and a parked mapping whose addresses are never given out. That
// moves page tables, 512 pages at a time, and leaves every page warm: 0.05 ms for 64 MiB, where changing the protection
// of each page costs 0.8 ms, an eighth of the copy (docs/adr/0002-arena.md).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "base/bytes.h"
#include "base/extent.h"
#include "base/unique_fd.h"
#include "hoplite/error.h"
#include "shm/mapped_region.h"

namespace hoplite {

class ClientMapping {
 public:
  // How windows are opened. kProtect is what kMove falls back to where the kernel refuses to move.
  enum class Windows { kMove, kProtect };

  // `read_only_fd` is not needed any more when this returns. Views stay valid when the daemon is gone.
  static Result<std::unique_ptr<ClientMapping>> create(int read_only_fd, std::uint64_t arena_bytes);

  ClientMapping(const ClientMapping&) = delete;
  ClientMapping& operator=(const ClientMapping&) = delete;

  std::uint64_t size() const { return views_.size(); }

  // The bytes of an extent that the daemon named; an error if it lies outside the arena.
  Result<ByteView> view(Extent extent) const;

  // Before the first window, once, by one thread.
  Result<void> accept_writable(UniqueFd writable_fd, Windows windows = Windows::kMove);
  bool writable() const { return static_cast<bool>(windows_region_); }

  // Makes the whole pages of `extent` writable. The extent must be the caller's own (Created): it starts at a page, no
  // other extent shares its pages. From any thread. The pages are in memory when this returns; if there is no memory
  // for them, that is the error, not a SIGBUS later.
  Result<ByteSpan> open_window(Extent extent);
  // Makes them inaccessible again. The window must be open.
  void close_window(Extent extent);
  // In a forked child, before anything else: the windows are the parent's. Their addresses stay taken, and inaccessible.
  void leave_windows();

 private:
  explicit ClientMapping(MappedRegion views) : views_(std::move(views)) {}

  Result<void> check_inside(Extent extent) const;
  Result<void> make_writable(Extent pages);
  void make_inaccessible(Extent pages);
  bool move_pages(std::byte* from, std::byte* to, Extent pages, int protection_of_to);
  Result<void> populate(Extent pages);

  static constexpr std::uint64_t kGuardBytes = MappedRegion::kAlignment;

  MappedRegion views_;
  UniqueFd writable_fd_;
  MappedRegion windows_region_;  // guard, windows, guard, parked, guard
  std::byte* windows_ = nullptr;
  std::byte* parked_ = nullptr;
  bool move_ = true;
  bool left_ = false;
  std::unique_ptr<std::atomic<std::uint64_t>[]> populated_;  // one bit per page of the windows

  std::mutex mutex_;
  std::set<Extent> open_windows_;  // under mutex_; to find a window opened or closed twice, which would undo another's
};

}  // namespace hoplite
