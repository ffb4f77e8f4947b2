#include "client/connection.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace hoplite::client {
namespace {

constexpr std::size_t kEnoughToSend = 16 * kKiB;  // a batch this large gains nothing from growing further
constexpr auto kRoomLook =
    std::chrono::milliseconds(200);  // how often a caller that waits for room looks at its deadline

}  // namespace

Connection::Connection(Attachment attachment, bool busy_poll)
    : attachment_(std::move(attachment)), busy_poll_(busy_poll), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  CHECK(wake_.get() >= 0, "eventfd:", std::strerror(errno));
}

Connection::~Connection() {
  tell_no_more(*this);
  CHECK(!service_.joinable(), "a connection is closed before it is destroyed");
}

void Connection::start() {
  tell_of_forks(*this);
  const Lock lock(mutex_);  // the service must not look at its own id before it is known
  service_ = std::thread([self = shared_from_this()] { self->serve(); });
  service_id_ = service_.get_id();
}

void Connection::close() {
  {
    Lock lock(mutex_);
    if (closing_) return;
    flush(lock);  // puts that nobody waited for, and views given back
    fail_all({Code::kUnavailable, "the client was closed"});
    closing_ = true;
    wake();
  }
  // A caller may be reading: this ends its receive.
  ::shutdown(attachment_.socket.get(), SHUT_RDWR);
  if (on_service_thread())
    service_.detach();  // a callback destroyed its own client; the service keeps the connection alive until it is done
  else service_.join();
}

ObjectId Connection::new_id() {
  const Lock lock(mutex_);
  CHECK(next_id_ != 0, "one client has minted 2^32 ids");
  return {welcome().node.value, (std::uint64_t{welcome().client} << 32) | next_id_++};
}

// Registers the call and makes sure that its request may be queued; false: it has ended already.
bool Connection::admit(Lock& lock, const std::shared_ptr<Call>& call) {
  call->request = next_request_++;
  pending_.emplace(call->request, call);
  if (broken_) {
    finish(call, call->subject.error(broken_->code, broken_->message));
  } else if (pending_.size() > kLimits.max_pending) {
    finish(call, call->subject.error(Code::kInvalidArgument, std::to_string(kLimits.max_pending) +
                                                                 " calls are pending: collect their results first"));
  } else {
    wait_for_room(lock, *call);
  }
  return pending_.contains(call->request);
}

void Connection::start_locked(Lock& lock, const std::shared_ptr<Call>& call, const ipc::Request& message,
                              ByteView payload) {
  call->only_reads = std::holds_alternative<ipc::Get>(message) || std::holds_alternative<ipc::Wait>(message);
  if (admit(lock, call)) enqueue(call->request, message, payload);
}

// A lone call has nothing to be batched with.
void Connection::send_soon(Lock& lock, bool alone) {
  ++caller_activity_;
  if (alone || queue_.size() >= kEnoughToSend) flush(lock);
  need(Pace::kTick);
}

void Connection::submit(const std::shared_ptr<Call>& call, const ipc::Request& message, Sending sending,
                        ByteView payload) {
  Lock lock(mutex_);
  const bool alone = pending_.empty();
  start_locked(lock, call, message, payload);
  if (sending == Sending::kBatched) send_soon(lock, alone);
}

void Connection::submit_group(const std::shared_ptr<Call>& whole, std::span<const ipc::Request> messages,
                              Sending sending) {
  Lock lock(mutex_);
  const bool alone = pending_.empty();
  Group& group = *whole->group;
  CHECK(group.calls.size() == messages.size(), group.calls.size(), messages.size());
  group.missing = messages.size();
  whole->request = next_request_++;  // nothing is sent under it
  pending_.emplace(whole->request, whole);
  for (std::size_t i = 0; i < messages.size() && !whole->result; ++i) {
    const std::shared_ptr<Call> part = group.calls[i];  // which leaves the group if it fails
    part->part_of = whole;
    start_locked(lock, part, messages[i], {});
  }
  if (messages.empty()) finish(whole, ipc::Reply());
  if (sending == Sending::kBatched) send_soon(lock, alone);
}

void Connection::submit_ended(const std::shared_ptr<Call>& call, Result<ipc::Reply> result) {
  const Lock lock(mutex_);
  finish(call, std::move(result));
}

void Connection::tell(const ipc::Request& message, Urgency urgency) {
  Lock lock(mutex_);
  if (broken_) return;
  // Only a hint, and Seal says it all in the end: a daemon that does not read is not flooded with it.
  if (queue_.size() > kLimits.max_queued_bytes && std::holds_alternative<ipc::Advance>(message)) return;
  enqueue(next_request_++, message, {});
  if (urgency == Urgency::kNow || queue_.size() >= kEnoughToSend) return flush(lock);
  need(Pace::kTick);
}

std::uint64_t Connection::hold() {
  const Lock lock(mutex_);
  ++holds_;
  return forks_.count();
}

void Connection::let_go_of_hold() {
  const Lock lock(mutex_);
  CHECK(holds_ > 0);
  if (--holds_ > 0 || !forked_) return;
  forks_.child_is_done();
  attachment_.lease.reset();
}

