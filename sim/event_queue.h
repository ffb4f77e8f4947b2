// Virtual time: what happens next.
//
// Events run in order of time, and of insertion where times are equal, so a run is a function of its seed. Callbacks are
// small and trivially copyable (`Task`): they name things by number and look them up when they run, because a node may have
// died in between.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "base/time.h"

namespace hoplite::sim {

class Task {
 public:
  static constexpr std::size_t kRoom = 48;

  Task() = default;
  template <typename F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, Task>)
  Task(F callback) {  // NOLINT(google-explicit-constructor): `at(time, [=] { ... })`
    static_assert(sizeof(F) <= kRoom && std::is_trivially_copyable_v<F> && std::is_trivially_destructible_v<F>);
    new (room_) F(callback);
    run_ = [](void* room) { (*std::launder(reinterpret_cast<F*>(room)))(); };
  }

  void operator()() { run_(room_); }

 private:
  alignas(std::max_align_t) std::byte room_[kRoom];
  void (*run_)(void*) = nullptr;
};

class EventQueue {
 public:
  Time now() const { return now_; }
  std::uint64_t executed() const { return executed_; }
  bool empty() const { return heap_.empty(); }
  // Time::never() if there is nothing.
  Time next_time() const { return heap_.empty() ? Time::never() : heap_.front().when; }

  void at(Time when, Task task) {
    CHECK(when >= now_, "an event in the past", when.ns, now_.ns);
    std::uint32_t slot;
    if (free_.empty()) {
      slot = static_cast<std::uint32_t>(tasks_.size());
      tasks_.push_back(task);
    } else {
      slot = free_.back();
      free_.pop_back();
      tasks_[slot] = task;
    }
    heap_.push_back({when, inserted_++, slot});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  void after(Duration delay, Task task) { at(now_ + delay, task); }

  // Runs the next event. There must be one.
  void run_next() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Entry entry = heap_.back();
    heap_.pop_back();
    now_ = entry.when;
    Task task = tasks_[entry.slot];
    free_.push_back(entry.slot);
    ++executed_;
    task();
  }

  // Time passes and nothing happens: there must be no event before `when`.
  void advance_to(Time when) {
    CHECK(when >= now_ && when <= next_time(), "skipping events");
    now_ = when;
  }

 private:
  struct Entry {
    Time when;
    std::uint64_t number;
    std::uint32_t slot;
  };
  static bool later(const Entry& a, const Entry& b) { return a.when != b.when ? a.when > b.when : a.number > b.number; }

  Time now_;
  std::uint64_t inserted_ = 0;
  std::uint64_t executed_ = 0;
  std::vector<Entry> heap_;
  std::vector<Task> tasks_;  // by slot; apart from the heap so that sifting moves little
  std::vector<std::uint32_t> free_;
};

}  // namespace hoplite::sim
