// Clients' requests: replies, deadlines, cancels, waits, deletes, and what a dead client leaves behind.
#include <algorithm>

#include "base/coverage.h"
#include "core/agent/impl.h"

namespace hoplite {

Time Agent::Impl::deadline_of(std::int64_t timeout_ns) const {
  return timeout_ns < 0 ? Time::never() : now_ + Duration{timeout_ns};
}

// --- replies -------------------------------------------------------------------------------------------------------------

// The final reply of a request.
void Agent::Impl::reply(ClientKey client, std::uint64_t request, client::Reply message) {
  end_request(client, request);
  emit(effect::Reply{client, request, std::move(message)});
}

void Agent::Impl::fail(ClientKey client, std::uint64_t request, Code code, std::string why) {
  reply(client, request, client::Failed{code, std::move(why)});
}

// False (and answered) if the client uses a number twice.
bool Agent::Impl::begin_request(ClientKey client, std::uint64_t request, PendingRequest pending) {
  if (clients_[client].requests.try_emplace(request, pending).second) return true;
  emit(effect::Reply{client, request, client::Failed{Code::kInvalidArgument, "that request number is in use"}});
  return false;
}

// True: the request has failed, because this node would have to remember more ids than it may.
bool Agent::Impl::too_many_objects(ClientKey client, std::uint64_t request, std::size_t more) {
  if (records_.size() + more <= limits_.max_objects) return false;
  fail(client, request, Code::kStoreFull,
       "this node knows " + std::to_string(records_.size()) + " objects; at most " +
           std::to_string(limits_.max_objects) + " are allowed");
  return true;
}

void Agent::Impl::end_request(ClientKey client, std::uint64_t request) {
  if (const auto it = clients_.find(client); it != clients_.end()) it->second.requests.erase(request);
}

template <typename T>
void Agent::Impl::on_client(ClientKey client, std::uint64_t request, T&) {
  fail(client, request, Code::kInvalidArgument, "not a request for the agent");
}
template void Agent::Impl::on_client(ClientKey, std::uint64_t, client::Hello&);
template void Agent::Impl::on_client(ClientKey, std::uint64_t, client::GetStatus&);
template void Agent::Impl::on_client(ClientKey, std::uint64_t, client::GetObjects&);
template void Agent::Impl::on_client(ClientKey, std::uint64_t, client::GetNodes&);

void Agent::Impl::on_client(ClientKey client, std::uint64_t, client::Cancel& m) {
  stop_request(client, m.target, Code::kCancelled);
}

// Ends a request that has not ended: its time is over, or it was cancelled.
void Agent::Impl::stop_request(ClientKey client, std::uint64_t request, Code code) {
  const auto state = clients_.find(client);
  if (state == clients_.end()) return;
  const auto pending_at = state->second.requests.find(request);
  if (pending_at == state->second.requests.end()) return;
  const PendingRequest pending = pending_at->second;
  const std::string why = code == Code::kUnavailable ? "the daemon is stopping; " : "";
  const std::string who = why + "object " + pending.id.to_string();
  switch (pending.kind) {
    case PendingRequest::Kind::kGet: {
      Record& r = records_.at(pending.id);
      const auto get =
          std::ranges::find_if(r.gets, [&](const GetRequest& g) { return g.client == client && g.request == request; });
      const bool no_room = r.fetch == Fetch::kNeedsRoom && code == Code::kTimedOut;
      fail(client, request, no_room ? Code::kStoreFull : code, who + ": " + waiting_for(r));
      drop_get(r, static_cast<std::size_t>(get - r.gets.begin()));
      break;
    }
    case PendingRequest::Kind::kPut: {
      Record& r = records_.at(pending.id);
      const char* fate = r.put->sealed_sent ? "; the put may have taken effect" : "";
      fail(client, request, code, who + ": home " + r.home.id.to_string() + " has not answered" + fate);
      give_up_put(r);
      try_room();
      break;
    }
    case PendingRequest::Kind::kRoom: {
      const auto waiting = std::ranges::find_if(
          room_queue_, [&](const RoomRequest& w) { return w.is_put && w.client == client && w.request == request; });
      fail(client, request, code == Code::kTimedOut ? Code::kStoreFull : code,
           who + ": " + room_numbers(waiting->size));
      timers_.cancel(waiting->deadline);
      room_queue_.erase(waiting);
      try_room();
      break;
    }
    case PendingRequest::Kind::kWait: {
      if (code == Code::kTimedOut) return end_wait({client, request});
      fail(client, request, code, why + "wait");
      end_wait({client, request});
      break;
    }
    case PendingRequest::Kind::kRemove: {
      DeleteState& pending_delete = deletes_.at(pending.key);
      fail(client, request, code, who + ": home " + pending_delete.home.id.to_string() + " has not answered");
      timers_.cancel(pending_delete.deadline);
      timers_.cancel(pending_delete.retry);
      deletes_.erase(pending.key);
      break;
    }
    case PendingRequest::Kind::kReduce: {
      ReduceAsk& ask = asks_.at(pending.key);
      fail(client, request, code, who + ": home " + ask.home.id.to_string() + " has not answered");
      timers_.cancel(ask.retry);
      asks_.erase(pending.key);
      break;
    }
  }
}

// --- a client is gone ----------------------------------------------------------------------------------------------------

void Agent::Impl::on(const event::ClientGone& e) {
  const auto it = clients_.find(e.client);
  if (it == clients_.end()) return;
  std::vector<std::uint64_t> requests;
  for (const auto& [request, pending] : it->second.requests) requests.push_back(request);
  std::ranges::sort(requests);
  for (std::uint64_t request : requests) {
    const auto pending = it->second.requests.find(request);
    // What was sealed will be committed; everything else ends.
    if (pending == it->second.requests.end() || pending->second.kind == PendingRequest::Kind::kPut) continue;
    stop_request(e.client, request, Code::kCancelled);
  }
  const auto writing = it->second.writing;
  for (const auto& [copy, refused] : writing) {
    COVERAGE_MARK(client_died_writing);
    client::Abort abort{copy};
    on_client(e.client, 0, abort);
  }
  const auto views = it->second.views;
  for (const auto& [copy, count] : views)
    for (std::uint32_t i = 0; i < count; ++i) release_view(e.client, copy);
  clients_.erase(e.client);
  try_room();
}

// --- waiting for objects to be ready -------------------------------------------------------------------------------------

void Agent::Impl::on_client(ClientKey client, std::uint64_t request, client::Wait& m) {
  if (std::ranges::any_of(m.ids, &ObjectId::is_nil))
    return fail(client, request, Code::kInvalidArgument, "the nil id names no object");
  if (too_many_objects(client, request, m.ids.size())) return;
  if (!begin_request(client, request, {PendingRequest::Kind::kWait, {}, 0})) return;
  const RequestKey key{client, request};
  WaitState& wait = waits_[key];
  const std::set<ObjectId> ids(m.ids.begin(), m.ids.end());
  wait.count = std::min<std::size_t>(m.count, ids.size());
  for (const ObjectId& id : ids) {
    Record& r = record(id);
    const Copy* copy = current_copy(r);
    if (copy != nullptr && copy->state == CopyState::kComplete) {
      wait.ready.push_back(id);
    } else {
      wait.missing.insert(id);
      r.waits.insert(key);
    }
  }
  if (wait.ready.size() >= wait.count) return end_wait(key);
  timers_.set(wait.deadline, deadline_of(m.timeout_ns), timer::RequestDeadline{client, request});
  const std::set<ObjectId> missing = wait.missing;
  for (const ObjectId& id : missing) send_notify(record(id));
}

void Agent::Impl::send_notify(Record& record) {
  record.notify_request = next_request_++;
  Want want;
  want.request = record.notify_request;
  want.id = record.id;
  want.mode = WantMode::kNotify;
  want.wait_if_lost = record.watchers.empty() || record.notify_if_put_again;
  want.inline_bytes = record.watch_inline;
  timers_.set(record.notify_timer, now_ + limits_.request_retry, timer::Notify{record.id});
  send(record.home, std::move(want));
}

void Agent::Impl::on(NodeRef from, const Found& m) {
  Record* r = find(m.id);
  if (r == nullptr || r->home != from) return;
  remember(m.id, m.version);
  became_ready(*r, &m);
}

// It is committed: here, or where `found` says.
void Agent::Impl::became_ready(Record& record, const Found* found) {
  if (!record.watchers.empty()) {
    const Copy* copy = current_copy(record);
    const bool here = copy != nullptr && copy->state == CopyState::kComplete;
    if (here) arrived(record, {record.id, self(), copy->version, copy->extent.size, copy->meta});
    else if (found != nullptr && membership_.is_alive(found->holder))
      arrived(record, {record.id, found->holder, found->version, found->size, found->meta});
  }
  const std::set<RequestKey> waits = std::move(record.waits);
  record.waits.clear();
  timers_.cancel(record.notify_timer);
  record.notify_request = 0;
  // Who holds it is dead, as we know already: the home will.
  if (!record.watchers.empty())
    timers_.set(record.notify_timer, now_ + limits_.retry_backoff, timer::Notify{record.id});
  const ObjectId id = record.id;
  for (const RequestKey& key : waits) {
    WaitState& wait = waits_.at(key);
    wait.missing.erase(id);
    wait.ready.push_back(id);
    if (wait.ready.size() >= wait.count) end_wait(key);
  }
  forget_if_unused(id);
}

// Answers, if it is not answered yet, and forgets.
void Agent::Impl::end_wait(RequestKey key) {
  WaitState wait = std::move(waits_.at(key));
  waits_.erase(key);
  timers_.cancel(wait.deadline);
  const auto client = clients_.find(key.first);
  if (client != clients_.end() && client->second.requests.contains(key.second))
    reply(key.first, key.second, client::WaitDone{std::move(wait.ready)});
  for (const ObjectId& id : wait.missing) {
    Record* r = find(id);
    if (r == nullptr || r->waits.erase(key) == 0 || r->wants_notice()) continue;
    timers_.cancel(r->notify_timer);
    send(r->home, Unwant{id, WantMode::kNotify});
    forget_if_unused(id);
  }
}

// --- deletes -------------------------------------------------------------------------------------------------------------

void Agent::Impl::on_client(ClientKey client, std::uint64_t request, client::Remove& m) {
  if (m.id.is_nil()) return fail(client, request, Code::kInvalidArgument, "the nil id names no object");
  const std::uint64_t key = next_request_++;
  if (!begin_request(client, request, {PendingRequest::Kind::kRemove, m.id, key})) return;
  DeleteState& pending = deletes_[key];
  pending.client = client;
  pending.client_request = request;
  pending.id = m.id;
  timers_.set(pending.deadline, deadline_of(m.timeout_ns), timer::RequestDeadline{client, request});
  send_delete(key);
}

void Agent::Impl::send_delete(std::uint64_t key) {
  DeleteState& pending = deletes_.at(key);
  pending.home = home(pending.id);
  timers_.set(pending.retry, now_ + limits_.request_retry, timer::Delete{key});
  send(pending.home, DeleteRequest{key, pending.id});
}

void Agent::Impl::on(NodeRef from, const DeleteReply& m) {
  const auto it = deletes_.find(m.request);
  if (it == deletes_.end() || it->second.home != from) return;
  DeleteState pending = it->second;
  timers_.cancel(pending.deadline);
  timers_.cancel(pending.retry);
  deletes_.erase(it);
  reply(pending.client, pending.client_request, client::Removed{m.existed});
}

}  // namespace hoplite
