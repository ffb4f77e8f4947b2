// Peers that pull from this node: which pulls are accepted, which have to wait here, and which are refused.
//
// No cycles, whatever the homes say. A child is never ahead of its parent, and one that has children of its own must be
// strictly behind (unless the parent is where the bytes come into being); a copy takes children only once it is attached or
// complete itself, so that it has told its own parent about them. `judge` is that rule.
//
// A copy of one slice that has no bytes takes children at once, so that a chain of seven need not attach one after the other;
// but only those that its own home has assigned later than itself. In a circle of copies without bytes each one would have
// been assigned later than the one before it, which cannot be; and a copy that is assigned anew has told its parent about
// the children that it had, as before. (Slices of an allreduce go round a ring, whose nodes ask in any order.)
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/limits.h"
#include "core/agent/events.h"
#include "core/agent/timers.h"
#include "core/objects/object_table.h"

namespace hoplite {

class Serves {
 public:
  struct Asked {
    NodeRef peer;
    ChannelId channel = 0;
    PullRequest pull;
    Time since;
  };
  // The slice that is asked for, as this node has it.
  struct Source {
    std::uint64_t object_bytes = 0;
    std::uint32_t slices = 1;  // how a copy that is not complete is cut
    enum class Here : std::uint8_t {
      kNotYet,    // nobody gives it to us so far
      kRelayed,   // it arrives from a parent
      kProduced,  // it comes into being on this node
      kWhole,     // every byte is there, and final
    } here = Here::kNotYet;
    std::uint64_t front = 0;
    Ticket ticket = {};  // the assignment by which it is to come; nil if it comes otherwise
  };
  enum class Verdict : std::uint8_t { kAccept, kPark, kRefuse };

  Serves(const Limits& limits, Timers& timers) : limits_(limits), timers_(timers) {}

  static Verdict judge(const PullRequest& pull, const Source& source);

  // --- accepted
  // Refuses it if the copy has as many children as it may.
  void accept(CopyUse use, const Asked& asked, Effects& out);
  // The child has let go. The copy and slice that it was served from, unless there is no such serve.
  struct Served {
    CopyKey copy = 0;
    std::uint32_t slice = 0;
    auto operator<=>(const Served&) const = default;
  };
  std::optional<Served> end(ServeId serve);
  std::uint32_t children(CopyKey copy, std::uint32_t slice) const;
  bool empty() const { return serves_.empty(); }

  // --- priorities
  std::optional<Served> prioritize(ServeId serve, Priority priority);
  // The highest of the children's; kLow if there are none.
  Priority highest(CopyKey copy, std::uint32_t slice) const;

  // --- parked: until they are taken, refused, or have waited for too long
  void park(Time now, const Asked& asked, Effects& out);
  bool is_parked(const ObjectId& id) const { return parked_.contains(id); }
  std::vector<Asked> take_parked(const ObjectId& id);
  void refuse_parked(const ObjectId& id, Effects& out);
  // Returns the ids that they asked for.
  std::vector<ObjectId> refuse_stale(Time now, Effects& out);
  static void refuse(const Asked& asked, Effects& out);

  void check_invariants() const;

 private:
  struct Serve {
    CopyUse use;
    std::uint32_t slice = 0;
    NodeRef child;
    Priority priority = Priority::kNormal;
  };
  // Longer than a child waits that has others to ask.
  Duration park_for() const { return limits_.stall_after * limits_.parked_stalls; }

  const Limits& limits_;
  Timers& timers_;
  std::map<ServeId, Serve> serves_;
  std::map<Served, std::vector<ServeId>> by_slice_;
  std::map<ObjectId, std::vector<Asked>> parked_;
  std::optional<Timers::Handle> stale_timer_;
  ServeId next_ = 1;
};

}  // namespace hoplite
