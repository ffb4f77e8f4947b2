#include "shm/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "shm/memory_info.h"

namespace hoplite {
namespace {

constexpr std::uint64_t kMaxAheadFraction = 8;  // of the arena, at each end

Error system_error(const std::string& what) {
  const std::string reason = std::strerror(errno);
  return Error{Code::kUnavailable, what + ": " + reason};
}

Result<void> check_size(std::uint64_t bytes) {
  if (bytes == 0) return Error{Code::kInvalidArgument, "an arena of 0 bytes cannot hold anything"};
  if (sysconf(_SC_PAGESIZE) != static_cast<long>(kPageBytes)) {
    return Error{Code::kInvalidArgument, "this machine has pages of " + std::to_string(sysconf(_SC_PAGESIZE)) +
                                             " bytes; only " + std::to_string(kPageBytes) + " is supported"};
  }
  const Result<MemoryInfo> memory = read_memory_info();
  if (!memory) return memory.error();
  if (bytes > memory->available_bytes) {
    return Error{Code::kInvalidArgument, "an arena of " + format_size(bytes) +
                                             " does not fit into memory: " + format_size(memory->available_bytes) +
                                             " of " + format_size(memory->total_bytes) + " are available"};
  }
  return {};
}

Result<UniqueFd> create_sealed_memory(std::uint64_t bytes) {
  UniqueFd fd(memfd_create("hoplite", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return system_error("creating shared memory");
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return system_error("sizing shared memory to " + format_size(bytes));
  }
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
    return system_error("sealing shared memory");
  }
  return fd;
}

// A descriptor that cannot be mapped for writing, which a duplicate of the writable one could. Who has it could reopen it
// through /proc, so from here on the file can be opened by its owner only, and for reading. (Its owner may change that, and
// root needs no permission: of what protects the store from whom, see docs/adr/0015-leases.md.)
Result<UniqueFd> reopen_read_only(int fd) {
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  UniqueFd reopened(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!reopened) return system_error("reopening shared memory through " + path);
  if (fchmod(fd, S_IRUSR) != 0) return system_error("protecting shared memory");
  return reopened;
}

// Tried on the first huge page: whether it works is seen from a page that was really made, not from settings. Explicit
// huge pages (MFD_HUGETLB) are no choice: windows are opened for clients in units of 4 KiB.
bool huge_pages_work(const MappedRegion& memory) {
  if (memory.size() < MappedRegion::kAlignment) return false;
  madvise(memory.data(), memory.size(), MADV_HUGEPAGE);  // for pages that come by a touch, where settings allow it
  return make_huge({memory.data(), MappedRegion::kAlignment});
}

}  // namespace

Result<std::unique_ptr<Arena>> Arena::create(const ArenaOptions& options) {
  if (Result<void> status = check_size(options.bytes); !status) return status.error();
  const std::uint64_t bytes = round_up(options.bytes, kPageBytes);
  Result<UniqueFd> writable = create_sealed_memory(bytes);
  if (!writable) return writable.error();
  Result<UniqueFd> read_only = reopen_read_only(writable->get());
  if (!read_only) return read_only.error();
  Result<MappedRegion> memory = MappedRegion::map(writable->get(), bytes, PROT_READ | PROT_WRITE);
  if (!memory) return memory.error();
  return std::unique_ptr<Arena>(new Arena(*std::move(writable), *std::move(read_only), *std::move(memory), options));
}

Arena::Arena(UniqueFd writable_fd, UniqueFd read_only_fd, MappedRegion memory, const ArenaOptions& options)
    : writable_fd_(std::move(writable_fd)),
      read_only_fd_(std::move(read_only_fd)),
      memory_(std::move(memory)),
      huge_pages_(huge_pages_work(memory_)),
      prefaulter_(std::make_unique<Prefaulter>(
          ByteSpan(memory_.data(), memory_.size()),
          std::min(options.prefault_ahead_bytes, memory_.size() / kMaxAheadFraction), huge_pages_)) {}

}  // namespace hoplite
