// The connection's own thread: what happens while nobody waits.
#include <poll.h>
#include <unistd.h>

#include <new>
#include <utility>

#include "client/access.h"
#include "client/connection.h"

namespace hoplite::client {
namespace {

constexpr int kTickMs = 1;       // the longest a queued request waits for company, twice
constexpr int kCalmTicks = 20;   // the service goes on ticking for so many after the last request
constexpr int kSlowTickMs = 10;  // views are given back within twice this
constexpr int kWatchMs = 200;    // how exactly unanswered calls are ended

int milliseconds(int pace) {
  constexpr int kTimeouts[] = {kTickMs, kSlowTickMs, kWatchMs, -1};
  return kTimeouts[pace];
}

}  // namespace

void Connection::wake() {
  const std::uint64_t one = 1;
  // Can only fail if the counter is full, and then the service wakes anyway.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

void Connection::need(Pace pace) {
  if (pace == Pace::kTick) busy_since_tick_ = true;
  if (pace_ <= pace || on_service_thread()) return;
  pace_ = pace;
  wake();
}

Connection::Pace Connection::pace_wanted() const {
  if (broken_) return Pace::kAsleep;
  const bool nobody_reads = !pending_.empty() && waiting_.empty() && reader_ == Reader::kNobody;
  if (busy_since_tick_ || !queue_.empty() || nobody_reads) return Pace::kTick;
  // A program that asked a moment ago asks again in a moment; being woken for that costs more than a few ticks.
  if (calm_ticks_ < kCalmTicks) return Pace::kTick;
  if (!releases_.empty()) return Pace::kSlowTick;
  return pending_.empty() ? Pace::kAsleep : Pace::kWatch;
}

// Callbacks are this thread's to run, so it reads for them at once. Results that somebody will come for are left to him,
// unless he has not read since the last tick.
bool Connection::service_may_read() const {
  if (broken_ || reader_ != Reader::kNobody || pending_.empty() || !waiting_.empty()) return false;
  return pending_callbacks_ > 0 || caller_activity_ == seen_activity_;
}

void Connection::serve() {
  Lock lock(mutex_);
  while (true) {
    run_callbacks(lock);
    if (closing_ && called_.empty()) {
      service_ended_ = true;
      return;
    }
    expire_overdue();
    if (!called_.empty()) continue;
    const bool read = service_may_read();
    if (sleep(lock, read)) tick(lock);
  }
}

// What nobody else has taken care of since the last tick.
void Connection::tick(Lock& lock) {
  calm_ticks_ = busy_since_tick_ ? 0 : calm_ticks_ + 1;
  busy_since_tick_ = false;
  if (anything_queued() && flushes_ == seen_flushes_) flush(lock);
  seen_flushes_ = flushes_;
  seen_activity_ = caller_activity_;
}

// Sleeps until something happens; reads if it has that role. True if the time is over and nothing happened: a tick.
bool Connection::sleep(Lock& lock, bool read) {
  if (read) {
    reader_ = Reader::kService;
    flush(lock);  // what the replies' handlers queued: nobody else may come to send it
  }
  pace_ = pace_wanted();
  const auto events = static_cast<short>((read ? POLLIN : 0) | (socket_full_ ? POLLOUT : 0));
  std::vector<pollfd> wanted{{.fd = wake_.get(), .events = POLLIN, .revents = 0},
                             {.fd = events != 0 ? attachment_.socket.get() : -1, .events = events, .revents = 0}};
  for (const int child : forks_.descriptors()) wanted.push_back({.fd = child, .events = 0, .revents = 0});
  const int timeout_ms = milliseconds(static_cast<int>(pace_));
  lock.unlock();
  const int ready = ::poll(wanted.data(), wanted.size(), timeout_ms);
  if ((wanted[0].revents & POLLIN) != 0) {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t n = ::read(wake_.get(), &count, sizeof count);
  }
  Result<bool> received = false;
  if (read && (wanted[1].revents & (POLLIN | POLLHUP | POLLERR)) != 0)
    received = attachment_.frames.receive(attachment_.socket.get());
  lock.lock();
  if (read) {
    reader_ = Reader::kNobody;
    dispatch(received);
    pass_on_reader();
  }
  if ((wanted[1].revents & (POLLOUT | POLLHUP | POLLERR)) != 0 && socket_full_) {
    socket_full_ = false;
    flush(lock);
  }
  notice_forks(std::span(wanted).subspan(2));
  return ready == 0;
}

void Connection::notice_forks(std::span<const pollfd> forks) {
  for (const pollfd& child : forks) {
    if (child.revents == 0) continue;
    for (const auto& [copy, born] : forks_.child_done(child.fd)) let_go(copy, born);
  }
}

// --- forks

void Connection::before_fork() {
  mutex_.lock();
  if (holds_ > 0 && !forked_) forks_.before();
}

void Connection::after_fork_in_parent() {
  forks_.after_in_parent();
  wake();  // the service looks out for the child
  mutex_.unlock();
}

// Only this thread is here. What others waited for, sent or read is theirs, in the parent; so are the sockets, whose end
// tells the daemon that the parent has ended.
void Connection::after_fork_in_child() {
  // Nothing of it is ever destroyed here: not the threads that are not there, nor what they sleep on.
  static std::vector<std::shared_ptr<void>>* const kept = new std::vector<std::shared_ptr<void>>;
  kept->push_back(weak_from_this().lock());
  kept->push_back(std::make_shared<std::deque<std::shared_ptr<Call>>>(std::move(called_)));
  called_ = {};
  new (&service_) std::thread();
  service_id_ = {};
  forked_ = closing_ = service_ended_ = true;
  reader_ = Reader::kNobody;
  sender_active_ = false;
  waiting_.clear();
  forks_.after_in_child();
  attachment_.socket.reset();
  wake_.reset();
  mapping().leave_windows();
  if (holds_ == 0) attachment_.lease.reset();
  broken_ = Error{Code::kUnavailable, "a Client does not survive fork(): connect again in the child"};
  for (const auto& [request, call] : pending_)
    if (!call->result) call->result = call->subject.error(broken_->code, broken_->message);
  mutex_.unlock();
}

void Connection::run_callbacks(Lock& lock) {
  while (!called_.empty()) {
    const std::shared_ptr<Call> call = std::move(called_.front());
    called_.pop_front();
    auto callback = std::exchange(call->callback, nullptr);
    lock.unlock();
    callback(Access::call_handle(shared_from_this(), call));
    callback = nullptr;  // what it holds may need locks of its own to go
    lock.lock();
  }
}

void Connection::expire_overdue() {
  if (pending_.empty()) return;
  const TimePoint now = Clock::now();
  if (now < next_expiry_) return;
  next_expiry_ = now + std::chrono::milliseconds(kWatchMs);
  std::vector<std::shared_ptr<Call>> overdue;
  for (const auto& [request, call] : pending_)
    if (call->deadline.with_grace() < now) overdue.push_back(call);
  for (const auto& call : overdue)
    if (pending_.contains(call->request)) expire(*call);  // it may have ended with its group
}

}  // namespace hoplite::client
