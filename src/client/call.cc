#include "client/call.h"

#include <algorithm>

namespace hoplite::client {
namespace {

// Longer waits are as good as for ever, and this keeps sums of times far from overflow.
constexpr auto kLongest = std::chrono::hours(24 * 365 * 10);

}  // namespace

Deadline Deadline::after(const Timeout& timeout) {
  if (!timeout) return {};
  const auto wait = std::clamp<std::chrono::nanoseconds>(*timeout, std::chrono::nanoseconds(0), kLongest);
  return {Clock::now() + wait};
}

std::int64_t Deadline::left_ns() const {
  return never() ? kNoTimeout : std::max<std::int64_t>(std::chrono::nanoseconds(at - Clock::now()).count(), 0);
}

TimePoint Deadline::with_grace() const { return never() ? at : at + std::chrono::nanoseconds(kLimits.grace.ns); }

std::string Subject::text() const {
  return object.is_nil() ? std::string(verb) : std::string(verb) + " of " + object.to_string();
}

Error Subject::error(Code code, const std::string& why) const { return {code, text() + ": " + why}; }

}  // namespace hoplite::client
