// One object on the first node of a local cluster, wanted by others: who has how much, from whom, and when it was there.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attendants.h"

namespace hoplite {

// What is known about one receiver.
struct Receiver {
  std::size_t node = 0;
  double share = 0;
  std::vector<int> parents;           // whom it fetched from, in order; the last is the present one
  std::optional<double> seconds;      // until its get returned
  std::optional<std::string> failed;  // why it will not
  bool killed = false;
};

struct BroadcastResult {
  std::vector<Receiver> receivers;
  double seconds = 0;  // until the last one had it
};

struct BroadcastOptions {
  ObjectId id;
  std::vector<std::size_t> receivers;
  std::chrono::seconds timeout{90};
  // Called about ten times a second, on the thread of run_broadcast; false: give up.
  std::function<bool(double seconds, std::vector<Receiver>& receivers)> watch;
};

// All receivers get the object at once; each compares what it got with `expected`. kCancelled if `watch` gave up.
Result<BroadcastResult> run_broadcast(Attendants& nodes, std::span<const std::byte> expected,
                                      const BroadcastOptions& options);

}  // namespace hoplite
