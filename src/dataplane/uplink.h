// How much of the node's uplink the serves of a lane may have while more urgent ones are sent, whichever link they are on. Pure.
//
// A link's own streams are in a StreamScheduler's hands, but several links share the uplink, and TCP would give each the same.
// While frames of a higher priority flow, lower ones get what is owed to them: one byte of `least_share` for each.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "base/time.h"
#include "hoplite/priority.h"

namespace hoplite::dataplane {

class Uplink {
 public:
  struct Options {
    Duration idle_after;  // without a frame for so long, a priority does not hold lower ones
    std::uint64_t turn_bytes = 1;
    std::uint32_t least_share = 20;
  };
  static constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

  explicit Uplink(const Options& options) : options_(options) {}

  // A serve of that priority begins; it has ended.
  void add(Priority priority) { ++class_of(priority).serves; }
  void remove(Priority priority);
  // How many bytes of that priority may be sent now: less than a turn means none.
  std::uint64_t admitted(Time now, Priority priority) const;
  void sent(Time now, Priority priority, std::uint64_t bytes);

  // The last serve of a priority has ended since the last time: those that were held may go on.
  bool take_released();

 private:
  struct Class {
    std::size_t serves = 0;
    Time sent_at = Time::never();  // never: not yet
    std::uint64_t owed_bytes = 0;  // by higher ones, times `least_share` - 1
  };
  Class& class_of(Priority priority) { return classes_[static_cast<std::size_t>(priority)]; }
  bool flows(Time now, const Class& c) const;

  Options options_;
  std::array<Class, static_cast<std::size_t>(last_enumerator(Priority{})) + 1> classes_;
  bool released_ = false;
};

}  // namespace hoplite::dataplane
