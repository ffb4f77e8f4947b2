// Clients' requests that an object's home answers: deletes, and everything about reduces. Each is sent again until it is
// answered, and to the next home if the home changes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/limits.h"
#include "core/agent/clients.h"
#include "core/agent/timers.h"
#include "protocol/messages.h"

namespace hoplite {

class Errands {
 public:
  struct Errand {
    RequestKey asked;
    ObjectId id;
    Message message;  // with the errand's key as its number
    NodeRef home;     // that was asked last
    std::optional<Timers::Handle> retry;
  };

  Errands(const Limits& limits, Timers& timers) : limits_(limits), timers_(timers) {}

  void add(std::uint64_t key, RequestKey asked, const ObjectId& id, Message message);
  // nullptr: it is over.
  const Errand* find(std::uint64_t key) const;
  // What to send to `home` now. It is due again when there is no answer.
  const Message& send_to(std::uint64_t key, NodeRef home, Time now);
  // The home could not answer yet.
  void send_at(std::uint64_t key, Time when);
  Errand take(std::uint64_t key);

  // Keys of those that were sent to `home`.
  std::vector<std::uint64_t> sent_to(NodeRef home) const;
  // Keys of all, in the order of asking.
  std::vector<std::uint64_t> all() const;

  void check_invariants() const;

 private:
  const Limits& limits_;
  Timers& timers_;
  std::map<std::uint64_t, Errand> errands_;
};

}  // namespace hoplite
