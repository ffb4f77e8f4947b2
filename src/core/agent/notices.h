// Who here waits to be told that an object is ready, wherever it is: clients' waits, and reduces that are coordinated here.
// The object's home is asked for it, again and again, until it has told, or nobody wants to know any more.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/limits.h"
#include "core/agent/clients.h"
#include "core/agent/outbox.h"
#include "core/agent/records.h"
#include "core/agent/timers.h"

namespace hoplite {

class Notices {
 public:
  Notices(const Limits& limits, Timers& timers, Clients& clients, Records& records, Outbox& out)
      : limits_(limits), timers_(timers), clients_(clients), records_(records), out_(out) {}

  // --- clients' waits
  // For `count` of these, all of which have records.
  void wait(const RequestKey& key, const std::set<ObjectId>& ids, std::size_t count);
  // Answers with those that are ready or gone, unless it has been answered.
  void end_wait(const RequestKey& key);

  // --- reduces
  // The bytes are welcome as well, up to `welcome_bytes`. The home is to be asked.
  void watch(const ObjectId& source, const ObjectId& target, std::uint64_t welcome_bytes);
  void unwatch(const ObjectId& source, const ObjectId& target);
  std::set<ObjectId> watchers(const ObjectId& source) const;
  bool is_watched(const ObjectId& source) const;
  // They are told now, and not again; a reduce that loses it watches it again.
  std::set<ObjectId> take_watchers(const ObjectId& source);

  // --- the home
  bool contains(const ObjectId& id) const { return interests_.contains(id); }
  bool has_asked(const ObjectId& id, std::uint64_t number) const;
  void ask(const ObjectId& id);
  void ask_at(const ObjectId& id, Time when);
  // True: other questions to its home are ahead of this one, and the timer runs again.
  bool waits_for_its_turn(const ObjectId& id);
  void on_waiting(const ObjectId& id);
  // It is deleted or lost, or its reduce has failed: waits are told, and end if too few can become ready. Reduces may wait for
  // it to be put again.
  void on_failed(const ObjectId& id, Code code);
  // It is committed, here or elsewhere: waits have it. Reduces that watch it still have heard of a holder that is dead, as we
  // know: the home will.
  void on_ready(const ObjectId& id);

  // Of all that there are.
  void add_ids(std::set<ObjectId>& ids) const {
    for (const auto& item : interests_) ids.insert(item.first);
  }

  void check_invariants() const;

 private:
  struct Wait {
    std::set<ObjectId> missing;
    std::vector<ObjectId> ready;
    std::vector<ipc::Gone> gone;
    std::size_t count = 0;
  };
  struct Interest {
    std::set<RequestKey> waits;
    std::set<ObjectId> watchers;  // targets of reduces that have it as a source
    std::uint64_t welcome_bytes = 0;
    bool if_put_again = false;  // it is lost: the home has said so
    std::uint64_t number = 0;   // of the question that is open: its answer may make this node a holder; 0 = none
    std::optional<Timers::Handle> timer;
    bool is_wanted() const { return !waits.empty() || !watchers.empty(); }
  };
  void let_go_if_unwanted(const ObjectId& id);
  void close_question(Interest& interest);
  void forget(const ObjectId& id);

  const Limits& limits_;
  Timers& timers_;
  Clients& clients_;
  Records& records_;
  Outbox& out_;
  std::map<RequestKey, Wait> waits_;
  std::map<ObjectId, Interest> interests_;
};

}  // namespace hoplite
