// One request under way, and what came of it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "hoplite/client.h"
#include "protocol/client_messages.h"

namespace hoplite::client {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

// The end of a wait: a deadline that never overflows, and what is left of it as the daemon is told.
struct Deadline {
  TimePoint at = TimePoint::max();

  static Deadline after(const Timeout& timeout);
  bool never() const { return at == TimePoint::max(); }
  // kNoTimeout, or the nanoseconds that are left, never negative.
  std::int64_t left_ns() const;
  Timeout left() const;
  // When the client stops hoping for the daemon's word about this deadline.
  TimePoint with_grace() const;
};

// What an asynchronous put keeps in case the daemon has no room for it now (UseCreate): it is then created and sealed in
// steps as replies come in.
struct PutInSteps {
  std::string bytes;
  std::string metadata;  // as it travels
};

// How far a streaming read is.
struct Following {
  std::optional<Opened> opened;     // what grows now; we hold it
  bool shown = false;               // the reader has seen bytes of `opened`
  std::optional<CopyKey> outdated;  // was shown, then reset; held until the reader has heard of it
  std::uint64_t resets = 0;         // of what was shown
};

// What a call is about, for messages: "get of 0123...".
struct Subject {
  const char* verb = "";
  ObjectId object;

  std::string text() const;
  Error error(Code code, const std::string& why) const;
};

// Every field is guarded by the mutex of the connection.
struct Call {
  Subject subject;
  std::uint64_t request = 0;  // the number that the next reply carries
  std::uint64_t ticket = 0;   // the first such number: what the user knows it by
  Deadline deadline;

  std::optional<Result<Reply>> result;
  bool abandoned = false;  // nobody wants the result
  std::function<void(Result<Reply>)> callback;
  std::unique_ptr<PutInSteps> put;
  std::unique_ptr<Following> following;

  std::condition_variable changed;  // the waiting thread should look again
};

}  // namespace hoplite::client
