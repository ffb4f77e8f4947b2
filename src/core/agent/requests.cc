// Clients' requests: replies, deadlines, cancels, waits, deletes, and what a dead client leaves behind.
#include <algorithm>

#include "base/check.h"
#include "base/coverage.h"
#include "core/agent/impl.h"

namespace hoplite {

Time Agent::Impl::deadline_of(std::int64_t timeout_ns) const {
  return timeout_ns < 0 ? Time::never() : out_.now() + Duration{timeout_ns};
}

void Agent::Impl::begin_request(const RequestKey& key, Clients::Kind kind, const ObjectId& id, std::int64_t timeout_ns,
                                std::uint64_t errand) {
  clients_.begin(key, kind, id, deadline_of(timeout_ns), errand);
}

// True: the request has failed, because this node would have to remember more ids than it may.
bool Agent::Impl::too_many_objects(const RequestKey& key, std::size_t more) {
  if (records_.size() + more <= limits_.max_objects) return false;
  clients_.fail(key, Code::kStoreFull,
                "this node knows " + std::to_string(records_.size()) + " objects; at most " +
                    std::to_string(limits_.max_objects) + " are allowed");
  return true;
}

template <typename T>
void Agent::Impl::on_client(const RequestKey& key, T&) {
  clients_.fail(key, Code::kInvalidArgument, "not a request for the agent");
}
template void Agent::Impl::on_client(const RequestKey&, ipc::Hello&);
template void Agent::Impl::on_client(const RequestKey&, ipc::GetStatus&);
template void Agent::Impl::on_client(const RequestKey&, ipc::GetObjects&);
template void Agent::Impl::on_client(const RequestKey&, ipc::GetNodes&);

void Agent::Impl::on_client(const RequestKey& key, ipc::Cancel& m) {
  stop_request({key.client, m.target}, Code::kCancelled);
}

// Ends a request that has not ended: its time is over, or it was cancelled.
void Agent::Impl::stop_request(const RequestKey& key, Code code) {
  const Clients::Pending* found = clients_.find(key);
  if (found == nullptr) return;
  const Clients::Pending pending = *found;
  const std::string why = code == Code::kUnavailable ? "the daemon is stopping; " : "";
  const std::string who = why + "object " + pending.id.to_string();
  const auto fail_it = [&](Code with, const std::string& text) { clients_.fail(key, with, text); };
  switch (pending.kind) {
    case Clients::Kind::kGet: return stop_get(key, pending.id, code, who);
    case Clients::Kind::kPut: {
      Record& r = records_.at(pending.id);
      const char* fate = puts_.may_be_committed(pending.id) ? "; the put may have taken effect" : "";
      fail_it(code, who + ": home " + r.home.id.to_string() + " has not answered" + unjoined() + fate);
      return give_up_put(r);
    }
    case Clients::Kind::kCreate: {
      const Room::Owner create = Room::Create{key.client, key.request, pending.id, {}};
      fail_it(code == Code::kTimedOut ? Code::kStoreFull : code,
              who + ": " + table_.room_numbers(room_.asked_by(create)));
      return room_.leave(create);
    }
    case Clients::Kind::kWait:
      if (code != Code::kTimedOut) fail_it(code, why + "wait");
      return notices_.end_wait(key);
    case Clients::Kind::kErrand: {
      out_.answered(pending.errand);
      const Errands::Errand errand = errands_.take(pending.errand);
      return fail_it(code, who + ": home " + errand.home.id.to_string() + " has not answered");
    }
  }
}

// --- a client is gone ----------------------------------------------------------------------------------------------------

// Its process may live on, with pointers to what it viewed and wrote: that memory is nobody else's until its lease ends.
void Agent::Impl::on(const event::ClientGone& e) {
  for (const RequestKey& key : clients_.pending(e.client)) {
    const Clients::Pending* pending = clients_.find(key);
    // What was sealed will be committed; everything else ends.
    if (pending != nullptr && pending->kind != Clients::Kind::kPut) stop_request(key, Code::kCancelled);
  }
  for (const CopyKey copy : clients_.writing(e.client)) {
    COVERAGE_MARK(client_died_writing);
    give_up_writing(*clients_.written_by(e.client, copy));
  }
  clients_.detach(e.client);
}

void Agent::Impl::on(const event::LeaseEnded& e) { clients_.forget(e.client); }

// --- waiting for objects to be ready -------------------------------------------------------------------------------------

void Agent::Impl::on_client(const RequestKey& key, ipc::Wait& m) {
  if (std::ranges::any_of(m.ids, &ObjectId::is_nil))
    return clients_.fail(key, Code::kInvalidArgument, "the nil id does not identify an object");
  if (too_many_objects(key, m.ids.size())) return;
  begin_request(key, Clients::Kind::kWait, {}, m.timeout_ns);
  for (const ObjectId& id : m.ids) records_.add(id);
  notices_.wait(key, {m.ids.begin(), m.ids.end()}, m.count);
}

void Agent::Impl::on(NodeRef from, const Found& m) {
  const Record* r = records_.find(m.id);
  if (r == nullptr || r->home != from) return;
  announcer_.remember(m.id, m.version);
  became_ready(*r, &m);
}

// It is committed: here, or where `found` says.
void Agent::Impl::became_ready(const Record& record, const Found* found) {
  if (!notices_.contains(record.id)) return;
  const Copy* copy = records_.copy_of(record);
  if (copy != nullptr && copy->is_complete())
    arrived({record.id, self(), copy->version, copy->extent.size, copy->meta});
  else if (found != nullptr && membership_.is_alive(found->holder))
    arrived({record.id, found->holder, found->version, found->size, found->meta});
  notices_.on_ready(record.id);
}

// --- errands -------------------------------------------------------------------------------------------------------------

void Agent::Impl::on_client(const RequestKey& key, ipc::Remove& m) {
  ask_home(key, m.id, m.timeout_ns, DeleteRequest{0, m.id});
}

void Agent::Impl::ask_home(const RequestKey& asked, const ObjectId& id, std::int64_t timeout_ns, Message message) {
  if (id.is_nil()) return clients_.fail(asked, Code::kInvalidArgument, "the nil id does not identify an object");
  const std::uint64_t key = out_.next_number();
  begin_request(asked, Clients::Kind::kErrand, id, timeout_ns, key);
  errands_.add(key, asked, id, std::move(message));
  send_errand(key);
}

void Agent::Impl::send_errand(std::uint64_t key) {
  const NodeRef to = records_.home(errands_.find(key)->id);
  const Message& message = errands_.send_to(key, to, out_.now());
  // A delete waits for every holder and its answer is short: it takes no turn from others.
  if (std::holds_alternative<DeleteRequest>(message)) return out_.send(to, message);
  out_.answered(key);
  out_.ask(to, key, message);
}

void Agent::Impl::end_errand(std::uint64_t key, ipc::Reply answer) {
  out_.answered(key);
  clients_.answer(errands_.take(key).asked, std::move(answer));
}

void Agent::Impl::on(NodeRef from, const DeleteReply& m) {
  const Errands::Errand* errand = errands_.find(m.request);
  if (errand != nullptr && errand->home == from) end_errand(m.request, ipc::Removed{m.existed});
}

}  // namespace hoplite
