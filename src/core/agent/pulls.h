// What this node pulls from others. A pull fills one slice of a copy for an owner: a fetch, or an input of a reduce's slot.
//
// The way of a slice here may take many pulls, one at a time. What is remembered between them, failures and silences, is
// what decides how soon the next one may begin and how much silence it bears. It is forgotten with the copy's owner; a pull
// that still runs then ends without a word.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <variant>

#include "base/limits.h"
#include "core/agent/events.h"
#include "core/agent/slot_key.h"
#include "core/objects/object_table.h"

namespace hoplite {

class Pulls {
 public:
  struct FetchOf {
    ObjectId id;
  };
  struct InputOf {
    SlotKey slot;
    std::size_t input = 0;
  };
  using Owner = std::variant<FetchOf, InputOf>;

  explicit Pulls(const Limits& limits) : limits_(limits) {}

  // Pulls into this copy are that owner's from now on, also the one that runs.
  void set_owner(CopyKey copy, Owner owner);
  void forget(CopyKey copy);

  struct Start {
    NodeRef parent;
    Address address;
    PullRequest pull;  // its number is chosen here
  };
  // Into a copy that has an owner and no running pull of that slice.
  void start(CopyUse use, Start start, Effects& out);
  bool is_running(CopyKey copy, std::uint32_t slice) const { return transfer_of(copy, slice) != 0; }
  NodeRef last_parent(CopyKey copy, std::uint32_t slice) const;  // nil if there was none
  // Of the pull that runs.
  Priority priority(CopyKey copy, std::uint32_t slice) const;
  // Tells the parent if it differs from what it was told. Nothing happens if no pull runs.
  void prioritize(CopyKey copy, std::uint32_t slice, Priority priority, Effects& out);
  bool empty() const { return running_.empty(); }

  // --- events. What they mean to the owner; nothing if there is none any more.
  struct Accepted {
    Owner owner;
    CopyKey copy = 0;
    std::uint32_t slice = 0;
  };
  struct Ended {
    Owner owner;
    CopyKey copy = 0;
    std::uint32_t slice = 0;
    NodeRef parent;
    PullEnd how = PullEnd::kComplete;
    ValidBytes valid;
    std::uint32_t failures = 0;  // pulls that ended early since one was accepted, with this one
  };
  std::optional<Accepted> on_accepted(TransferId transfer);
  // Gives it up: `on_ended` tells how far it got.
  void on_silent(TransferId transfer, Effects& out);
  std::optional<Ended> on_ended(const event::PullEnded& e);

  // How long to wait after so many failures: the first retries are immediate, because a parent died and every millisecond
  // counts; after that, patience.
  Duration pause_after(std::uint32_t failures) const;

  void check_invariants() const;

 private:
  struct Way {  // of one slice
    TransferId transfer = 0;
    NodeRef parent;
    std::uint64_t front = 0;     // where the pull began
    std::uint32_t failures = 0;  // since a pull was accepted
    std::uint32_t silences = 0;  // since the last byte
  };
  struct Course {
    Owner owner;
    std::map<std::uint32_t, Way> ways;  // by slice
  };
  struct Running {
    CopyUse use;
    std::uint32_t slice = 0;
    Priority priority = Priority::kNormal;
  };
  TransferId transfer_of(CopyKey copy, std::uint32_t slice) const;
  Way* way_of(TransferId transfer, Course** course = nullptr);
  Duration patience(const Course& course, const Way& way) const;

  const Limits& limits_;
  std::unordered_map<CopyKey, Course> courses_;
  std::unordered_map<TransferId, Running> running_;
  TransferId next_ = 1;
};

}  // namespace hoplite
