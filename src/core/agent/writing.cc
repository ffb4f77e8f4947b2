// Clients that write. A put is claimed at the id's home; for an id minted here that is this node, and costs no message.
#include <algorithm>

#include "base/check.h"
#include "base/coverage.h"
#include "core/agent/impl.h"

namespace hoplite {

// --- a small object in one message ---------------------------------------------------------------------------------------

void Agent::Impl::on_client(const RequestKey& key, ipc::Put& m) {
  if (payload_bytes_ > limits_.inline_bytes)
    return clients_.fail(key, Code::kInvalidArgument,
                         "a put in a single message can have at most " + format_size(limits_.inline_bytes));
  const ObjectId id = id_or_fresh(m.id);
  if (refuse_put(key, id, m.meta)) return;
  Copy* copy = add_put_copy(id, payload_bytes_, std::move(m.meta), Alignment::kCacheLine);
  if (copy == nullptr) return clients_.answer(key, ipc::UseCreate{});
  begin_request(key, Clients::Kind::kPut, id, m.timeout_ns);
  if (payload_bytes_ > 0) out_.emit(effect::StorePayload{copy->extent});
  copies_.write(*copy, payload_bytes_);
  begin_put(*copy, key.client);
  puts_.seal(id, key.request);
}

// --- a larger one, in steps ----------------------------------------------------------------------------------------------

void Agent::Impl::on_client(const RequestKey& key, ipc::Create& m) {
  const ObjectId id = id_or_fresh(m.id);
  if (refuse_put(key, id, m.meta)) return;
  if (!table_.allocator().fits(m.size)) return clients_.fail(key, Code::kStoreFull, table_.room_numbers(m.size));
  begin_request(key, Clients::Kind::kCreate, id, m.timeout_ns);
  Room::Create create{key.client, key.request, id, std::move(m.meta)};
  if (room_.empty() && create_now(create, m.size)) return;
  if (room_.size() >= limits_.max_waiting_for_room)
    return clients_.fail(
        key, Code::kStoreFull,
        std::to_string(room_.size()) + " other requests are already waiting for space; " + table_.room_numbers(m.size));
  room_.wait(std::move(create), m.size);
}

// False: there is no room. Otherwise the request is answered.
bool Agent::Impl::create_now(const Room::Create& create, std::uint64_t size) {
  const RequestKey key{create.client, create.request};
  // Somebody else may have put it while this one waited for room.
  if (const Code code = put_refused(create.id); code != Code::kOk) {
    clients_.fail(key, code, "object " + create.id.to_string());
    return true;
  }
  Copy* copy = add_put_copy(create.id, size, create.meta, Alignment::kPage);
  if (copy == nullptr) return false;
  clients_.begin_writing(create.client, table_.use(*copy, CopyUser::kWriter));
  clients_.answer(key, ipc::Created{create.id, copy->key, copy->extent.offset, size});
  begin_put(*copy, create.client);
  puts_.claim(create.id);
  return true;
}

void Agent::Impl::on_client(const RequestKey& key, ipc::Advance& m) {
  Copy* copy = clients_.written_by(key.client, m.copy);
  // A put that the home has refused is not continued.
  if (copy != nullptr && copy->life() == CopyLife::kWriting) copies_.write(*copy, std::min(m.bytes, copy->extent.size));
}

void Agent::Impl::on_client(const RequestKey& key, ipc::Seal& m) {
  Copy* copy = clients_.written_by(key.client, m.copy);
  if (copy == nullptr)
    return clients_.fail(key, Code::kInvalidArgument,
                         "no object of this client is being written as " + std::to_string(m.copy));
  const ObjectId id = copy->id;
  const Code refused = clients_.end_writing(key.client, m.copy);
  if (refused != Code::kOk) return clients_.fail(key, refused, "object " + id.to_string());
  CHECK(puts_.contains(id) && records_.at(id).copy == m.copy, id, m.copy);
  begin_request(key, Clients::Kind::kPut, id, m.timeout_ns);
  copies_.write(*copy, copy->extent.size);
  puts_.seal(id, key.request);
}

void Agent::Impl::on_client(const RequestKey& key, ipc::Abort& m) {
  const Copy* copy = clients_.written_by(key.client, m.copy);
  if (copy == nullptr) return;
  give_up_writing(*copy);
  clients_.end_writing(key.client, m.copy);
}

// It will not be sealed, unless it was refused already.
void Agent::Impl::give_up_writing(const Copy& copy) {
  if (puts_.contains(copy.id) && records_.at(copy.id).copy == copy.key) give_up_put(records_.at(copy.id));
}

// --- what becomes of it --------------------------------------------------------------------------------------------------

ObjectId Agent::Impl::id_or_fresh(const ObjectId& id) {
  return id.is_nil() ? ObjectId{self().id.value, next_id_++} : id;
}

// True: the request has failed.
bool Agent::Impl::refuse_put(const RequestKey& key, const ObjectId& id, const std::string& meta) {
  if (meta.size() > limits_.max_meta_bytes) {
    clients_.fail(key, Code::kInvalidArgument, "metadata can have at most " + format_size(limits_.max_meta_bytes));
    return true;
  }
  if (const Code code = put_refused(id); code != Code::kOk) {
    clients_.fail(key, code, "object " + id.to_string());
    return true;
  }
  return !records_.contains(id) && too_many_objects(key, 1);
}

Code Agent::Impl::put_refused(const ObjectId& id) const {
  if (tombstones_.contains(id) && !id.is_named()) return Code::kDeleted;
  const Copy* copy = records_.copy_of(id);
  // Bytes without a source prove nothing: the home knows whether it still exists.
  const bool stranded = copy != nullptr && copy->life() == CopyLife::kFetching &&
                        std::ranges::all_of(copy->slices, &CopySlice::needs_parent);
  return copy == nullptr || stranded ? Code::kOk : Code::kExists;
}

Copy* Agent::Impl::add_put_copy(const ObjectId& id, std::uint64_t size, std::string meta, Alignment alignment) {
  Copy* copy = table_.add(id, versions_.draw(out_.now()), size, alignment, CopyLife::kWriting);
  if (copy == nullptr) return nullptr;
  copy->meta = std::move(meta);
  copy->primary = true;
  return copy;
}

void Agent::Impl::begin_put(Copy& copy, ClientKey client) {
  Record& record = records_.add(copy.id);
  // A home must not serve us what we are putting.
  if (!fetches_.is_idle(copy.id)) stop_fetch(record);
  if (const Copy* stranded = records_.copy_of(record)) {
    announcer_.withdraw(record.home, record.id, stranded->version);
    retire(record);
  }
  record.copy = copy.key;
  puts_.begin(copy.id, client);
}

void Agent::Impl::on(NodeRef from, const PutReply& m) {
  switch (puts_.on_reply(from, m)) {
    case Puts::Answer::kNone: return;
    case Puts::Answer::kRefused:
      return fail_put(records_.at(m.id), m.code, "object " + m.id.to_string() + " (home " + from.id.to_string() + ")");
    case Puts::Answer::kTooOld: return put_newer(records_.at(m.id), m.newer_than);
    case Puts::Answer::kClaimed:  // bytes may be asked for from now on
      gets_.fulfil(m.id);
      return records_.can_be_pulled(m.id);
    case Puts::Answer::kCommitted: return commit_put(records_.at(m.id));
  }
}

// The home has heard of a newer version, which is deleted or lost: by another clock, this one came before that.
void Agent::Impl::put_newer(Record& record, Version newer_than) {
  COVERAGE_MARK(put_with_a_newer_version);
  records_.copy_of(record)->version = versions_.draw(out_.now(), newer_than);
  puts_.claim(record.id);
}

void Agent::Impl::commit_put(Record& record) {
  copies_.complete(*records_.copy_of(record));
  const Puts::Ended put = puts_.finish(record.id);
  if (clients_.is_attached(put.client)) clients_.answer({put.client, put.client_request}, ipc::PutDone{record.id});
  gets_.fulfil(record.id);
  became_ready(record);
  records_.can_be_pulled(record.id);
}

// The home refused. A client that still writes is told when it seals.
void Agent::Impl::fail_put(Record& record, Code code, const std::string& why) {
  const Puts::Ended put = puts_.give_up(record.id, record.home);
  clients_.refuse_writing(put.client, put.copy, code);
  if (put.client_request != 0 && clients_.is_attached(put.client))
    clients_.fail({put.client, put.client_request}, code, why);
  retire(record);
}

// The client is gone, gave up, or ran out of time.
void Agent::Impl::give_up_put(Record& record) {
  COVERAGE_MARK(put_given_up);
  puts_.give_up(record.id);
  ask_after_withdrawal(record.id);
  retire(record);
}

}  // namespace hoplite
