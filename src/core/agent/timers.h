// What the agent has to do at a certain time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "base/node_id.h"
#include "base/time.h"
#include "hoplite/object_id.h"

namespace hoplite {

struct Timer {
  enum class Kind : std::uint8_t {
    kRequestDeadline,  // client, request
    kWant,             // id: ask the home (again)
    kNotify,           // id: ask the home (again) to be told
    kClaim,            // id: send the put to the home again
    kDelete,           // key: send the delete again
    kRoom,             // try again to make room
    kResync,           // node: announce everything again
    kSlot,             // target, slot: tell the coordinator how things are
    kSlotFeed,         // target, slot, input: pull it again
    kSlotRoom,         // target, slot: has not found room
    kReduction,        // target: something is due
    kReduceDeadline,   // target
    kReduceAsk,        // key: send the request to the home again
    kParked,           // refuse pulls that have waited for too long
    kRefresh,          // tell the next home everything, as a matter of routine
    kLeave,            // we were told to stop, and have waited long enough for what runs
  };
  Kind kind = Kind::kRoom;
  ObjectId id;
  std::uint64_t client = 0;
  std::uint64_t request = 0;
};

class Timers {
 public:
  using Handle = std::pair<Time, std::uint64_t>;

  // Replaces what `handle` stood for. A deadline that never comes sets nothing.
  void set(std::optional<Handle>& handle, Time when, Timer timer) {
    cancel(handle);
    if (when == Time::never()) return;
    handle = Handle{when, next_++};
    timers_.emplace(*handle, timer);
  }
  void cancel(std::optional<Handle>& handle) {
    if (handle) timers_.erase(*handle);
    handle.reset();
  }
  std::optional<Timer> pop_due(Time now) {
    if (timers_.empty() || timers_.begin()->first.first > now) return std::nullopt;
    const Timer timer = timers_.begin()->second;
    timers_.erase(timers_.begin());
    return timer;
  }
  Time next() const { return timers_.empty() ? Time::never() : timers_.begin()->first.first; }

 private:
  std::map<Handle, Timer> timers_;
  std::uint64_t next_ = 1;
};

}  // namespace hoplite
