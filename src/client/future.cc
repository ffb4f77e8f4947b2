#include "hoplite/future.h"

#include "client/connection.h"

namespace hoplite {

RunningCall::RunningCall(std::shared_ptr<client::Connection> connection, std::shared_ptr<client::Call> call)
    : connection_(std::move(connection)), call_(std::move(call)) {}

void RunningCall::cancel() {
  if (call_) connection_->cancel(*call_);
}

namespace client {

CallHandle::CallHandle(std::shared_ptr<Connection> connection, std::shared_ptr<Call> call)
    : connection_(std::move(connection)), call_(std::move(call)) {}

CallHandle& CallHandle::operator=(CallHandle&& other) noexcept {
  if (this == &other) return *this;
  if (call_) connection_->abandon(*call_);
  connection_ = std::move(other.connection_);
  call_ = std::move(other.call_);
  return *this;
}

CallHandle::~CallHandle() {
  if (call_) connection_->abandon(*call_);
}

bool CallHandle::ready() { return connection_->poll(*call_); }

bool CallHandle::wait_for(std::chrono::nanoseconds timeout) {
  return connection_->wait_until(*call_, Deadline::after(timeout).at);
}

void CallHandle::cancel() { connection_->cancel(*call_); }

RunningCall CallHandle::then(std::function<void(CallHandle)> done) {
  RunningCall running(std::move(connection_), std::move(call_));
  running.connection_->then(running.call_, std::move(done));
  return running;
}

Error CallHandle::none() {
  return {Code::kInvalidArgument,
          "this future has no call: either it was never given one, or its result has already been taken"};
}

}  // namespace client
}  // namespace hoplite