void Connection::release(CopyKey copy, std::uint64_t born) {
  const Lock lock(mutex_);
  let_go(copy, born);
}

void Connection::give_up(CopyKey copy) {
  const Lock lock(mutex_);
  if (broken_) return let_go(copy);
  enqueue(next_request_++, ipc::Abort{copy}, {});
  need(Pace::kTick);
}

Result<void> Connection::is_up() {
  const Lock lock(mutex_);
  if (broken_) return *broken_;
  // Nobody may have looked for a while.
  pollfd socket{.fd = attachment_.socket.get(), .events = 0, .revents = 0};
  if (::poll(&socket, 1, 0) != 1 || (socket.revents & (POLLHUP | POLLERR)) == 0) return {};
  // Replies that came before the end are still for their calls.
  while (!broken_ && reader_ == Reader::kNobody) dispatch(attachment_.frames.receive(attachment_.socket.get()));
  return broken_ ? *broken_ : gone(Code::kUnavailable, "it closed the connection");
}

void Connection::cancel(const Call& call) {
  Lock lock(mutex_);
  if (broken_) return;
  cancel_locked(call);
  flush(lock);
}

void Connection::cancel_locked(const Call& call) {
  if (call.result) return;
  if (!call.group) return enqueue(next_request_++, ipc::Cancel{call.request}, {});
  for (const auto& part : call.group->calls) cancel_locked(*part);
}

void Connection::then(const std::shared_ptr<Call>& call, std::function<void(CallHandle)> callback) {
  Lock lock(mutex_);
  call->callback = std::move(callback);
  if (!call->result) {
    ++pending_callbacks_;
    return need(Pace::kTick);
  }
  called_.push_back(call);
  if (service_ended_) return run_callbacks(lock);
  if (!on_service_thread()) wake();
}

void Connection::abandon(Call& call) {
  const Lock lock(mutex_);
  abandon_locked(call);
}

void Connection::abandon_locked(Call& call) {
  call.abandoned = true;
  if (call.group)
    for (const auto& part : call.group->calls) abandon_locked(*part);
  if (call.following) {
    if (call.following->opened) let_go(call.following->opened->copy);
    if (call.following->outdated) let_go(*call.following->outdated);
    call.following->opened.reset();
    call.following->outdated.reset();
  }
  if (call.result && call.result->ok()) let_go(**call.result);
  if (call.result || broken_) return;
  if (call.only_reads) enqueue(next_request_++, ipc::Cancel{call.request}, {});
  need(Pace::kTick);
}

void Connection::locked(const std::function<void()>& look) {
  const Lock lock(mutex_);
  look();
}

// --- sending

void Connection::enqueue(std::uint64_t request, const ipc::Request& message, ByteView payload) {
  const auto* create = std::get_if<ipc::Create>(&message);
  if (create != nullptr && mapping().writable()) {
    ipc::Create writable = *create;
    writable.wants_descriptor = false;
    ipc::encode_request(request, writable, payload.size(), queue_);
    return;
  }
  ipc::encode_request(request, message, payload.size(), queue_);
  queue_.append(reinterpret_cast<const char*>(payload.data()), payload.size());
}

void Connection::wait_for_room(Lock& lock, const Call& call) {
  // The service must go on: it is the one that makes room.
  if (on_service_thread()) return;
  while (queue_.size() > kLimits.max_queued_bytes && !broken_ && !call.result) {
    flush(lock);
    if (queue_.size() <= kLimits.max_queued_bytes) return;
    need(Pace::kTick);
    room_.wait_for(lock, kRoomLook);
  }
}

bool Connection::take_batch() {
  if (sent_ < sending_.size()) return true;
  if (!anything_queued()) return false;
  for (auto from = releases_.begin(); from != releases_.end();) {
    const auto to = from + std::min<std::ptrdiff_t>(kLimits.max_releases, releases_.end() - from);
    enqueue(next_request_++, ipc::Release{{from, to}}, {});
    from = to;
  }
  releasing_ = std::exchange(releases_, {});
  sending_.clear();
  sent_ = 0;
  std::swap(queue_, sending_);
  return true;
}

int Connection::send_batch() {
  while (sent_ < sending_.size()) {
    const ssize_t n =
        ::send(attachment_.socket.get(), sending_.data() + sent_, sending_.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0) sent_ += static_cast<std::size_t>(n);
    else if (errno != EINTR) return errno;
  }
  return 0;
}

void Connection::flush(Lock& lock) {
  if (forked_ || sender_active_ || socket_full_) return;
  sender_active_ = true;
  while (!broken_ && take_batch()) {
    ++flushes_;
    lock.unlock();
    const int error = send_batch();
    lock.lock();
    if (error == EAGAIN || error == EWOULDBLOCK) {
      socket_full_ = true;
      need(Pace::kTick);
      break;
    }
    if (error == 0) continue;
    // Of a batch that went in part it is not known what was heard; to give back twice would take from another view.
    if (sent_ == 0) releases_.insert(releases_.end(), releasing_.begin(), releasing_.end());
    fail_all(gone(Code::kUnavailable, std::strerror(error)));
  }
  sender_active_ = false;
  if (queue_.size() <= kLimits.max_queued_bytes) room_.notify_all();
}

}  // namespace hoplite::client
