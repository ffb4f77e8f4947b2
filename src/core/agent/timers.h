// What the agent has to do at a certain time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <variant>

#include "base/node_id.h"
#include "base/time.h"
#include "core/agent/slot_key.h"
#include "hoplite/object_id.h"
#include "protocol/transfer.h"

namespace hoplite {

namespace timer {

struct RequestDeadline {
  ClientKey client = 0;
  std::uint64_t request = 0;
};
struct Want {  // ask the home (again)
  ObjectId id;
};
struct Notify {  // ask the home (again) to be told
  ObjectId id;
};
struct Claim {  // send the put to the home again
  ObjectId id;
};
struct Errand {  // send it to the home again
  std::uint64_t key = 0;
};
struct Room {};  // try again to make room
struct Resync {  // messages may have been lost: compare notes, ask again
  NodeId peer;
};
struct SlotReport {  // tell the coordinator how things are
  SlotKey slot;
};
struct SlotFeed {  // pull this input again
  SlotKey slot;
  std::size_t input = 0;
};
struct SlotRoom {  // it has not found room
  SlotKey slot;
};
struct ReduceDue {  // something is due
  ObjectId target;
};
struct ReduceDeadline {
  ObjectId target;
};
struct Parked {};   // refuse pulls that have waited for too long
struct Hearsay {};  // deputies are told
struct Refresh {};  // tell the next home everything, as a matter of routine
struct Ferry {};    // orders to fetch for others run out
struct Leave {};    // we were told to stop, and have waited long enough for running transfers

}  // namespace timer

using Timer =
    std::variant<timer::RequestDeadline, timer::Want, timer::Notify, timer::Claim, timer::Errand, timer::Room,
                 timer::Resync, timer::SlotReport, timer::SlotFeed, timer::SlotRoom, timer::ReduceDue,
                 timer::ReduceDeadline, timer::Parked, timer::Refresh, timer::Ferry, timer::Leave, timer::Hearsay>;

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
