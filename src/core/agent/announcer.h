// What this node tells homes of what it has, and of what it knows to have existed: as it changes, and when a home is new or
// asks. A home believes what its owners tell.
//
// Words may be lost with a connection. So now and then, and when a connection was lost, this node and the home go through
// what both believe this node has, in pieces: a digest of a piece as of its position among the announcements; if the home
// has another one, all facts of the piece; then the next. No piece is sent before the one before has its answer.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "base/limits.h"
#include "core/agent/outbox.h"
#include "core/agent/puts.h"
#include "core/agent/records.h"
#include "core/directory/tombstones.h"
#include "core/directory/version_memory.h"

namespace hoplite {

class Announcer {
 public:
  struct Parts {
    const Limits& limits;
    const Records& records;
    const Puts& puts;
    VersionMemory& known;          // committed versions that this node has seen, or heard of from their homes
    const Tombstones& tombstones;  // of copies that this node had, and of deletes that it decided as a home
    Outbox& out;
  };
  explicit Announcer(Parts parts) : parts_(parts) {}

  // --- as it changes
  // What is here of it now, if anything. `rate_kib`: at which pace it came, 0 = not measured.
  void tell(const Record& record, std::uint32_t rate_kib = 0);
  // The node does not have this version (any more), whatever `home` believes.
  void withdraw(NodeRef home, const ObjectId& id, Version version);
  // It existed, for all we know it is gone, and `why` says why if there is more to say than that its holders died.
  void remember(const ObjectId& id, Version version, const std::string& why = {});

  // --- to a home that may not know
  void tell(NodeRef home, const std::set<ObjectId>& ids);
  // A newcomer does not ask for what was deleted of its own ids.
  void tell_tombstones(NodeRef newcomer);
  // All copies that are for this home, none denied: when words go by way of others, they may come late.
  void tell_all(NodeRef home);
  void answer(NodeRef home, const RecoverQuery& query);

  // --- comparing notes
  // From the beginning.
  void compare(NodeRef home);
  // One is under way, and has come further since this was asked last.
  bool goes_on(NodeRef home);
  void on_compared(NodeRef home, const Compared& m);
  // Messages to it were lost, or it is gone.
  void stop_comparing(NodeRef home) { comparisons_.erase(home); }
  void stop_comparing() { comparisons_.clear(); }

 private:
  class Batch;
  bool is_fact(const Record& record) const;
  bool fact_of(const Record& record, Fact& fact) const;
  void compare_from(NodeRef home, std::uint64_t comparison, Place first);
  void tell_range(NodeRef home, const Compared& range);

  Parts parts_;
  struct Comparison {
    std::uint64_t number = 0;
    bool moved = false;
  };
  std::map<NodeRef, Comparison> comparisons_;  // under way
};

}  // namespace hoplite
