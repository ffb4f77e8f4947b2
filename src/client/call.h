// One request under way, and what came of it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/limits.h"
#include "hoplite/client.h"
#include "protocol/client_messages.h"

namespace hoplite::client {

inline constexpr LibraryLimits kLimits;

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

// The end of a wait: a deadline that never overflows, and what is left of it as the daemon is told.
struct Deadline {
  TimePoint at = TimePoint::max();

  static Deadline after(const Timeout& timeout);
  bool never() const { return at == TimePoint::max(); }
  // kNoTimeout, or the nanoseconds that are left, never negative.
  std::int64_t left_ns() const;
  // When the client stops hoping for the daemon's word about this deadline.
  TimePoint with_grace() const;
};

// What a put keeps in case the daemon has no room for it now (UseCreate): it is then created and sealed in steps as replies
// come in.
struct PutInSteps {
  ByteView bytes;  // the caller's while it waits, else `kept`
  std::string kept;
  std::string metadata;  // as it travels
  Priority priority = Priority::kNormal;
};

struct Call;

// Calls that have one result together.
struct Group {
  enum class Ends { kAtFirstFailure, kWithTheLast };
  Ends ends = Ends::kAtFirstFailure;
  std::vector<std::shared_ptr<Call>> calls;
  std::size_t missing = 0;      // without a result so far
  std::optional<Error> failed;  // the first failure
};

// How far a streaming read is.
struct Following {
  std::optional<ipc::Opened> opened;  // what grows now; we hold it
  bool shown = false;                 // the reader has seen bytes of `opened`
  std::optional<CopyKey> outdated;    // was shown, then reset; held until the reader has heard of it
  std::uint64_t resets = 0;           // of what was shown
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
  Deadline deadline;

  std::optional<Result<ipc::Reply>> result;  // of a group: an error, or any reply to say that all calls have theirs
  bool only_reads = false;                   // need not be carried on when nobody wants the result
  bool abandoned = false;                    // nobody wants the result
  bool wants_failures = false;               // of a get: a failure is a view, not an error
  std::function<void(CallHandle)> callback;
  std::uint64_t created_size = 0;    // of Create
  DType created_as = DType::kBytes;  // of Create: what its bytes are
  std::unique_ptr<PutInSteps> put;
  std::unique_ptr<Following> following;
  std::unique_ptr<Group> group;
  std::weak_ptr<Call> part_of;  // the call with the group

  std::condition_variable changed;  // the waiting thread should look again
};

}  // namespace hoplite::client
