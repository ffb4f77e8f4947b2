// An epoll loop: descriptors, timers and work posted from other threads.
//
// Owned and run by one thread; only `post` and `stop` may be called from others. Callbacks may add and remove anything,
// themselves included. See docs/adr/0003-event-loop.md for why this is not asio.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/lingering.h"
#include "base/time.h"
#include "base/unique_fd.h"

namespace hoplite {

Time monotonic_now();

class Loop {
 public:
  using Callback = std::function<void(std::uint32_t epoll_events)>;

  Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Level-triggered. `events` is a set of EPOLLIN, EPOLLOUT. The descriptor stays the caller's.
  void add(int fd, std::uint32_t events, Callback callback);
  void modify(int fd, std::uint32_t events);
  // After this the callback is not called again, also for events that were already fetched.
  void remove(int fd);

  using TimerId = std::uint64_t;  // never 0
  TimerId at(Time when, std::function<void()> callback);
  void cancel(TimerId timer);  // of a timer that has run, or 0: nothing happens

  // Runs `work` on the loop thread, soon. Thread-safe; order is kept per posting thread.
  void post(std::function<void()> work);

  // Called after each batch of callbacks, and once more before waiting: a place to flush what was queued.
  void after_batch(std::function<void()> callback) { after_batch_.push_back(std::move(callback)); }

  // Waits for something to happen, at most until `until`, and handles it. With busy polling it spins instead of sleeping.
  void run_once(Time until);
  void run();   // until stop()
  void stop();  // thread-safe
  void set_busy_poll(bool on) { busy_poll_ = on; }
  // Before it falls asleep it looks for more during this time, as long as that pays: waking a sleeping core costs more.
  void set_linger(Duration linger) { linger_ = linger; }

  // The time at the start of the current batch.
  Time now() const { return now_; }

 private:
  static constexpr int kEventsPerWait = 256;  // bounds the work between two flushes, not the number of descriptors

  struct Watch {
    std::uint32_t registration = 0;
    std::uint32_t events = 0;
    Callback callback;
  };

  Watch& watch_of(int fd);
  void control(int operation, int fd, const Watch& watch);
  void wake();
  void drain_wakes();
  int wait(Time until);
  std::optional<int> spin(Time stop);
  int wait_in_kernel(Duration timeout);
  void run_timers();
  void run_watches(int count);
  void run_posted();
  void flush();

  const UniqueFd epoll_fd_;
  const UniqueFd wake_fd_;
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

}  // namespace hoplite
