// How long a call waits, and what it does about objects that were lost.
#pragma once

#include <chrono>
#include <optional>

namespace hoplite {

// How long to wait. Default-constructed: as long as it takes.
using Timeout = std::optional<std::chrono::nanoseconds>;

enum class OnLost {
  kFail,  // end with Code::kLost as soon as no complete copy is left
  kWait,  // go on waiting: somebody may put it again
};

}  // namespace hoplite
