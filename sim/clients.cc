#include "sim/clients.h"

#include <algorithm>

namespace hoplite::sim {

ClientKey Clients::attach(NodeIndex node) {
  const ClientKey client = world_.attach(node);
  attached_.push_back(client);
  return client;
}

void Clients::kill(ClientKey client) {
  world_.detach(client);
  orphan(client);
}

std::vector<ClientKey> Clients::attached_to(NodeIndex node) const {
  std::vector<ClientKey> found;
  for (const ClientKey client : attached_)
    if (world_.node_of(client) == node) found.push_back(client);
  return found;
}

ClientKey Clients::on(NodeIndex node) {
  const std::vector<ClientKey> there = attached_to(node);
  return there.empty() ? attach(node) : there.front();
}

ObjectId Clients::new_id(ClientKey client) {
  const NodeIndex node = world_.node_of(client);
  return {world_.hosts()[node].ref.id.value, std::uint64_t{world_.number_of(client)} << 32 | ++minted_[client]};
}

void Clients::on_death(NodeIndex node) {
  for (const ClientKey client : attached_to(node)) orphan(client);
  judge_.copies_go(node);
}

// Nobody will hear the answers, and the memory is out of sight.
void Clients::orphan(ClientKey client) {
  attached_.erase(std::remove(attached_.begin(), attached_.end(), client), attached_.end());
  for (RequestRecord& request : ledger_.requests)
    if (request.client == client && !request.ended) request.orphaned = request.ended = true;
  std::erase_if(ledger_.held, [&](const auto& entry) { return entry.second.client == client; });
  for (auto it = ledger_.writing.begin(); it != ledger_.writing.end();) {
    PutRecord& put = ledger_.puts[it->second.put];
    if (it->second.client != client) {
      ++it;
      continue;
    }
    if (put.sealed == Time::never()) put.given_up = true;
    it = ledger_.writing.erase(it);
  }
}

// --- requests

RequestNumber Clients::note(Ask kind, ClientKey client, ObjectId id, std::int64_t timeout_ns) {
  RequestRecord& request = ledger_.requests.emplace_back();
  request.kind = kind;
  request.client = client;
  request.node = world_.node_of(client);
  request.id = id;
  request.asked = world_.now();
  if (timeout_ns != kNoTimeout) request.deadline = world_.now() + Duration{timeout_ns};
  return ledger_.requests.size() - 1;
}

PutNumber Clients::note_put(ClientKey client, ObjectId id, std::uint64_t size) {
  const auto number = static_cast<PutNumber>(ledger_.puts.size());
  PutRecord& put = ledger_.puts.emplace_back();
  put.size = size;
  put.node = world_.node_of(client);
  put.began = world_.now();
  if (!id.is_nil()) name_put(number, id);
  return number;
}

void Clients::name_put(PutNumber put, ObjectId id) {
  if (ledger_.puts[put].id == id) return;
  ledger_.puts[put].id = id;
  ledger_.objects[id].puts.push_back(put);
  world_.trace().names().object(id);  // named in order of appearance, traced or not
}

RequestNumber Clients::put(ClientKey client, ObjectId id, std::uint64_t size, std::int64_t timeout_ns) {
  const RequestNumber number = note(Ask::kPut, client, id, timeout_ns);
  const PutNumber put = ledger_.requests[number].put = note_put(client, id, size);
  ledger_.puts[put].sealed = world_.now();
  ledger_.puts[put].commit = number;
  std::string payload(size, '\0');
  fill_contents(put, 0, std::as_writable_bytes(std::span(payload)));
  world_.ask(client, number, ipc::Put{id, {}, timeout_ns}, std::move(payload));
  return number;
}

RequestNumber Clients::create(ClientKey client, ObjectId id, std::uint64_t size, std::int64_t timeout_ns) {
  const RequestNumber number = note(Ask::kCreate, client, id, timeout_ns);
  ledger_.requests[number].put = note_put(client, id, size);
  world_.ask(client, number, ipc::Create{id, size, {}, timeout_ns});
  return number;
}

bool Clients::write(RequestNumber create, std::uint64_t up_to) {
  const auto it = ledger_.writing.find(create);
  if (it == ledger_.writing.end()) return false;
  Writing& writing = it->second;
  up_to = std::min(up_to, writing.size);
  if (up_to <= writing.written) return true;
  const ByteSpan arena = world_.arena(writing.node);
  if (!arena.empty())
    fill_contents(writing.put, writing.written,
                  arena.subspan(writing.offset + writing.written, up_to - writing.written));
  writing.written = up_to;
  world_.ask(writing.client, 0, ipc::Advance{writing.copy, up_to});
  return true;
}

RequestNumber Clients::seal(RequestNumber create, std::int64_t timeout_ns) {
  const auto it = ledger_.writing.find(create);
  if (it == ledger_.writing.end()) return 0;
  write(create, it->second.size);
  const Writing writing = it->second;
  ledger_.writing.erase(it);
  const RequestNumber number = note(Ask::kSeal, writing.client, ledger_.puts[writing.put].id, timeout_ns);
  ledger_.requests[number].put = writing.put;
  ledger_.puts[writing.put].sealed = world_.now();
  ledger_.puts[writing.put].commit = number;
  world_.ask(writing.client, number, ipc::Seal{writing.copy, timeout_ns});
  return number;
}

bool Clients::abort(RequestNumber create) {
  const auto it = ledger_.writing.find(create);
  if (it == ledger_.writing.end()) return false;
  ledger_.puts[it->second.put].given_up = true;
  world_.ask(it->second.client, 0, ipc::Abort{it->second.copy});
  ledger_.writing.erase(it);
  return true;
}

RequestNumber Clients::get(ClientKey client, const ipc::Get& get) {
  const RequestNumber number = note(Ask::kGet, client, get.id, get.timeout_ns);
  ledger_.requests[number].wait_if_lost = get.wait_if_lost;
  ledger_.requests[number].follow = get.follow;
  world_.ask(client, number, get);
  return number;
}

RequestNumber Clients::wait(ClientKey client, std::vector<ObjectId> ids, std::uint32_t count, std::int64_t timeout_ns) {
  const RequestNumber number = note(Ask::kWait, client, {}, timeout_ns);
  ledger_.requests[number].ids = ids;
  ledger_.requests[number].count = count;
  world_.ask(client, number, ipc::Wait{std::move(ids), count, timeout_ns});
  return number;
}

RequestNumber Clients::remove(ClientKey client, ObjectId id, std::int64_t timeout_ns) {
  const RequestNumber number = note(Ask::kRemove, client, id, timeout_ns);
  auto& removes = ledger_.objects[id].removes;
  ledger_.requests[number].remove = removes.size();
  removes.push_back({world_.now()});
  world_.ask(client, number, ipc::Remove{id, timeout_ns});
  return number;
}

RequestNumber Clients::reduce(ClientKey client, const ReduceSpec& spec, std::uint64_t size) {
  const RequestNumber number = note(Ask::kReduce, client, spec.target, kNoTimeout);
  const PutNumber put = ledger_.requests[number].put = note_put(client, spec.target, size);
  PutRecord& record = ledger_.puts[put];
  record.reduce.emplace(ReduceRecord{spec, Time::never(), {}});
  if (spec.timeout_ns != kNoTimeout) record.reduce->deadline = world_.now() + Duration{spec.timeout_ns};
  record.sealed = world_.now();
  record.commit = number;
  world_.ask(client, number, ipc::Reduce{spec});
  return number;
}

RequestNumber Clients::report(ClientKey client, ObjectId target) {
  const RequestNumber number = note(Ask::kReport, client, target, kNoTimeout);
  world_.ask(client, number, ipc::GetReduce{target});
  return number;
}

void Clients::cancel(RequestNumber number) {
  RequestRecord& request = ledger_.requests[number];
  if (request.ended) return;
  request.cancelled = true;
  world_.ask(request.client, 0, ipc::Cancel{number});
}

void Clients::release(HeldNumber number) {
  const auto it = ledger_.held.find(number);
  if (it == ledger_.held.end()) return;
  judge_.look_again(it->second);
  RequestRecord& request = ledger_.requests[it->second.request];
  if (request.held == number) request.held = 0;
  world_.ask(it->second.client, 0, ipc::Release{{it->second.copy}});
  ledger_.held.erase(it);
}

void Clients::release_all() {
  while (!ledger_.held.empty()) release(ledger_.held.begin()->first);
}

// --- replies

void Clients::on_reply(ClientKey client, std::uint64_t number, const ipc::Reply& reply) {
  if (number == 0 || number >= ledger_.requests.size() || ledger_.requests[number].client != client)
    return world_.violate("one-answer", "an answer to request " + std::to_string(number) + ", which client " +
                                            std::to_string(client) + " has not made");
  if (ledger_.requests[number].ended)
    return world_.violate("one-answer", "a second answer to request " + std::to_string(number));
  std::visit([&](const auto& message) { replied(number, message); }, reply);
}

void Clients::end(RequestNumber number, Code code, const std::string& message) {
  RequestRecord& request = ledger_.requests[number];
  request.ended = true;
  request.ended_at = world_.now();
  request.code = code;
  request.message = message;
}

void Clients::replied(RequestNumber number, const ipc::Failed& failed) {
  const RequestRecord& request = ledger_.requests[number];
  end(number, failed.code, failed.message);
  if (request.put != 0) {
    PutRecord& put = ledger_.puts[request.put];
    put.refused = failed.code == Code::kExists || failed.code == Code::kDeleted;
    if (request.kind == Ask::kCreate) put.given_up = true;
  }
  judge_.request_failed(number);
}

void Clients::replied(RequestNumber number, const ipc::PutDone& done) {
  const RequestRecord& request = ledger_.requests[number];
  if (request.kind != Ask::kPut && request.kind != Ask::kSeal) return judge_.wrong_answer(number, "PutDone");
  if (!request.id.is_nil() && request.id != done.id) return judge_.wrong_answer(number, "PutDone of another id");
  end(number, Code::kOk, {});
  name_put(request.put, done.id);
  ledger_.requests[number].id = done.id;
  ledger_.puts[request.put].done = world_.now();
  judge_.put_done(request.put);
}

void Clients::replied(RequestNumber number, const ipc::UseCreate&) {
  const RequestRecord& request = ledger_.requests[number];
  if (request.kind != Ask::kPut) return judge_.wrong_answer(number, "UseCreate");
  end(number, Code::kOk, "use create");
  ledger_.requests[number].use_create = true;
  ledger_.puts[request.put].sealed = Time::never();
  ledger_.puts[request.put].given_up = true;
}

void Clients::replied(RequestNumber number, const ipc::Created& created) {
  const RequestRecord& request = ledger_.requests[number];
  if (request.kind != Ask::kCreate) return judge_.wrong_answer(number, "Created");
  const std::uint64_t size = ledger_.puts[request.put].size;
  if (created.size != size || (!request.id.is_nil() && request.id != created.id))
    return judge_.wrong_answer(number, "Created with another size or id");
  if (created.offset + size > world_.capacity(request.node))
    return judge_.wrong_answer(number, "Created outside the arena");
  end(number, Code::kOk, {});
  name_put(request.put, created.id);
  ledger_.requests[number].id = created.id;
  ledger_.writing[number] = {request.client, request.node, request.put, created.copy, created.offset, size, 0};
}

void Clients::replied(RequestNumber number, const ipc::View& view) {
  RequestRecord& request = ledger_.requests[number];
  if (request.kind != Ask::kGet) return judge_.wrong_answer(number, "View");
  judge_.follow_ended(number, view.version);
  end(number, Code::kOk, {});
  const HeldNumber held_number = ledger_.next_held++;
  Held& held = ledger_.held[held_number];
  held = {request.client, request.node, number,    request.id, view.copy,
          view.version,   view.offset,  view.size, view.size,  {}};
  request.held = held_number;
  request.got = judge_.view_shown(number, held);
}

void Clients::replied(RequestNumber number, const ipc::Opened& opened) {
  RequestRecord& request = ledger_.requests[number];
  if (request.kind != Ask::kGet || !request.follow) return judge_.wrong_answer(number, "Opened");
  judge_.follow_began(number);
  request.following = {opened.copy, opened.version};
  const HeldNumber held_number = ledger_.next_held++;
  Held& held = ledger_.held[held_number];
  held = {request.client, request.node,  number,      request.id,   opened.copy,
          opened.version, opened.offset, opened.size, opened.bytes, {}};
  request.held = held_number;
  judge_.growth_shown(held);
}

void Clients::replied(RequestNumber number, const ipc::Grown& grown) {
  const RequestRecord& request = ledger_.requests[number];
  if (request.kind != Ask::kGet || !request.follow) return judge_.wrong_answer(number, "Grown");
  const auto it = ledger_.held.find(request.held);
  if (it == ledger_.held.end()) return;  // already given back
  if (grown.bytes < it->second.shown || grown.bytes > it->second.size)
    return judge_.wrong_answer(number, "Grown to fewer bytes than before, or to more than there are");
  it->second.shown = grown.bytes;
  judge_.growth_shown(it->second);
}

void Clients::replied(RequestNumber number, const ipc::Reset&) {
  RequestRecord& request = ledger_.requests[number];
  if (request.kind != Ask::kGet || !request.follow) return judge_.wrong_answer(number, "Reset");
  request.held = 0;  // what was shown stays as it is until it is released
  request.following.reset();
}

void Clients::replied(RequestNumber number, const ipc::WaitDone& done) {
  if (ledger_.requests[number].kind != Ask::kWait) return judge_.wrong_answer(number, "WaitDone");
  end(number, Code::kOk, {});
  ledger_.requests[number].ready = done.ready;
  judge_.wait_done(number);
}

void Clients::replied(RequestNumber number, const ipc::Removed& removed) {
  const RequestRecord& request = ledger_.requests[number];
  if (request.kind != Ask::kRemove) return judge_.wrong_answer(number, "Removed");
  end(number, Code::kOk, {});
  RemoveRecord& remove = ledger_.objects[request.id].removes[request.remove];
  remove.done = world_.now();
  remove.existed = removed.existed;
}

void Clients::replied(RequestNumber number, const ipc::Reducing& reducing) {
  const RequestRecord& request = ledger_.requests[number];
  if (request.kind != Ask::kReduce || reducing.target != request.id)
    return judge_.wrong_answer(number, "Reducing of another target");
  end(number, Code::kOk, {});
}

void Clients::replied(RequestNumber number, const ipc::Reported& reduction) {
  if (ledger_.requests[number].kind != Ask::kReport) return judge_.wrong_answer(number, "Reduction");
  end(number, Code::kOk, {});
  ledger_.requests[number].report = reduction.report;
  judge_.reported(number);
}

template <typename Other>
void Clients::replied(RequestNumber number, const Other&) {
  judge_.wrong_answer(number, "something else");
}

}  // namespace hoplite::sim
