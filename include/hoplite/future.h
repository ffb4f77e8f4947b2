// The result of a call that is under way.
//
//     auto view = client.get_async(id);                                   // returns at once
//     view.get();                                                         // waits; returns what client.get(id) returns
//     client.put_async(bytes).then([](Result<ObjectId> id) { ... });      // a callback, on the client's own thread
//
// Every call of a Client that waits for its daemon has such an _async form; the blocking form means `xxx_async(...).get()`.
// A thread that waits in get() reads the socket itself: one round trip, and no other thread runs in between.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "hoplite/error.h"

namespace hoplite {

template <typename T>
class Future;

namespace client {
struct Access;
struct Call;
class CallHandle;
class Connection;
}  // namespace client

// A call whose result goes to a callback. Dropping this changes nothing.
class RunningCall {
 public:
  RunningCall() = default;
  // The callback gets Code::kCancelled unless the call has ended already.
  void cancel();

 private:
  friend class client::CallHandle;
  RunningCall(std::shared_ptr<client::Connection> connection, std::shared_ptr<client::Call> call);

  std::shared_ptr<client::Connection> connection_;
  std::shared_ptr<client::Call> call_;
};

namespace client {

// What a Future holds: a call whose result nobody has taken.
class CallHandle {
 public:
  CallHandle() = default;
  CallHandle(CallHandle&&) noexcept = default;
  CallHandle& operator=(CallHandle&& other) noexcept;
  ~CallHandle();

 private:
  friend struct Access;
  template <typename T>
  friend class hoplite::Future;
  CallHandle(std::shared_ptr<Connection> connection, std::shared_ptr<Call> call);

  bool ready();
  bool wait_for(std::chrono::nanoseconds timeout);
  void cancel();
  // `done` gets the call when it has a result.
  RunningCall then(std::function<void(CallHandle)> done);
  static Error none();

  std::shared_ptr<Connection> connection_;
  std::shared_ptr<Call> call_;
};

}  // namespace client

// Dropped before its end: a get, gather or wait is cancelled, every other call goes on. One thread at a time.
template <typename T>
class [[nodiscard]] Future {
 public:
  Future() = default;

  // False when default-constructed, moved from, or after get() or then().
  bool valid() const { return call_.call_ != nullptr; }
  // Whether get() would return at once. Never waits.
  bool ready() { return !valid() || call_.ready(); }
  // True if it is ready within `timeout`.
  bool wait_for(std::chrono::nanoseconds timeout) { return !valid() || call_.wait_for(timeout); }
  // Waits; once. kInvalidArgument without a call.
  Result<T> get() {
    if (!valid()) return client::CallHandle::none();
    return take_(std::exchange(call_, {}));
  }
  // The result becomes Code::kCancelled unless the call has ended already.
  void cancel() {
    if (valid()) call_.cancel();
  }
  // Calls `callback` once with the result, on the client's own thread, which it must not block; on this thread if the Client
  // is gone. The future has no call any more.
  RunningCall then(std::function<void(Result<T>)> callback) {
    if (!valid()) return callback(client::CallHandle::none()), RunningCall();
    return std::exchange(call_, {}).then(
        [take = take_, callback = std::move(callback)](client::CallHandle call) { callback(take(std::move(call))); });
  }

 private:
  friend struct client::Access;
  using Take = Result<T> (*)(client::CallHandle call);
  Future(client::CallHandle call, Take take) : call_(std::move(call)), take_(take) {}

  client::CallHandle call_;
  Take take_ = nullptr;
};

}  // namespace hoplite
