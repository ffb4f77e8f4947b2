#include "transport/loop.h"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/lingering.h"

namespace hoplite {

Time monotonic_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return {static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec};
}

namespace {

constexpr int kEventsPerWait = 256;  // a bound on the work between two flushes, not on the number of descriptors

// An epoll event carries the descriptor and the registration's number, so that an event which was fetched for a
// descriptor that was removed (and perhaps opened again) is recognised.
std::uint64_t pack(int fd, std::uint32_t registration) {
  return static_cast<std::uint64_t>(registration) << 32 | static_cast<std::uint32_t>(fd);
}

}  // namespace

class Loop::Impl {
 public:
  Impl() : epoll_fd_(epoll_create1(EPOLL_CLOEXEC)), wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    CHECK(epoll_fd_ >= 0 && wake_fd_ >= 0, errno);
    now_ = monotonic_now();
    add(wake_fd_, EPOLLIN, [this](std::uint32_t) { drain_wakes(); });
  }
  ~Impl() {
    close(wake_fd_);
    close(epoll_fd_);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void add(int fd, std::uint32_t events, Callback callback);
  void modify(int fd, std::uint32_t events);
  void remove(int fd);
  TimerId at(Time when, std::function<void()> callback);
  void cancel(TimerId timer);
  void post(std::function<void()> work);
  void after_batch(std::function<void()> callback) { after_batch_.push_back(std::move(callback)); }
  void run_once(Time until);
  void run();
  void stop();
  void set_busy_poll(bool on) { busy_poll_ = on; }
  void set_linger(Duration linger) { linger_ = linger; }
  Time now() const { return now_; }

 private:
  struct Watch {
    std::uint32_t registration = 0;
    std::uint32_t events = 0;
    Callback callback;
  };

  void wake();
  void drain_wakes();
  int wait(Time until);
  std::optional<int> spin(Time stop);
  int wait_in_kernel(Duration timeout);
  void run_timers();
  void run_watches(int count);
  void run_posted();
  void flush();

  const int epoll_fd_;
  const int wake_fd_;
  bool busy_poll_ = false;
  Duration linger_;
  Lingering lingering_;
  bool running_batch_ = false;
  Time now_;

  std::vector<std::unique_ptr<Watch>> watches_;  // by descriptor
  std::vector<std::unique_ptr<Watch>> removed_;  // kept to the end of the batch: a callback may remove itself
  std::uint32_t last_registration_ = 0;
  std::array<epoll_event, kEventsPerWait> fetched_{};

  std::map<std::pair<Time, TimerId>, std::function<void()>> timers_;
  std::unordered_map<TimerId, Time> timer_times_;
  TimerId last_timer_ = 0;

  std::vector<std::function<void()>> after_batch_;

  std::mutex mutex_;
  std::vector<std::function<void()>> posted_;  // guarded by mutex_
  bool sleeping_ = false;                      // guarded by mutex_: a wake is needed
  std::atomic<bool> has_posted_ = false;       // so that a spinning loop need not take the mutex
  std::atomic<bool> stop_ = false;
};

void Loop::Impl::add(int fd, std::uint32_t events, Callback callback) {
  CHECK(fd >= 0);
  const auto index = static_cast<std::size_t>(fd);
  if (watches_.size() <= index) watches_.resize(index + 1);
  CHECK(!watches_[index], "descriptor is already watched:", fd);
  const std::uint32_t registration = ++last_registration_;
  epoll_event event{};
  event.events = events;
  event.data.u64 = pack(fd, registration);
  CHECK(epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) == 0, fd, errno);
  watches_[index] = std::make_unique<Watch>(Watch{registration, events, std::move(callback)});
}

void Loop::Impl::modify(int fd, std::uint32_t events) {
  const auto index = static_cast<std::size_t>(fd);
  CHECK(fd >= 0 && index < watches_.size() && watches_[index], "descriptor is not watched:", fd);
  Watch& watch = *watches_[index];
  if (watch.events == events) return;
  watch.events = events;
  epoll_event event{};
  event.events = events;
  event.data.u64 = pack(fd, watch.registration);
  CHECK(epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, fd, &event) == 0, fd, errno);
}

void Loop::Impl::remove(int fd) {
  const auto index = static_cast<std::size_t>(fd);
  CHECK(fd >= 0 && index < watches_.size() && watches_[index], "descriptor is not watched:", fd);
  CHECK(epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr) == 0, fd, errno);
  if (running_batch_) removed_.push_back(std::move(watches_[index]));
  watches_[index].reset();
}

Loop::TimerId Loop::Impl::at(Time when, std::function<void()> callback) {
  const TimerId timer = ++last_timer_;
  timers_.emplace(std::pair(when, timer), std::move(callback));
  timer_times_.emplace(timer, when);
  return timer;
}

