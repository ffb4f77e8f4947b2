// Small objects that this node passes on to others, on behalf of their homes.
#pragma once

#include <map>
#include <vector>

#include "base/limits.h"
#include "core/agent/fetches.h"
#include "core/agent/outbox.h"
#include "core/agent/records.h"

namespace hoplite {

class Relays {
 public:
  Relays(const Limits& limits, const Records& records, const Fetches& fetches, Outbox& out)
      : limits_(limits), records_(records), fetches_(fetches), out_(out) {}

  // At once, or when it has come; a home whose wish cannot be fulfilled is told, and serves the receiver itself.
  void pass_on(const PassOn& asked);
  // It may have come.
  void retry(const ObjectId& id);
  // It does not come.
  void refuse(const ObjectId& id);

 private:
  void refuse(const PassOn& asked);
  std::vector<PassOn> take_parked(const ObjectId& id);

  const Limits& limits_;
  const Records& records_;
  const Fetches& fetches_;
  Outbox& out_;
  std::map<ObjectId, std::vector<PassOn>> parked_;  // of objects that are still on their way here
};

}  // namespace hoplite
