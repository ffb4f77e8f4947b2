#include "transport/loop.h"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include "base/check.h"

namespace hoplite {

Time monotonic_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return {static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec};
}

namespace {

// An epoll event carries the descriptor and the registration's number, so that an event which was fetched for a
// descriptor that was removed (and perhaps opened again) is recognised.
std::uint64_t pack(int fd, std::uint32_t registration) {
  return static_cast<std::uint64_t>(registration) << 32 | static_cast<std::uint32_t>(fd);
}

}  // namespace

Loop::Loop() : epoll_fd_(epoll_create1(EPOLL_CLOEXEC)), wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  CHECK(epoll_fd_ && wake_fd_, errno);
  now_ = monotonic_now();
  add(wake_fd_.get(), EPOLLIN, [this](std::uint32_t) { drain_wakes(); });
}

void Loop::add(int fd, std::uint32_t events, Callback callback) {
  CHECK(fd >= 0);
  const auto index = static_cast<std::size_t>(fd);
  if (watches_.size() <= index) watches_.resize(index + 1);
  CHECK(!watches_[index], "descriptor is already watched:", fd);
  watches_[index] = std::make_unique<Watch>(Watch{++last_registration_, events, std::move(callback)});
  control(EPOLL_CTL_ADD, fd, *watches_[index]);
}

Loop::Watch& Loop::watch_of(int fd) {
  const auto index = static_cast<std::size_t>(fd);
  CHECK(fd >= 0 && index < watches_.size() && watches_[index], "descriptor is not watched:", fd);
  return *watches_[index];
}

void Loop::control(int operation, int fd, const Watch& watch) {
  epoll_event event{};
  event.events = watch.events;
  event.data.u64 = pack(fd, watch.registration);
  CHECK(epoll_ctl(epoll_fd_.get(), operation, fd, &event) == 0, fd, errno);
}

void Loop::modify(int fd, std::uint32_t events) {
  Watch& watch = watch_of(fd);
  if (std::exchange(watch.events, events) != events) control(EPOLL_CTL_MOD, fd, watch);
}

void Loop::remove(int fd) {
  control(EPOLL_CTL_DEL, fd, watch_of(fd));
  auto& watch = watches_[static_cast<std::size_t>(fd)];
  if (running_batch_) removed_.push_back(std::move(watch));
  watch.reset();
}

Loop::TimerId Loop::at(Time when, std::function<void()> callback) {
  const TimerId timer = ++last_timer_;
  timers_.emplace(std::pair(when, timer), std::move(callback));
  timer_times_.emplace(timer, when);
  return timer;
}

void Loop::cancel(TimerId timer) {
  const auto it = timer_times_.find(timer);
  if (it == timer_times_.end()) return;
  timers_.erase({it->second, timer});
  timer_times_.erase(it);
}

void Loop::post(std::function<void()> work) {
  bool must_wake = false;
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(work));
    has_posted_.store(true, std::memory_order_release);
    must_wake = std::exchange(sleeping_, false);
  }
  if (must_wake) wake();
}

void Loop::wake() {
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then the loop is awake.
  [[maybe_unused]] const auto written = write(wake_fd_.get(), &one, sizeof one);
}

void Loop::drain_wakes() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = read(wake_fd_.get(), &count, sizeof count);
}

void Loop::run() {
  while (!stop_.load(std::memory_order_acquire)) run_once(Time::never());
  stop_.store(false, std::memory_order_release);
}

void Loop::stop() {
  stop_.store(true, std::memory_order_release);
  post([] {});
}

void Loop::run_once(Time until) {
  CHECK(!running_batch_, "run_once inside a callback");
  // What was queued since the last batch, also by other flushes, must not wait for the next event.
  flush();
  const int count = wait(until);
  now_ = monotonic_now();
  running_batch_ = true;
  run_timers();
  run_watches(count);
  run_posted();
  running_batch_ = false;
  removed_.clear();
  flush();
}

