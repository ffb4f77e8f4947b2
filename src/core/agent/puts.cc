// Clients that write. A put is claimed at the id's home; for an id minted here that is this node, and costs no message.
#include <algorithm>

#include "base/coverage.h"
#include "core/agent/impl.h"

namespace hoplite {

// --- a small object in one message ---------------------------------------------------------------------------------------

void Agent::Impl::on_client(ClientKey client, std::uint64_t request, client::Put& m) {
  if (payload_bytes_ > limits_.inline_bytes || m.meta.size() > limits_.max_meta_bytes)
    return fail(client, request, Code::kInvalidArgument,
                "a put in one message may have " + format_size(limits_.inline_bytes) + " and metadata of " +
                    format_size(limits_.max_meta_bytes));
  const ObjectId id = id_or_fresh(m.id);
  if (const Code code = put_refused(id); code != Code::kOk)
    return fail(client, request, code, "object " + id.to_string());
  if (find(id) == nullptr && too_many_objects(client, request, 1)) return;
  Copy* copy = add_put_copy(id, payload_bytes_, std::move(m.meta), Alignment::kCacheLine);
  if (copy == nullptr) return reply(client, request, client::UseCreate{});
  if (!begin_request(client, request, {PendingRequest::Kind::kPut, id, 0})) {
    copy->current = false;
    return collect(copy->key);
  }
  if (payload_bytes_ > 0) emit(effect::StorePayload{copy->extent});
  copy->written = payload_bytes_;
  Record& r = record(id);
  begin_put(r, *copy, client);
  r.put->client_request = request;
  r.put->sealing = true;
  timers_.set(r.put->deadline, deadline_of(m.timeout_ns), timer::RequestDeadline{client, request});
  send_claim(r);
}

// --- a larger one, in steps ----------------------------------------------------------------------------------------------

void Agent::Impl::on_client(ClientKey client, std::uint64_t request, client::Create& m) {
  if (m.meta.size() > limits_.max_meta_bytes)
    return fail(client, request, Code::kInvalidArgument, "metadata may have " + format_size(limits_.max_meta_bytes));
  const ObjectId id = id_or_fresh(m.id);
  if (const Code code = put_refused(id); code != Code::kOk)
    return fail(client, request, code, "object " + id.to_string());
  if (find(id) == nullptr && too_many_objects(client, request, 1)) return;
  if (!table_.allocator().fits(m.size)) return fail(client, request, Code::kStoreFull, room_numbers(m.size));
  if (!begin_request(client, request, {PendingRequest::Kind::kRoom, id, 0})) return;
  if (room_queue_.empty() && create_now(client, request, id, m.size, m.meta)) return;
  RoomRequest waiting{id, m.size, true, 0, client, request, std::move(m.meta), {}};
  timers_.set(waiting.deadline, deadline_of(m.timeout_ns), timer::RequestDeadline{client, request});
  queue_for_room(std::move(waiting));
}

// False: there is no room. Otherwise the request is answered.
bool Agent::Impl::create_now(ClientKey client, std::uint64_t request, const ObjectId& id, std::uint64_t size,
                             const std::string& meta) {
  // Somebody else may have put it while this one waited for room.
  if (const Code code = put_refused(id); code != Code::kOk) {
    fail(client, request, code, "object " + id.to_string());
    return true;
  }
  Copy* copy = add_put_copy(id, size, meta, Alignment::kPage);
  if (copy == nullptr) return false;
  copy->writer = client;
  clients_[client].writing[copy->key] = Code::kOk;
  reply(client, request, client::Created{id, copy->key, copy->extent.offset, size});
  Record& r = record(id);
  begin_put(r, *copy, client);
  send_claim(r);
  return true;
}

void Agent::Impl::on_client(ClientKey client, std::uint64_t, client::Advance& m) {
  Copy* copy = table_.find(m.copy);
  if (copy == nullptr || copy->writer != client) return;
  const std::uint64_t bytes = std::min(m.bytes, copy->extent.size);
  if (bytes <= copy->written) return;
  copy->written = bytes;
  if (copy->open && !copy->closing) emit(effect::GrowCopy{copy->key, bytes});
}

void Agent::Impl::on_client(ClientKey client, std::uint64_t request, client::Seal& m) {
  const auto state = clients_.find(client);
  Copy* copy = table_.find(m.copy);
  const bool writing = state != clients_.end() && state->second.writing.contains(m.copy);
  if (!writing || copy == nullptr)
    return fail(client, request, Code::kInvalidArgument,
                "no object of this client is being written as " + std::to_string(m.copy));
  const Code refused = state->second.writing[m.copy];
  state->second.writing.erase(m.copy);
  copy->writer = 0;
  const ObjectId id = copy->id;
  if (refused != Code::kOk) {
    collect(copy->key);
    try_room();
    return fail(client, request, refused, "object " + id.to_string());
  }
  Record& r = record(id);
  if (!begin_request(client, request, {PendingRequest::Kind::kPut, id, 0})) return give_up_put(r);
  copy->written = copy->extent.size;
  if (copy->open && !copy->closing) emit(effect::GrowCopy{copy->key, copy->written});
  r.put->sealing = true;
  r.put->client_request = request;
  timers_.set(r.put->deadline, deadline_of(m.timeout_ns), timer::RequestDeadline{client, request});
  if (r.put->claimed) send_claim(r);
}

void Agent::Impl::on_client(ClientKey client, std::uint64_t, client::Abort& m) {
  const auto state = clients_.find(client);
  Copy* copy = table_.find(m.copy);
  if (state == clients_.end() || copy == nullptr || state->second.writing.erase(m.copy) == 0) return;
  copy->writer = 0;
  const ObjectId id = copy->id;
  Record* r = find(id);
  if (r != nullptr && r->put && r->put->copy == m.copy) {
    give_up_put(*r);
  } else {
    collect(m.copy);
  }
  try_room();
}

// --- the claim at the home -----------------------------------------------------------------------------------------------

ObjectId Agent::Impl::id_or_fresh(const ObjectId& id) {
  return id.is_nil() ? ObjectId{self().id.value, next_id_++} : id;
}

Code Agent::Impl::put_refused(const ObjectId& id) const {
  if (tombstones_.contains(id)) return Code::kDeleted;
  const Record* r = find(id);
  if (r == nullptr) return Code::kOk;
  const Copy* copy = r->copy == 0 ? nullptr : table_.find(r->copy);
  // Bytes without a source prove nothing: the home knows whether it still exists.
  const bool stranded =
      copy != nullptr && copy->state == CopyState::kGrowing &&
      std::ranges::none_of(copy->slices, [](const SliceFetch& s) { return s.transfer != 0 || s.done; });
  return r->put || (copy != nullptr && !stranded) ? Code::kExists : Code::kOk;
}

Copy* Agent::Impl::add_put_copy(const ObjectId& id, std::uint64_t size, std::string meta, Alignment alignment) {
  Copy* copy = table_.add(id, random_.next_nonzero(), size, alignment);
  if (copy == nullptr) return nullptr;
  copy->meta = std::move(meta);
  copy->state = CopyState::kWriting;
  copy->primary = true;
  return copy;
}

void Agent::Impl::begin_put(Record& record, Copy& copy, ClientKey client) {
  // A home must not serve us what we are putting.
  if (record.fetch != Fetch::kIdle) stop_asking(record);
  if (const Copy* stranded = current_copy(record)) {
    send(record.home, Withdraw{record.id, stranded->version});
    detach(record);
  }
  record.copy = copy.key;
  record.put = PutState{};
  record.put->copy = copy.key;
  record.put->client = client;
}

void Agent::Impl::send_claim(Record& record) {
  PutState& put = *record.put;
  const Copy& copy = *table_.find(put.copy);
  put.request = next_request_++;
  if (put.first_request == 0) {
    put.first_request = put.request;
    open_requests_.insert(put.request);
  }
  put.sealed_sent = put.sealing;
  put.asked.insert(record.home);
  const bool small = put.sealing && copy.extent.size <= limits_.inline_bytes && record.home.id != self().id;
  timers_.set(put.retry, now_ + limits_.request_retry, timer::Claim{record.id});
  send(record.home, PutRequest{put.request, record.id, copy.version, copy.extent.size, copy.meta, put.sealing},
       small ? effect::Payload::kExtent : effect::Payload::kNone, copy.extent);
}

void Agent::Impl::on(NodeRef from, const PutReply& m) {
  Record* r = find(m.id);
  if (r == nullptr || !r->put || r->home != from || r->put->request != m.request) return;
  timers_.cancel(r->put->retry);
  if (m.code != Code::kOk)
    return fail_put(*r, m.code, "object " + m.id.to_string() + " (home " + from.id.to_string() + ")");
  r->put->claimed = true;
  open_requests_.erase(r->put->first_request);  // a fact from now on, which full announcements tell
  if (r->put->sealed_sent) return commit_put(*r);
  if (r->put->sealing) return send_claim(*r);
  // Bytes may be asked for from now on.
  fulfil_gets(*r);
  reconsider_parked(m.id);
}

void Agent::Impl::commit_put(Record& record) {
  Copy& copy = *table_.find(record.put->copy);
  copy.state = CopyState::kComplete;
  copy.committed = true;
  if (copy.open && !copy.closing) emit(effect::SealCopy{copy.key});
  const PutState put = *record.put;
  timers_.cancel(record.put->deadline);
  record.put.reset();
  if (put.client_request != 0 && clients_.contains(put.client))
    reply(put.client, put.client_request, client::PutDone{record.id});
  fulfil_gets(record);
  became_ready(record);
  reconsider_parked(record.id);
}

// The home refused. A client that still writes is told when it seals.
void Agent::Impl::fail_put(Record& record, Code code, const std::string& why) {
  const PutState put = *record.put;
  timers_.cancel(record.put->deadline);
  timers_.cancel(record.put->retry);
  open_requests_.erase(put.first_request);
  record.put.reset();
  for (const NodeRef& home : put.asked)
    if (home != record.home) send(home, Withdraw{record.id, table_.find(put.copy)->version});
  if (const auto client = clients_.find(put.client); client != clients_.end()) {
    if (put.client_request != 0) fail(put.client, put.client_request, code, why);
    if (client->second.writing.contains(put.copy)) client->second.writing[put.copy] = code;
  }
  const ObjectId id = record.id;
  detach(record);
  ensure_fetch(record);
  forget_if_unused(id);
}

// The client is gone, gave up, or ran out of time.
void Agent::Impl::give_up_put(Record& record) {
  COVERAGE_MARK(put_given_up);
  const ObjectId id = record.id;
  const Version version = table_.find(record.put->copy)->version;
  timers_.cancel(record.put->deadline);
  timers_.cancel(record.put->retry);
  open_requests_.erase(record.put->first_request);
  const std::set<NodeRef> asked = std::move(record.put->asked);
  record.put.reset();
  for (const NodeRef& home : asked) send(home, Withdraw{id, version});
  detach(record);
  ensure_fetch(record);
  forget_if_unused(id);
}

}  // namespace hoplite