void Loop::Impl::cancel(TimerId timer) {
  const auto it = timer_times_.find(timer);
  if (it == timer_times_.end()) return;
  timers_.erase({it->second, timer});
  timer_times_.erase(it);
}

void Loop::Impl::post(std::function<void()> work) {
  bool must_wake = false;
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(work));
    has_posted_.store(true, std::memory_order_release);
    must_wake = std::exchange(sleeping_, false);
  }
  if (must_wake) wake();
}

void Loop::Impl::wake() {
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then the loop is awake.
  [[maybe_unused]] const auto written = write(wake_fd_, &one, sizeof one);
}

void Loop::Impl::drain_wakes() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = read(wake_fd_, &count, sizeof count);
}

void Loop::Impl::run() {
  while (!stop_.load(std::memory_order_acquire)) run_once(Time::never());
  stop_.store(false, std::memory_order_release);
}

void Loop::Impl::stop() {
  stop_.store(true, std::memory_order_release);
  post([] {});
}

void Loop::Impl::run_once(Time until) {
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

void Loop::Impl::flush() {
  for (std::size_t i = 0; i < after_batch_.size(); ++i) after_batch_[i]();
}

int Loop::Impl::wait(Time until) {
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
std::optional<int> Loop::Impl::spin(Time stop) {
  for (;;) {
    const int count = wait_in_kernel(Duration{0});
    if (count > 0 || has_posted_.load(std::memory_order_acquire)) return count;
    if (monotonic_now() >= stop) return std::nullopt;
    sched_yield();  // others may spin on the same core, waiting for us
  }
}

// A negative timeout waits for ever.
int Loop::Impl::wait_in_kernel(Duration timeout) {
  if (timeout.ns <= 0)
    return std::max(0, epoll_wait(epoll_fd_, fetched_.data(), kEventsPerWait, timeout.ns < 0 ? -1 : 0));
  // The pacing of transfers needs better than epoll_wait's milliseconds.
  static std::atomic<bool> has_pwait2 = true;
  if (has_pwait2.load(std::memory_order_relaxed)) {
    const timespec limit{timeout.ns / 1'000'000'000, timeout.ns % 1'000'000'000};
    const int count = epoll_pwait2(epoll_fd_, fetched_.data(), kEventsPerWait, &limit, nullptr);
    if (count >= 0 || errno != ENOSYS) return std::max(0, count);
    has_pwait2.store(false, std::memory_order_relaxed);
  }
  const std::int64_t ms = std::min<std::int64_t>((timeout.ns + 999'999) / 1'000'000, 60'000);
  return std::max(0, epoll_wait(epoll_fd_, fetched_.data(), kEventsPerWait, static_cast<int>(ms)));
}

void Loop::Impl::run_timers() {
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

void Loop::Impl::run_watches(int count) {
  for (int i = 0; i < count; ++i) {
    const epoll_event event = fetched_[static_cast<std::size_t>(i)];
    const auto index = static_cast<std::size_t>(event.data.u64 & 0xffff'ffff);
    Watch* watch = index < watches_.size() ? watches_[index].get() : nullptr;
    if (watch && watch->registration == event.data.u64 >> 32) watch->callback(event.events);
  }
}

void Loop::Impl::run_posted() {
  if (!has_posted_.load(std::memory_order_acquire)) return;
  std::vector<std::function<void()>> work;
  {
    const std::lock_guard lock(mutex_);
    work.swap(posted_);
    has_posted_.store(false, std::memory_order_release);
  }
  for (auto& item : work) item();
}

Loop::Loop() : impl_(std::make_unique<Impl>()) {}
Loop::~Loop() = default;
void Loop::add(int fd, std::uint32_t events, Callback callback) { impl_->add(fd, events, std::move(callback)); }
void Loop::modify(int fd, std::uint32_t events) { impl_->modify(fd, events); }
void Loop::remove(int fd) { impl_->remove(fd); }
Loop::TimerId Loop::at(Time when, std::function<void()> callback) { return impl_->at(when, std::move(callback)); }
void Loop::cancel(TimerId timer) { impl_->cancel(timer); }
void Loop::post(std::function<void()> work) { impl_->post(std::move(work)); }
void Loop::after_batch(std::function<void()> callback) { impl_->after_batch(std::move(callback)); }
void Loop::run_once(Time until) { impl_->run_once(until); }
void Loop::run() { impl_->run(); }
void Loop::stop() { impl_->stop(); }
void Loop::set_busy_poll(bool on) { impl_->set_busy_poll(on); }
void Loop::set_linger(Duration linger) { impl_->set_linger(linger); }
Time Loop::now() const { return impl_->now(); }

}  // namespace hoplite