void Loop::flush() {
  for (std::size_t i = 0; i < after_batch_.size(); ++i) after_batch_[i]();
}

int Loop::wait(Time until) {
  const Time limit = timers_.empty() ? until : std::min(until, timers_.begin()->first.first);
  if (busy_poll_) return spin(limit).value_or(0);
  if (linger_.ns > 0 && lingering_.worth_a_try()) {
    const std::optional<int> count = spin(std::min(limit, now_ + linger_));
    lingering_.paid(count.has_value());
    if (count) return *count;
  }
  bool may_sleep = false;
  {
    const std::lock_guard lock(mutex_);
    may_sleep = sleeping_ = posted_.empty();  // work that is posted from now on also writes to the eventfd
  }
  Duration timeout{-1};
  if (!may_sleep) {
    timeout = Duration{0};
  } else if (limit != Time::never()) {
    timeout = std::max(Duration{0}, limit - monotonic_now());
  }
  const int count = wait_in_kernel(timeout);
  const std::lock_guard lock(mutex_);
  sleeping_ = false;
  return count;
}

// Looks for something to do until `stop`; nullopt if there was nothing.
std::optional<int> Loop::spin(Time stop) {
  for (;;) {
    const int count = wait_in_kernel(Duration{0});
    if (count > 0 || has_posted_.load(std::memory_order_acquire)) return count;
    if (monotonic_now() >= stop) return std::nullopt;
    sched_yield();  // others may spin on the same core, waiting for us
  }
}

// A negative timeout waits for ever.
int Loop::wait_in_kernel(Duration timeout) {
  if (timeout.ns <= 0)
    return std::max(0, epoll_wait(epoll_fd_.get(), fetched_.data(), kEventsPerWait, timeout.ns < 0 ? -1 : 0));
  // The pacing of transfers needs better than epoll_wait's milliseconds.
  static std::atomic<bool> has_pwait2 = true;
  if (has_pwait2.load(std::memory_order_relaxed)) {
    const timespec limit{timeout.ns / 1'000'000'000, timeout.ns % 1'000'000'000};
    const int count = epoll_pwait2(epoll_fd_.get(), fetched_.data(), kEventsPerWait, &limit, nullptr);
    if (count >= 0 || errno != ENOSYS) return std::max(0, count);
    has_pwait2.store(false, std::memory_order_relaxed);
  }
  const std::int64_t ms = std::min<std::int64_t>((timeout.ns + 999'999) / 1'000'000, 60'000);
  return std::max(0, epoll_wait(epoll_fd_.get(), fetched_.data(), kEventsPerWait, static_cast<int>(ms)));
}

void Loop::run_timers() {
  // Timers set from here run in the next batch, so that one that is always due does not keep the rest waiting.
  const TimerId last = last_timer_;
  while (!timers_.empty()) {
    const auto first = timers_.begin();
    if (first->first.first > now_ || first->first.second > last) return;
    const std::function<void()> callback = std::move(first->second);
    timer_times_.erase(first->first.second);
    timers_.erase(first);
    callback();
  }
}

void Loop::run_watches(int count) {
  for (int i = 0; i < count; ++i) {
    const epoll_event event = fetched_[static_cast<std::size_t>(i)];
    const auto index = static_cast<std::size_t>(event.data.u64 & 0xffff'ffff);
    Watch* watch = index < watches_.size() ? watches_[index].get() : nullptr;
    if (watch && watch->registration == event.data.u64 >> 32) watch->callback(event.events);
  }
}

void Loop::run_posted() {
  if (!has_posted_.load(std::memory_order_acquire)) return;
  std::vector<std::function<void()>> work;
  {
    const std::lock_guard lock(mutex_);
    work.swap(posted_);
    has_posted_.store(false, std::memory_order_release);
  }
  for (auto& item : work) item();
}

}  // namespace hoplite
