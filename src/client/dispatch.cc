// What replies do to the calls they belong to. Everything here runs with the lock held.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "client/connection.h"
#include "client/write_window.h"

namespace hoplite::client {
namespace {

// The daemon's messages name the object already; make sure of it.
Error as_error(const Call& call, const ipc::Failed& failed) {
  const Code code = failed.code == Code::kOk ? Code::kInternal : failed.code;
  if (call.subject.object.is_nil() || failed.message.find(call.subject.object.to_string()) != std::string::npos)
    return {code, failed.message};
  return call.subject.error(code, failed.message);
}

}  // namespace

void Connection::dispatch(const Result<bool>& received) {
  if (!received) return fail_all(gone(Code::kUnavailable, received.error().message));
  while (*received && !broken_) {
    auto frame = attachment_.frames.next();
    if (!frame) return fail_all(gone(Code::kInternal, "it sent " + frame.error().message));
    if (!frame->complete) return;
    auto reply = ipc::decode_reply(frame->body);
    if (!reply) return fail_all(gone(Code::kInternal, "it sent a " + reply.error().message));
    handle(frame->request, *std::move(reply));
  }
}

void Connection::handle(std::uint64_t request, ipc::Reply reply) {
  // The descriptor comes with a Created, whether or not that one is still wanted.
  const Result<void> writable = std::holds_alternative<ipc::Created>(reply) ? accept_writable() : Result<void>();
  const auto found = pending_.find(request);
  if (found == pending_.end()) return let_go(reply);
  const std::shared_ptr<Call> call = found->second;
  if (!writable) {
    let_go(reply);
    return finish(call, call->subject.error(writable.code(), writable.error().message));
  }
  if (call->put && step_put(call, reply)) return;
  if (call->following && step_follow(*call, reply)) return;
  if (const auto* failed = std::get_if<ipc::Failed>(&reply)) return finish(call, as_error(*call, *failed));
  finish(call, std::move(reply));
}

// If it fails, the next Create asks for the descriptor again.
Result<void> Connection::accept_writable() {
  UniqueFd descriptor = attachment_.frames.take_descriptor();
  if (mapping().writable()) return {};
  if (!descriptor) return Error{Code::kUnavailable, "there is nothing to write it with: " + no_descriptors()};
  return mapping().accept_writable(std::move(descriptor));
}

// True if the put goes on with another request.
bool Connection::step_put(const std::shared_ptr<Call>& call, const ipc::Reply& reply) {
  PutInSteps& put = *call->put;
  if (std::holds_alternative<ipc::UseCreate>(reply)) {
    resubmit(call,
             ipc::Create{call->subject.object, put.bytes.size(), put.metadata, call->deadline.left_ns(), put.priority});
    return true;
  }
  const auto* created = std::get_if<ipc::Created>(&reply);
  if (created == nullptr) return false;
  auto window = WriteWindow::open(mapping(), *created, put.bytes.size());
  if (!window) {
    let_go(reply);
    finish(call, call->subject.error(Code::kInternal, window.error().message));
    return true;
  }
  std::memcpy(window->bytes().data(), put.bytes.data(), put.bytes.size());
  window->close();
  resubmit(call, ipc::Seal{created->copy, call->deadline.left_ns()});
  return true;
}

void Connection::resubmit(const std::shared_ptr<Call>& call, const ipc::Request& message) {
  pending_.erase(call->request);
  call->request = next_request_++;
  pending_.emplace(call->request, call);
  enqueue(call->request, message, {});
  need(Pace::kTick);
}

// True if more replies will come.
bool Connection::step_follow(Call& call, const ipc::Reply& reply) {
  Following& following = *call.following;
  if (const auto* opened = std::get_if<ipc::Opened>(&reply)) {
    if (call.abandoned) {
      let_go(reply);
      return true;
    }
    if (!mapping().view({opened->offset, opened->size})) return false;  // finished with a reply of the wrong kind
    if (following.opened) let_go(following.opened->copy);
    following.opened = *opened;
    following.opened->bytes = std::min(opened->bytes, opened->size);
  } else if (const auto* grown = std::get_if<ipc::Grown>(&reply)) {
    if (following.opened)
      following.opened->bytes = std::clamp(grown->bytes, following.opened->bytes, following.opened->size);
  } else if (std::holds_alternative<ipc::Reset>(reply)) {
    if (!following.opened) return true;
    if (following.shown) {
      if (following.outdated) let_go(*following.outdated);
      following.outdated = following.opened->copy;
      ++following.resets;
    } else {
      let_go(following.opened->copy);
    }
    following.opened.reset();
    following.shown = false;
  } else {
    return false;
  }
  call.changed.notify_all();
  return true;
}

void Connection::finish(const std::shared_ptr<Call>& call, Result<ipc::Reply> result) {
  pending_.erase(call->request);
  if (call->result) return;  // a group that has ended with one of its calls
  if (call->callback != nullptr) --pending_callbacks_;
  if (call->abandoned) {
    if (result.ok()) let_go(*result);
    return;
  }
  call->result = std::move(result);
  if (const auto whole = call->part_of.lock()) return part_ended(whole, *call);
  if (call->callback == nullptr) {
    call->changed.notify_all();
    return;
  }
  called_.push_back(call);
  if (!on_service_thread()) wake();
}

void Connection::part_ended(const std::shared_ptr<Call>& whole, const Call& part) {
  Group& group = *whole->group;
  --group.missing;
  if (!part.result->ok() && !group.failed) group.failed = part.result->error();
  const bool at_once = group.failed && group.ends == Group::Ends::kAtFirstFailure;
  if (group.missing > 0 && !at_once) return;
  if (!group.failed) return finish(whole, ipc::Reply());
  finish(whole, *group.failed);
  take_back(group);
}

// It has failed as a whole: what its other calls have is given back.
void Connection::take_back(Group& group) {
  for (const auto& part : group.calls) {
    const bool started = part->result && part->result->ok() && std::holds_alternative<ipc::Reducing>(**part->result);
    if (started && !broken_)
      enqueue(next_request_++, ipc::Remove{std::get<ipc::Reducing>(**part->result).target, kLimits.take_back.ns}, {});
    abandon_locked(*part);
  }
  group.calls.clear();
}

// The daemon did not answer in time, not even to say that the time is over.
void Connection::expire(Call& call) {
  const auto found = pending_.find(call.request);
  CHECK(found != pending_.end(), call.subject.verb);
  const std::shared_ptr<Call> kept = found->second;
  const std::uint64_t request = call.request;
  finish(kept, call.subject.error(Code::kTimedOut, "the daemon at " + socket_path() +
                                                       " does not respond; is it stopped or overloaded?"));
  if (call.group) return take_back(*call.group);
  // The answer may still come, with a view or room that must be given back: somebody has to read it.
  const auto unanswered = std::make_shared<Call>();
  unanswered->request = request;
  unanswered->abandoned = true;
  pending_.emplace(request, unanswered);
  enqueue(next_request_++, ipc::Cancel{request}, {});
  need(Pace::kTick);
}

// A reply that nobody waits for any more: what it holds on the daemon is given back.
void Connection::let_go(const ipc::Reply& reply) {
  if (const auto* view = std::get_if<ipc::View>(&reply)) let_go(view->copy, forks_.count());
  if (const auto* opened = std::get_if<ipc::Opened>(&reply)) let_go(opened->copy, forks_.count());
  if (const auto* created = std::get_if<ipc::Created>(&reply); created != nullptr && !broken_) {
    enqueue(next_request_++, ipc::Abort{created->copy}, {});
    need(Pace::kTick);
  }
}

// Of what a reader follows it is not known how long: then `born` is 0, and any child may see it.
void Connection::let_go(CopyKey copy, std::uint64_t born) {
  if (forked_ || forks_.defer(copy, born)) return;
  releases_.push_back(copy);
  if (broken_) give_back();
  else need(Pace::kSlowTick);
}

// Without a connection, what is held is given back through the lease. What does not fit into its socket goes with the next one,
// or with the lease itself.
void Connection::give_back() {
  while (!releases_.empty()) {
    const std::size_t count = std::min(kLimits.max_releases, releases_.size());
    const auto from = releases_.end() - static_cast<std::ptrdiff_t>(count);
    const ssize_t sent = ::send(attachment_.lease.get(), &*from, count * sizeof(CopyKey), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
    releases_.erase(from, releases_.end());  // or the daemon is gone, too
  }
}

Error Connection::gone(Code code, const std::string& why) const {
  return {code, "the connection to the daemon at " + socket_path() + " failed: " + why};
}

void Connection::fail_all(const Error& error) {
  if (broken_) return;
  broken_ = error;
  queue_.clear();
  give_back();
  auto calls = std::move(pending_);
  pending_.clear();
  for (const auto& [request, call] : calls) finish(call, call->subject.error(broken_->code, broken_->message));
  room_.notify_all();
  for (Call* call : waiting_) call->changed.notify_all();
}

}  // namespace hoplite::client
