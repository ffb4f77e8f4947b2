// An epoll loop: descriptors, timers and work posted from other threads.
//
// Owned and run by one thread; only `post` and `stop` may be called from others. Callbacks may add and remove anything,
// themselves included. See docs/adr/0003-event-loop.md for why this is not asio.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/time.h"

namespace hoplite {

Time monotonic_now();

class Loop {
 public:
  using Callback = std::function<void(std::uint32_t epoll_events)>;

  Loop();
  ~Loop();
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
  void after_batch(std::function<void()> callback);

  // Waits for something to happen, at most until `until`, and handles it. With busy polling it spins instead of sleeping.
  void run_once(Time until);
  void run();   // until stop()
  void stop();  // thread-safe
  void set_busy_poll(bool on);
  // Before it falls asleep it looks for more during this time, as long as that pays: waking a sleeping core costs more.
  void set_linger(Duration linger);

  // The time at the start of the current batch.
  Time now() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hoplite
