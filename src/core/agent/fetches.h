// Objects that this node wants the bytes of: the conversation with their homes about it, until pulls bring them.
//
//   kIdle       nothing is under way
//   kAsking     the home was asked, or will be when the timer says so
//   kNeedsRoom  in the queue for room; the home is asked again after that
//   kPulling    bytes come, or the pull is being set up
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/limits.h"
#include "core/agent/outbox.h"
#include "core/agent/records.h"
#include "core/agent/room.h"
#include "core/agent/timers.h"

namespace hoplite {

class Fetches {
 public:
  enum class State : std::uint8_t { kIdle, kAsking, kNeedsRoom, kPulling };

  Fetches(const Limits& limits, Timers& timers, Room& room, Records& records, Outbox& out)
      : limits_(limits), timers_(timers), room_(room), records_(records), out_(out) {}

  State state(const ObjectId& id) const;
  bool is_idle(const ObjectId& id) const { return state(id) == State::kIdle; }
  bool is_asking(const ObjectId& id) const { return state(id) == State::kAsking; }
  // The question that is open has this number.
  bool has_asked(const ObjectId& id, std::uint64_t number) const;

  // --- asking
  // `want` says what is here already. What was said and refused before does not count any more.
  void begin(Want want);
  void ask(Want want);
  void ask_later(const ObjectId& id, Duration delay);
  // True: other questions to its home are ahead of this one, so that nothing was lost, and the timer runs again.
  bool waits_for_its_turn(const ObjectId& id);
  // Takes back what was asked of the home, or the place in the queue. Pulls are not touched.
  void stop(const ObjectId& id);
  // There is nothing to take back: it is here, or nobody wants it any more.
  void end(const ObjectId& id);

  // --- answers
  void on_waiting(const Waiting& m);
  // It is lost, and somebody waits for it to be put again.
  void on_lost(const ObjectId& id);
  // Parents were named: bytes come.
  void on_assigned(const ObjectId& id);
  // The home coordinates a reduce into it: so it said since it is the home.
  bool take_told_reducing(const ObjectId& id);
  // What is waited for, in words.
  std::string waits_for(const ObjectId& id) const;

  // --- parents that refused or fell silent
  void avoid(const ObjectId& id, NodeId parent);
  void forgive(const ObjectId& id);
  // How soon to ask again for a slice that has no parent: the plan has a better place soon, or we refuse whoever has it.
  Duration patience(const ObjectId& id) const;

  // --- room
  // In the queue; or, if its turn had come and it did not fit after all, the home is asked again after a while.
  void wait_for_room(const ObjectId& id, std::uint64_t bytes);
  void grant_room(const ObjectId& id);
  bool has_room_granted(const ObjectId& id) const;
  void take_granted_room(const ObjectId& id);
  // Its turn came so lately that the object could not have come since.
  bool got_room_just_now(const ObjectId& id) const;

  // Of all that there are.
  void add_ids(std::set<ObjectId>& ids) const {
    for (const auto& item : fetches_) ids.insert(item.first);
  }

  void check_invariants() const;

 private:
  struct Fetch {
    State state = State::kIdle;
    std::uint64_t question = 0;      // 0: none is open
    bool told_waiting = false;       // the home says that nobody has put it,
    bool told_reducing = false;      // that it coordinates a reduce into it,
    bool told_lost = false;          // or that it is lost; those who wait nevertheless wait on
    bool room_granted = false;       // its turn in the queue for room has come
    std::optional<Time> room_since;  // when that was, the last time
    std::vector<NodeId> avoid;
    std::optional<Timers::Handle> timer;
  };
  const Fetch* find(const ObjectId& id) const;
  void close_question(Fetch& fetch);

  const Limits& limits_;
  Timers& timers_;
  Room& room_;
  Records& records_;
  Outbox& out_;
  std::map<ObjectId, Fetch> fetches_;
};

}  // namespace hoplite
