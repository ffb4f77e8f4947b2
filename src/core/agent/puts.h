// Objects that clients of this node put, until their homes have taken them.
//
// A put is claimed at the id's home as soon as there is a copy, so that nobody else puts the id while the client writes; and
// again, sealed, when the client has nothing to add. A small object is claimed and sealed at once, with its bytes. A claim is
// repeated until it is answered. When a put ends in vain, every home that was asked is told.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "base/limits.h"
#include "core/agent/outbox.h"
#include "core/agent/records.h"
#include "core/agent/timers.h"

namespace hoplite {

class Puts {
 public:
  Puts(const Limits& limits, Timers& timers, const Records& records, Outbox& out)
      : limits_(limits), timers_(timers), records_(records), out_(out) {}

  // Of the id's current copy.
  void begin(const ObjectId& id, ClientKey client);
  // The client has nothing to add. Its request is answered when the put ends; claim it now unless it is being claimed.
  void seal(const ObjectId& id, std::uint64_t client_request);
  // Asks the home (again).
  void claim(const ObjectId& id);
  void claim_at(const ObjectId& id, Time when);
  // True: other questions to its home are ahead of this one, and the timer runs again.
  bool waits_for_its_turn(const ObjectId& id);

  bool contains(const ObjectId& id) const { return puts_.contains(id); }
  // The home has taken the id: others may have the bytes.
  bool is_claimed(const ObjectId& id) const;
  // No claim is under way: the home has taken it, and the client has more to add.
  bool is_answered(const ObjectId& id) const { return !puts_.at(id).retry; }
  // The home was told that all bytes are there: it may be committed already.
  bool may_be_committed(const ObjectId& id) const;

  enum class Answer : std::uint8_t { kNone, kRefused, kTooOld, kClaimed, kCommitted };
  // kNone: it is old news, or there is more to say to the home, and it has been said. kTooOld: another version may be claimed;
  // nobody has had this one.
  Answer on_reply(NodeRef from, const PutReply& m);

  struct Ended {
    CopyKey copy = 0;
    ClientKey client = 0;
    std::uint64_t client_request = 0;  // 0: the client has not sealed it
  };
  Ended finish(const ObjectId& id);
  // All homes that were asked are told, but for the one that has refused it (nil: none).
  Ended give_up(const ObjectId& id, NodeRef refused_by = {});

  // Of all that there are.
  void add_ids(std::set<ObjectId>& ids) const {
    for (const auto& item : puts_) ids.insert(item.first);
  }

  void check_invariants() const;

 private:
  struct Put {
    CopyKey copy = 0;
    ClientKey client = 0;
    std::uint64_t client_request = 0;  // 0: the client has more to add
    std::uint64_t first_number = 0;    // of the first claim; open until it is accepted
    std::uint64_t number = 0;          // of the last one
    std::set<NodeRef> asked;
    bool sealed_sent = false;  // the last claim said that it is sealed
    bool claimed = false;
    std::optional<Timers::Handle> retry;
    bool is_sealed() const { return client_request != 0; }
  };

  const Limits& limits_;
  Timers& timers_;
  const Records& records_;
  Outbox& out_;
  std::map<ObjectId, Put> puts_;
};

}  // namespace hoplite
