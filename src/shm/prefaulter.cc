#include "shm/prefaulter.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "shm/mapped_region.h"

namespace hoplite {
namespace {

// 2 to 5 ms each: so long may stopping, or an mmap elsewhere in the process, have to wait. Huge pages come faster, and
// each call for them has a price of its own (the kernel waits for all CPUs).
constexpr std::uint64_t kStepBytes = 2 * kMiB;
constexpr std::uint64_t kHugeStepBytes = 16 * kMiB;
constexpr int kNiceness = 10;  // a tenth of a busy core: not in the way, and not starved either

// Signals are for the daemon's own threads.
std::thread start_without_signals(auto function) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(function);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

Prefaulter::Prefaulter(ByteSpan memory, std::uint64_t ahead_bytes, bool huge_pages)
    : memory_(memory),
      ahead_bytes_(std::min<std::uint64_t>(ahead_bytes, memory.size())),
      huge_pages_(huge_pages),
      step_bytes_(huge_pages ? kHugeStepBytes : kStepBytes) {
  low_wanted_ = ahead_bytes_;
  high_done_ = memory_.size();
  high_wanted_ = memory_.size() - ahead_bytes_;
  if (ahead_bytes_ > 0) thread_ = start_without_signals([this] { run(); });
}

Prefaulter::~Prefaulter() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Prefaulter::handed_out(Extent extent) {
  if (ahead_bytes_ == 0) return;
  const std::lock_guard lock(mutex_);
  const std::uint64_t middle = low_done_ + (high_done_ - low_done_) / 2;  // of what is not populated
  const bool near_low_end = extent.offset == 0 || (extent.end() < memory_.size() && extent.offset < middle);
  if (near_low_end) {
    low_wanted_ = std::max(low_wanted_, std::min<std::uint64_t>(extent.end() + ahead_bytes_, memory_.size()));
  } else {
    high_wanted_ = std::min(high_wanted_, extent.offset - std::min(extent.offset, ahead_bytes_));
  }
  if (next_step().size > 0) changed_.notify_one();
}

std::uint64_t Prefaulter::populated_bytes() const {
  const std::lock_guard lock(mutex_);
  return low_done_ + (memory_.size() - high_done_);
}

void Prefaulter::run() {
  pthread_setname_np(pthread_self(), "prefault");
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNiceness);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || next_step().size > 0; });
    if (stop_) return;
    const Extent step = next_step();
    lock.unlock();
    const bool done = populate(step);
    lock.lock();
    failed_ = !done;
    if (!done) continue;
    if (step.offset == low_done_) {
      low_done_ = step.end();
    } else {
      high_done_ = step.offset;
    }
  }
}

Extent Prefaulter::next_step() const {
  if (failed_ || low_done_ >= high_done_) return {};
  if (low_done_ < low_wanted_) return {low_done_, std::min(step_bytes_, high_done_ - low_done_)};
  if (high_done_ <= high_wanted_) return {};
  // Steps start at multiples of the step, as those of the low end do, so that they never cut a huge page in two.
  const std::uint64_t start = std::max((high_done_ - 1) / step_bytes_ * step_bytes_, low_done_);
  return {start, high_done_ - start};
}

bool Prefaulter::populate(Extent range) const {
  std::byte* data = memory_.data() + range.offset;
  if (huge_pages_) make_huge({data, range.size});
  return madvise(data, range.size, MADV_POPULATE_WRITE) == 0;  // also where huge pages could not be had
}

}  // namespace hoplite
