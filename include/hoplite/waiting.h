// How long a call waits, and what it does about objects that were lost or that are failures.
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

// What a get does with a failure (Client::fail).
enum class OnFailure {
  kError,  // end with Code::kFailed and the reason
  kView,   // return it: View::is_failure(), View::metadata() is the reason, the bytes are what was given with it
};

}  // namespace hoplite
