// Waiting for replies: who reads the socket, and for how long.
#include <poll.h>
#include <sched.h>

#include <algorithm>

#include "base/check.h"
#include "client/connection.h"

namespace hoplite::client {
namespace {

// Busy polling is for replies that take microseconds; whoever waits longer than this may as well sleep.
constexpr auto kLongestSpin = std::chrono::milliseconds(20);
constexpr auto kLinger = std::chrono::microseconds(50);  // without busy polling, while it pays
constexpr std::int64_t kNsPerSecond = 1'000'000'000;

}  // namespace

bool Connection::wait_until(Call& call, TimePoint until, const std::function<bool()>& ready) {
  Lock lock(mutex_);
  return wait_locked(lock, call, until, ready);
}

Result<ipc::Reply> Connection::wait(Call& call) {
  Lock lock(mutex_);
  wait_locked(lock, call, call.deadline.with_grace(), {});
  return take_result(lock, call);
}

Result<ipc::Reply> Connection::take_result(Lock& lock, Call& call) {
  CHECK(lock.owns_lock());
  if (forked_) return call.subject.error(broken_->code, broken_->message);  // it is the parent's
  if (!call.result) expire(call);
  CHECK(call.result.has_value(), call.subject.verb);
  Result<ipc::Reply> result = std::move(*call.result);
  call.result = call.subject.error(Code::kInvalidArgument, "the result has already been taken");
  return result;
}

bool Connection::wait_locked(Lock& lock, Call& call, TimePoint until, const std::function<bool()>& ready) {
  const auto done = [&] { return call.result.has_value() || (ready && ready()); };
  waiting_.push_back(&call);
  while (!done()) {
    if (until != TimePoint::max() && Clock::now() >= until) break;
    flush(lock);
    if (done()) break;  // others went on while we were sending
    if (reader_ == Reader::kNobody) {
      lead(lock, until);
      continue;
    }
    if (reader_ == Reader::kService) wake();  // it steps back
    if (until == TimePoint::max()) call.changed.wait(lock);
    else call.changed.wait_until(lock, until);
  }
  waiting_.erase(std::find(waiting_.begin(), waiting_.end(), &call));
  pass_on_reader();
  return done();
}

bool Connection::poll(Call& call) {
  Lock lock(mutex_);
  flush(lock);
  if (!call.result && !broken_ && reader_ == Reader::kNobody) {
    // Not worth giving up the lock for: it returns at once.
    dispatch(attachment_.frames.receive(attachment_.socket.get()));
  }
  return call.result.has_value();
}

void Connection::lead(Lock& lock, TimePoint until) {
  reader_ = Reader::kCaller;
  ++caller_activity_;
  lock.unlock();
  const auto received = receive(until);
  lock.lock();
  reader_ = Reader::kNobody;
  dispatch(received);
}

Result<bool> Connection::receive(TimePoint until) {
  if (busy_poll_ || lingering_.worth_a_try()) {
    const auto received = spin(std::min(until, Clock::now() + (busy_poll_ ? kLongestSpin : kLinger)));
    const bool something = !received || *received;
    lingering_.paid(something);
    if (something) return received;
  }
  timespec patience{};
  if (until != TimePoint::max()) {
    const auto left_ns = std::max<std::int64_t>(std::chrono::nanoseconds(until - Clock::now()).count(), 0);
    patience = {.tv_sec = left_ns / kNsPerSecond, .tv_nsec = left_ns % kNsPerSecond};
  }
  // A receive that blocks would also be woken whenever the daemon takes a request from the socket, for nothing: the kernel
  // tells it of room to write. A poll is told only of what it asks for.
  pollfd wanted{.fd = attachment_.socket.get(), .events = POLLIN, .revents = 0};
  ::ppoll(&wanted, 1, until == TimePoint::max() ? nullptr : &patience, nullptr);
  return attachment_.frames.receive(attachment_.socket.get());
}

Result<bool> Connection::spin(TimePoint until) {
  do {
    const auto received = attachment_.frames.receive(attachment_.socket.get());
    if (!received || *received) return received;
    ::sched_yield();  // the daemon may spin on the same core
  } while (Clock::now() < until);
  return false;
}

// Called by whoever stops waiting: nobody may be left asleep while nobody reads.
void Connection::pass_on_reader() {
  if (reader_ != Reader::kNobody) return;
  if (!waiting_.empty()) waiting_.front()->changed.notify_all();
  else if (!pending_.empty()) need(Pace::kTick);
}

}  // namespace hoplite::client
