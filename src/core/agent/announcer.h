// What this node tells homes of what it has, and of what it knows to have existed: as it changes, when a home is new or
// asks, and once more as a routine. A home believes what its owners tell.
#pragma once

#include <cstdint>
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
  // All that there is for this home. What it believes beyond that it forgets, unless the words went by way of others: they
  // may come late, and deny what was told since.
  void tell_everything(NodeRef home);
  void answer(NodeRef home, const RecoverQuery& query);

 private:
  class Batch;
  bool fact_of(const Record& record, Fact& fact) const;

  Parts parts_;
};

}  // namespace hoplite
