// Clients that write. A put is claimed at the id's home; for an id minted here that is this node, and costs no message.
#include <algorithm>

#include "base/check.h"
#include "base/coverage.h"
#include "core/agent/impl.h"

namespace hoplite {

// --- a small object in one message ---------------------------------------------------------------------------------------

void Agent::Impl::on_client(ClientKey client, std::uint64_t request, ipc::Put& m) {
  if (payload_bytes_ > limits_.inline_bytes || m.meta.size() > limits_.max_meta_bytes)
    return fail(client, request, Code::kInvalidArgument,
                "a put in one message may have " + format_size(limits_.inline_bytes) + " and metadata of " +
                    format_size(limits_.max_meta_bytes));
  const ObjectId id = id_or_fresh(m.id);
  if (const Code code = put_refused(id); code != Code::kOk)
    return fail(client, request, code, "object " + id.to_string());
  if (find(id) == nullptr && too_many_objects(client, request, 1)) return;
  Copy* copy = add_put_copy(id, payload_bytes_, std::move(m.meta), Alignment::kCacheLine);
  if (copy == nullptr) return reply(client, request, ipc::UseCreate{});
  begin_request({client, request}, Clients::Kind::kPut, id, m.timeout_ns);
  if (payload_bytes_ > 0) emit(effect::StorePayload{copy->extent});
  copy->written = payload_bytes_;
  Record& r = record(id);
  begin_put(r, *copy, client);
  r.put->client_request = request;
  r.put->sealing = true;
  send_claim(r);
}

// --- a larger one, in steps ----------------------------------------------------------------------------------------------

void Agent::Impl::on_client(ClientKey client, std::uint64_t request, ipc::Create& m) {
  if (m.meta.size() > limits_.max_meta_bytes)
    return fail(client, request, Code::kInvalidArgument, "metadata may have " + format_size(limits_.max_meta_bytes));
  const ObjectId id = id_or_fresh(m.id);
  if (const Code code = put_refused(id); code != Code::kOk)
    return fail(client, request, code, "object " + id.to_string());
  if (find(id) == nullptr && too_many_objects(client, request, 1)) return;
  if (!table_.allocator().fits(m.size)) return fail(client, request, Code::kStoreFull, room_numbers(m.size));
  begin_request({client, request}, Clients::Kind::kCreate, id, m.timeout_ns);
  Room::Create create{client, request, id, std::move(m.meta)};
  if (room_.empty() && create_now(create, m.size)) return;
  if (room_.size() >= limits_.max_waiting_for_room)
    return fail(client, request, Code::kStoreFull,
                std::to_string(room_.size()) + " others wait for room already; " + room_numbers(m.size));
  room_.wait(std::move(create), m.size);
}

// False: there is no room. Otherwise the request is answered.
bool Agent::Impl::create_now(const Room::Create& create, std::uint64_t size) {
  // Somebody else may have put it while this one waited for room.
  if (const Code code = put_refused(create.id); code != Code::kOk) {
    fail(create.client, create.request, code, "object " + create.id.to_string());
    return true;
  }
  Copy* copy = add_put_copy(create.id, size, create.meta, Alignment::kPage);
  if (copy == nullptr) return false;
  clients_.begin_writing(create.client, table_.use(*copy, CopyUser::kWriter));
  reply(create.client, create.request, ipc::Created{create.id, copy->key, copy->extent.offset, size});
  Record& r = record(create.id);
  begin_put(r, *copy, create.client);
  send_claim(r);
  return true;
}

void Agent::Impl::on_client(ClientKey client, std::uint64_t, ipc::Advance& m) {
  Copy* copy = clients_.written_by(client, m.copy);
  if (copy == nullptr) return;
  const std::uint64_t bytes = std::min(m.bytes, copy->extent.size);
  if (bytes <= copy->written) return;
  copy->written = bytes;
  if (copy->in_data_plane() == InDataPlane::kOpen) emit(effect::GrowCopy{copy->key, bytes});
}

void Agent::Impl::on_client(ClientKey client, std::uint64_t request, ipc::Seal& m) {
  Copy* copy = clients_.written_by(client, m.copy);
  if (copy == nullptr)
    return fail(client, request, Code::kInvalidArgument,
                "no object of this client is being written as " + std::to_string(m.copy));
  const Code refused = clients_.end_writing(client, m.copy);
  if (refused != Code::kOk) return fail(client, request, refused, "object " + copy->id.to_string());
  Record& r = records_.at(copy->id);
  CHECK(r.put && r.put->copy == m.copy, copy->id.to_string(), m.copy);
  begin_request({client, request}, Clients::Kind::kPut, copy->id, m.timeout_ns);
  copy->written = copy->extent.size;
  if (copy->in_data_plane() == InDataPlane::kOpen) emit(effect::GrowCopy{copy->key, copy->written});
  r.put->sealing = true;
  r.put->client_request = request;
  if (r.put->claimed) send_claim(r);
}

void Agent::Impl::on_client(ClientKey client, std::uint64_t, ipc::Abort& m) {
  const Copy* copy = clients_.written_by(client, m.copy);
  if (copy == nullptr) return;
  Record* r = find(copy->id);
  clients_.end_writing(client, m.copy);
  if (r != nullptr && r->put && r->put->copy == m.copy) give_up_put(*r);
}

// --- the claim at the home -----------------------------------------------------------------------------------------------

ObjectId Agent::Impl::id_or_fresh(const ObjectId& id) {
  return id.is_nil() ? ObjectId{self().id.value, next_id_++} : id;
}

Code Agent::Impl::put_refused(const ObjectId& id) const {
  if (tombstones_.contains(id)) return Code::kDeleted;
  const Record* r = find(id);
  if (r == nullptr) return Code::kOk;
  const Copy* copy = current_copy(*r);
  // Bytes without a source prove nothing: the home knows whether it still exists.
  const bool stranded = copy != nullptr && copy->life() == CopyLife::kFetching &&
                        std::ranges::all_of(copy->slices, &CopySlice::needs_parent);
  return r->put || (copy != nullptr && !stranded) ? Code::kExists : Code::kOk;
}

Copy* Agent::Impl::add_put_copy(const ObjectId& id, std::uint64_t size, std::string meta, Alignment alignment) {
  Copy* copy = table_.add(id, random_.next_nonzero(), size, alignment, CopyLife::kWriting);
  if (copy == nullptr) return nullptr;
  copy->meta = std::move(meta);
  copy->primary = true;
  return copy;
}

void Agent::Impl::begin_put(Record& record, Copy& copy, ClientKey client) {
  // A home must not serve us what we are putting.
  if (record.fetch != Fetch::kIdle) stop_asking(record);
  if (const Copy* stranded = current_copy(record)) {
    send(record.home, Withdraw{record.id, stranded->version});
    retire(record);
  }
  record.copy = copy.key;
  record.put = PutState{};
  record.put->copy = copy.key;
  record.put->client = client;
}

void Agent::Impl::send_claim(Record& record) {
  PutState& put = *record.put;
  const Copy& copy = table_.at(put.copy);
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
  servable_.insert(m.id);
}

void Agent::Impl::commit_put(Record& record) {
  Copy& copy = table_.at(record.put->copy);
  table_.become(copy, CopyLife::kComplete);
  if (copy.in_data_plane() == InDataPlane::kOpen) emit(effect::SealCopy{copy.key});
  const PutState put = end_put(record);
  if (put.client_request != 0 && clients_.is_known(put.client))
    reply(put.client, put.client_request, ipc::PutDone{record.id});
  fulfil_gets(record);
  became_ready(record);
  servable_.insert(record.id);
}

PutState Agent::Impl::end_put(Record& record) {
  PutState put = std::move(*record.put);
  record.put.reset();
  timers_.cancel(put.retry);
  open_requests_.erase(put.first_request);
  return put;
}

// The home refused. A client that still writes is told when it seals.
void Agent::Impl::fail_put(Record& record, Code code, const std::string& why) {
  const PutState put = end_put(record);
  for (const NodeRef& home : put.asked)
    if (home != record.home) send(home, Withdraw{record.id, table_.at(put.copy).version});
  clients_.refuse_writing(put.client, put.copy, code);
  if (put.client_request != 0 && clients_.is_known(put.client)) fail(put.client, put.client_request, code, why);
  retire(record);
}

// The client is gone, gave up, or ran out of time.
void Agent::Impl::give_up_put(Record& record) {
  COVERAGE_MARK(put_given_up);
  const PutState put = end_put(record);
  for (const NodeRef& home : put.asked) send(home, Withdraw{record.id, table_.at(put.copy).version});
  retire(record);
}

}  // namespace hoplite
