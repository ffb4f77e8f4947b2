// Places in reduces that this node fills: its own sources and what it pulls from others, combined into an output.
//
// The coordinator orders, this node obeys and reports; it decides nothing but when to try again. Everything that a slot uses
// is held until the coordinator ends it, or is dead. The output of an inner slot, and the sources that a slot keeps, can be pulled
// from here by those that know their versions: they are *exported*. The output of a root is the target itself.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "core/agent/copies.h"
#include "core/agent/events.h"
#include "core/agent/outbox.h"
#include "core/agent/pulls.h"
#include "core/agent/records.h"
#include "core/agent/room.h"
#include "core/agent/slot_key.h"
#include "core/agent/timers.h"
#include "core/objects/object_table.h"

namespace hoplite {

class Slots {
 public:
  // What becomes of the targets that slots make here.
  class Host {
   public:
    virtual ~Host() = default;
    // False: a client's put of it is under way, and only its home may refuse that. `start_roots_of` when it has
    // ended.
    virtual bool may_become_target(const ObjectId& id) = 0;
    // The root's output, hidden so far, is the current copy of its id from now on.
    virtual void become_target(Copy& out) = 0;
    // A slice of it comes into being here.
    virtual void target_grows(Copy& out) = 0;
    // These slices are final, all or not.
    virtual void target_committed(Copy& out) = 0;
    // It will not become the object.
    virtual void target_dropped(Copy& out) = 0;
    // The highest priority of those who read or pull this slice of an output.
    virtual Priority demand(const Copy& out, std::uint32_t slice) const = 0;
  };

  struct Parts {
    const Limits& limits;
    Timers& timers;
    ObjectTable& table;
    Records& records;
    Copies& copies;
    Room& room;
    Pulls& pulls;
    Outbox& out;
  };
  Slots(Parts parts, Host& host);

  // --- the coordinator
  void on_order(NodeRef from, const SlotOrder& order);
  void on_end(NodeRef from, const SlotEnd& end);
  void report_to(NodeRef coordinator);  // messages to it may have been lost
  // It is dead. Nobody takes over: the targets and versions of the slots that were dropped.
  std::vector<std::pair<ObjectId, Version>> drop_those_of(NodeRef coordinator);
  void drop_all();

  // --- room, timers, and the data plane
  // Its turn has come. False: there is no room yet. Otherwise it is under way, or has been refused.
  bool take_room(const SlotKey& key);
  void on_timer(const timer::SlotReport& t) { report(t.slot); }
  void on_timer(const timer::SlotFeed& t) { pull(t.slot, t.input); }
  void on_timer(const timer::SlotRoom& t);
  void on_combined(const event::Combined& e);
  void on_input_ended(const Pulls::InputOf& input, const Pulls::Ended& e);
  void on_closed(CopyKey out) { used_by_.erase(out); }
  // Nobody here puts it (any more).
  void start_roots_of(const ObjectId& target);

  // `Host::demand` may have changed.
  void demand_changed(CopyKey out, std::uint32_t slice);

  // --- what others pull
  // The exported copy of this version; nullptr if there is none.
  Copy* exported(const ObjectId& id, Version version);
  // Whether it has what is asked for.
  bool may_pull(const Copy& copy, const PullRequest& pull) const;

  // The target may not be: it was deleted, or another version of it exists.
  void refuse_all_into(CopyKey out, Code code, const std::string& why);

  void check_invariants() const;

 private:
  struct Feed {  // an input, as far as it has been pulled
    SlotInput from;
    CopyUse copy;
    bool local = false;       // it is another slot's of this node: nothing to pull
    std::uint32_t slice = 0;  // which one of it `copy` is for
    ValidBytes valid;
    bool done = false;
    std::optional<Timers::Handle> retry;
  };
  struct Slot {
    NodeRef coordinator;
    SlotOrder order;
    std::uint32_t windows = 1;  // parts that are combined one after the other,
    std::uint32_t window = 0;   // and the present one
    std::vector<CopyUse> own;
    std::vector<Feed> feeds;
    CopyUse out;  // none: it keeps its sources, or it waits for room
    SlotState state = SlotState::kAccepted;
    std::optional<Timers::Handle> refresh;   // tell the coordinator how things are
    std::optional<Timers::Handle> room_due;  // look again whether there is room, or give up
    Time waits_since = Time::never();        // the next window, for room

    bool is_root() const { return order.role == SlotRole::kRoot; }
    // What is combined now: a slice of the sources, and where it goes in the output.
    std::uint32_t slice() const { return windows > 1 ? window : order.slice; }
    std::uint32_t slices() const { return windows > 1 ? windows : order.slices; }
    std::uint32_t target_slices() const { return windows > 1 ? windows : order.target_slices; }
    std::uint32_t out_slice() const { return windows == 1 && is_root() ? order.target_slice : slice(); }
    SliceRange range() const { return slice_range(order.source_size, slices(), slice()); }
  };
  struct Export {
    CopyKey copy = 0;
    std::uint32_t slots = 0;
  };
  // A slice of an output that is being combined.
  struct Combining {
    CopyKey out = 0;
    std::uint32_t slice = 0;
    auto operator<=>(const Combining&) const = default;
  };

  // --- slots.cc
  bool is_sane(const SlotOrder& order) const;
  Slot replace(const SlotKey& key);
  const SlotSource* hold_sources(Slot& slot, const Slot& before);
  std::uint32_t windows_of(const SlotOrder& order) const;
  void start(const SlotKey& key);
  bool reserve(Slot& slot);
  void run(const SlotKey& key);
  void combine(const SlotKey& key, Slot& slot);
  void open_target(Slot& slot);
  void begin_root(Slot& slot);
  void next_window(const SlotKey& key);
  void continue_with_window(const SlotKey& key);
  void report(const SlotKey& key);
  void refuse(SlotKey key, Code code, ObjectId culprit, const std::string& why);
  void send_refusal(NodeRef to, const SlotKey& key, Version version, Code code, ObjectId culprit,
                    const std::string& why);
  void commit(const SlotKey& key);
  void drop(SlotKey key);
  std::uint64_t bytes_of(const Slot& slot) const;

  // --- feeds.cc
  bool take_local_inputs(Slot& slot);
  void take_over_inputs(std::vector<Feed>& before, const SlotKey& key, Slot& slot);
  bool reserve_feeds(Slot& slot);
  void open_part(Copy& copy, const Slot& slot);
  void pull(const SlotKey& key, std::size_t input);
  void release(Feed& feed);
  Priority priority_of(const Slot& slot) const;
  void prioritize_inputs(const Slot& slot);
  void export_copy(const ObjectId& id, Version version, CopyKey copy);
  void unexport(const ObjectId& id, Version version);

  const Limits& limits_;
  Timers& timers_;
  ObjectTable& table_;
  Records& records_;
  Copies& copies_;
  Room& room_;
  Pulls& pulls_;
  Outbox& out_;
  Host& host_;
  std::map<SlotKey, Slot> slots_;
  std::map<Combining, SlotKey> combining_;
  std::map<CopyKey, std::vector<CopyUse>> used_by_;  // copies that its combination reads until it is closed
  std::map<std::pair<ObjectId, Version>, Export> exports_;
};

}  // namespace hoplite
