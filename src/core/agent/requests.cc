// Clients' requests: replies, deadlines, cancels, waits, deletes, and what a dead client leaves behind.
#include <algorithm>

#include "base/check.h"
#include "base/coverage.h"
#include "core/agent/impl.h"

namespace hoplite {

Time Agent::Impl::deadline_of(std::int64_t timeout_ns) const {
  return timeout_ns < 0 ? Time::never() : now_ + Duration{timeout_ns};
}

// --- replies -------------------------------------------------------------------------------------------------------------

// The final reply of a request.
void Agent::Impl::reply(ClientKey client, std::uint64_t request, ipc::Reply message) {
  clients_.end({client, request});
  emit(effect::Reply{client, request, std::move(message)});
}

void Agent::Impl::fail(ClientKey client, std::uint64_t request, Code code, std::string why) {
  reply(client, request, ipc::Failed{code, std::move(why)});
}

void Agent::Impl::begin_request(const RequestKey& key, Clients::Kind kind, const ObjectId& id, std::int64_t timeout_ns,
                                std::uint64_t errand) {
  clients_.begin(key, kind, id, deadline_of(timeout_ns), errand);
}

// True: the request has failed, because this node would have to remember more ids than it may.
bool Agent::Impl::too_many_objects(ClientKey client, std::uint64_t request, std::size_t more) {
  if (records_.size() + more <= limits_.max_objects) return false;
  fail(client, request, Code::kStoreFull,
       "this node knows " + std::to_string(records_.size()) + " objects; at most " +
           std::to_string(limits_.max_objects) + " are allowed");
  return true;
}

template <typename T>
void Agent::Impl::on_client(ClientKey client, std::uint64_t request, T&) {
  fail(client, request, Code::kInvalidArgument, "not a request for the agent");
}
template void Agent::Impl::on_client(ClientKey, std::uint64_t, ipc::Hello&);
template void Agent::Impl::on_client(ClientKey, std::uint64_t, ipc::GetStatus&);
template void Agent::Impl::on_client(ClientKey, std::uint64_t, ipc::GetObjects&);
template void Agent::Impl::on_client(ClientKey, std::uint64_t, ipc::GetNodes&);

void Agent::Impl::on_client(ClientKey client, std::uint64_t, ipc::Cancel& m) {
  stop_request({client, m.target}, Code::kCancelled);
}

// Ends a request that has not ended: its time is over, or it was cancelled.
void Agent::Impl::stop_request(const RequestKey& key, Code code) {
  const Clients::Pending* found = clients_.find(key);
  if (found == nullptr) return;
  const Clients::Pending pending = *found;
  const std::string why = code == Code::kUnavailable ? "the daemon is stopping; " : "";
  const std::string who = why + "object " + pending.id.to_string();
  const auto fail_it = [&](Code with, const std::string& text) { fail(key.client, key.request, with, text); };
  switch (pending.kind) {
    case Clients::Kind::kGet: return stop_get(key, records_.at(pending.id), code, who);
    case Clients::Kind::kPut: {
      Record& r = records_.at(pending.id);
      const char* fate = r.put->sealed_sent ? "; the put may have taken effect" : "";
      fail_it(code, who + ": home " + r.home.id.to_string() + " has not answered" + fate);
      return give_up_put(r);
    }
    case Clients::Kind::kCreate: {
      const Room::Owner create = Room::Create{key.client, key.request, pending.id, {}};
      fail_it(code == Code::kTimedOut ? Code::kStoreFull : code, who + ": " + room_numbers(room_.asked_by(create)));
      return room_.leave(create);
    }
    case Clients::Kind::kWait:
      if (code != Code::kTimedOut) fail_it(code, why + "wait");
      return end_wait(key);
    case Clients::Kind::kErrand: {
      const Errands::Errand errand = errands_.take(pending.errand);
      return fail_it(code, who + ": home " + errand.home.id.to_string() + " has not answered");
    }
  }
}

void Agent::Impl::stop_get(const RequestKey& key, Record& record, Code code, const std::string& who) {
  const bool too_late = record.room_since && *record.room_since + limits_.request_retry > now_;
  const bool no_room = record.fetch == Fetch::kNeedsRoom || too_late;
  const std::string why = waiting_for(record) + (too_late ? "; there was no room for it until just now" : "");
  fail(key.client, key.request, no_room && code == Code::kTimedOut ? Code::kStoreFull : code, who + ": " + why);
  const auto stopped = std::erase_if(record.gets, [&](const GetRequest& get) { return get.key == key; });
  CHECK(stopped == 1, key.client, key.request, stopped);
  touched_.insert(record.id);
}

// --- a client is gone ----------------------------------------------------------------------------------------------------

void Agent::Impl::on(const event::ClientGone& e) {
  for (const RequestKey& key : clients_.pending(e.client)) {
    const Clients::Pending* pending = clients_.find(key);
    // What was sealed will be committed; everything else ends.
    if (pending != nullptr && pending->kind != Clients::Kind::kPut) stop_request(key, Code::kCancelled);
  }
  for (const CopyKey copy : clients_.writing(e.client)) {
    COVERAGE_MARK(client_died_writing);
    ipc::Abort abort{copy};
    on_client(e.client, 0, abort);
  }
  clients_.forget(e.client);
}

// --- waiting for objects to be ready -------------------------------------------------------------------------------------

void Agent::Impl::on_client(ClientKey client, std::uint64_t request, ipc::Wait& m) {
  if (std::ranges::any_of(m.ids, &ObjectId::is_nil))
    return fail(client, request, Code::kInvalidArgument, "the nil id names no object");
  if (too_many_objects(client, request, m.ids.size())) return;
  const RequestKey key{client, request};
  begin_request(key, Clients::Kind::kWait, {}, m.timeout_ns);
  WaitState& wait = waits_[key];
  const std::set<ObjectId> ids(m.ids.begin(), m.ids.end());
  wait.count = std::min<std::size_t>(m.count, ids.size());
  for (const ObjectId& id : ids) {
    Record& r = record(id);
    const Copy* copy = current_copy(r);
    if (copy != nullptr && copy->is_complete()) {
      wait.ready.push_back(id);
    } else {
      wait.missing.insert(id);
      r.waits.insert(key);
    }
  }
  if (wait.ready.size() >= wait.count) return end_wait(key);
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
    const bool here = copy != nullptr && copy->is_complete();
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
  for (const RequestKey& key : waits) {
    WaitState& wait = waits_.at(key);
    wait.missing.erase(record.id);
    wait.ready.push_back(record.id);
    if (wait.ready.size() >= wait.count) end_wait(key);
  }
  touched_.insert(record.id);
}

// Answers, if it is not answered yet, and forgets.
void Agent::Impl::end_wait(RequestKey key) {
  WaitState wait = std::move(waits_.at(key));
  waits_.erase(key);
  if (clients_.find(key) != nullptr) reply(key.client, key.request, ipc::WaitDone{std::move(wait.ready)});
  for (const ObjectId& id : wait.missing) {
    Record* r = find(id);
    if (r == nullptr || r->waits.erase(key) == 0 || r->wants_notice()) continue;
    timers_.cancel(r->notify_timer);
    send(r->home, Unwant{id, WantMode::kNotify});
    touched_.insert(id);
  }
}

// --- errands -------------------------------------------------------------------------------------------------------------

void Agent::Impl::on_client(ClientKey client, std::uint64_t request, ipc::Remove& m) {
  ask_home({client, request}, m.id, m.timeout_ns, DeleteRequest{0, m.id});
}

void Agent::Impl::ask_home(const RequestKey& asked, const ObjectId& id, std::int64_t timeout_ns, Message message) {
  if (id.is_nil()) return fail(asked.client, asked.request, Code::kInvalidArgument, "the nil id names no object");
  const std::uint64_t key = next_request_++;
  begin_request(asked, Clients::Kind::kErrand, id, timeout_ns, key);
  errands_.add(key, asked, id, std::move(message));
  send_errand(key);
}

void Agent::Impl::send_errand(std::uint64_t key) {
  const NodeRef to = home(errands_.find(key)->id);
  send(to, errands_.send_to(key, to, now_));
}

void Agent::Impl::end_errand(std::uint64_t key, ipc::Reply answer) {
  const RequestKey asked = errands_.take(key).asked;
  reply(asked.client, asked.request, std::move(answer));
}

void Agent::Impl::on(NodeRef from, const DeleteReply& m) {
  const Errands::Errand* errand = errands_.find(m.request);
  if (errand != nullptr && errand->home == from) end_errand(m.request, ipc::Removed{m.existed});
}

}  // namespace hoplite
