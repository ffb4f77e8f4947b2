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
  world_.end_lease(client);
  orphan(client);
}

void Clients::disconnect(ClientKey client) {
  world_.detach(client);
  end_requests(client);
  for (auto it = ledger_.writing.begin(); it != ledger_.writing.end();) {
    if (it->second.client == client) ledger_.kept.push_back(it->second), it = ledger_.writing.erase(it);
    else ++it;
  }
  std::erase(attached_, client);
  disconnected_.push_back(client);
}

void Clients::end_one(Random& random) {
  const ClientKey client = disconnected_[random.below(disconnected_.size())];
  for (const auto& [number, held] : ledger_.held)
    if (held.client == client) judge_.look_again(held);
  world_.end_lease(client);
  orphan(client);
}

void Clients::end_disconnected() {
  while (!disconnected_.empty()) {
    const ClientKey client = disconnected_.back();
    world_.end_lease(client);
    orphan(client);
  }
}

// What it has handed over it leaves alone, as it must; the rest is its own.
void Clients::write_on(const Writing& kept, std::uint8_t fill) {
  const ByteSpan arena = world_.arena(kept.node);
  if (arena.empty()) return;
  const ByteSpan rest = arena.subspan(kept.offset, kept.size).subspan(kept.written);
  std::ranges::fill(rest, std::byte{fill});
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
  for (const ClientKey client : std::vector<ClientKey>(disconnected_))
    if (world_.node_of(client) == node) orphan(client);
  judge_.copies_go(node);
  failovers_.node_died(node);
}

void Clients::on_transfer(const Transfer& transfer) {
  judge_.transfer_began(transfer);
  failovers_.transfer_began(transfer);
}

void Clients::on_step(NodeIndex node) {
  judge_.watch_unpinned();
  failovers_.look_at(node);
}

// Nobody will hear the answers, and what was not sealed never will be.
void Clients::end_requests(ClientKey client) {
  for (RequestRecord& request : ledger_.requests)
    if (request.client == client && !request.ended) request.orphaned = request.ended = true;
  for (const auto& [create, writing] : ledger_.writing) {
    PutRecord& put = ledger_.puts[writing.put];
    if (writing.client == client && put.sealed == Time::never()) put.given_up = true;
  }
}

// The memory is out of sight, too.
void Clients::orphan(ClientKey client) {
  std::erase(attached_, client);
  std::erase(disconnected_, client);
  end_requests(client);
  std::erase_if(ledger_.held, [&](const auto& entry) { return entry.second.client == client; });
  std::erase_if(ledger_.writing, [&](const auto& entry) { return entry.second.client == client; });
  std::erase_if(ledger_.kept, [&](const Writing& writing) { return writing.client == client; });
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
  const ClientKey client = it->second.client;
  if (world_.attached(client)) world_.ask(client, 0, ipc::Release{{it->second.copy}});
  else world_.give_back(client, it->second.copy);
  ledger_.held.erase(it);
}

void Clients::release_all() {
  while (!ledger_.held.empty()) release(ledger_.held.begin()->first);
}

// --- replies

// What one reply does to the ledger, one function for each kind.
struct Clients::Answer {
  World& world;
  Ledger& ledger;
  Judge& judge;
  Clients& clients;
  RequestNumber number;
  RequestRecord& request;

  void end(Code code, const std::string& message = {}) const {
    request.ended = true;
    request.ended_at = world.now();
    request.code = code;
    request.message = message;
  }
  // False, and that is a violation, if the reply does not belong to the request.
  bool fits(bool it_does, const char* what) const {
    if (!it_does) judge.wrong_answer(number, what);
    return it_does;
  }
  bool asked_for(const ObjectId& id) const { return request.id.is_nil() || request.id == id; }
  Held& hold(CopyKey copy, Version version, std::uint64_t offset, std::uint64_t size, std::uint64_t shown) const {
    request.held = ledger.next_held++;
    Held& held = ledger.held[request.held];
    held = {request.client, request.node, number, request.id, copy, version, offset, size, shown, {}};
    return held;
  }

  void operator()(const ipc::Failed& failed) const {
    end(failed.code, failed.message);
    if (request.put != 0) {
      PutRecord& put = ledger.puts[request.put];
      put.refused = failed.code == Code::kExists || failed.code == Code::kDeleted;
      if (request.kind == Ask::kCreate) put.given_up = true;
    }
    judge.request_failed(number);
  }
  void operator()(const ipc::PutDone& done) const {
    if (!fits(request.kind == Ask::kPut || request.kind == Ask::kSeal, "PutDone")) return;
    if (!fits(asked_for(done.id), "PutDone of another id")) return;
    end(Code::kOk);
    clients.name_put(request.put, done.id);
    request.id = done.id;
    ledger.puts[request.put].done = world.now();
    judge.put_done(request.put);
  }
  void operator()(const ipc::UseCreate&) const {
    if (!fits(request.kind == Ask::kPut, "UseCreate")) return;
    end(Code::kOk, "use create");
    request.use_create = true;
    ledger.puts[request.put].sealed = Time::never();
    ledger.puts[request.put].given_up = true;
  }
  void operator()(const ipc::Created& created) const {
    if (!fits(request.kind == Ask::kCreate, "Created")) return;
    const std::uint64_t size = ledger.puts[request.put].size;
    if (!fits(created.size == size && asked_for(created.id), "Created with another size or id")) return;
    if (!fits(created.offset + size <= world.capacity(request.node), "Created outside the arena")) return;
    end(Code::kOk);
    clients.name_put(request.put, created.id);
    request.id = created.id;
    ledger.writing[number] = {request.client, request.node, request.put, created.copy, created.offset, size, 0};
  }
  void operator()(const ipc::View& view) const {
    if (!fits(request.kind == Ask::kGet, "View")) return;
    judge.follow_ended(number, view.version);
    end(Code::kOk);
    request.got = judge.view_shown(number, hold(view.copy, view.version, view.offset, view.size, view.size));
  }
  void operator()(const ipc::Opened& opened) const {
    if (!fits(request.kind == Ask::kGet && request.follow, "Opened")) return;
    judge.follow_began(number);
    request.following = {opened.copy, opened.version};
    judge.growth_shown(hold(opened.copy, opened.version, opened.offset, opened.size, opened.bytes));
  }
  void operator()(const ipc::Grown& grown) const {
    if (!fits(request.kind == Ask::kGet && request.follow, "Grown")) return;
    const auto it = ledger.held.find(request.held);
    if (it == ledger.held.end()) return;  // already given back
    const bool sane = grown.bytes >= it->second.shown && grown.bytes <= it->second.size;
    if (!fits(sane, "Grown to fewer bytes than before, or to more than there are")) return;
    it->second.shown = grown.bytes;
    judge.growth_shown(it->second);
  }
  void operator()(const ipc::Reset&) const {
    if (!fits(request.kind == Ask::kGet && request.follow, "Reset")) return;
    request.held = 0;  // what was shown stays as it is until it is released
    request.following.reset();
  }
  void operator()(const ipc::WaitDone& done) const {
    if (!fits(request.kind == Ask::kWait, "WaitDone")) return;
    end(Code::kOk);
    request.ready = done.ready;
    request.gone = done.gone;
    judge.wait_done(number);
  }
  void operator()(const ipc::Removed& removed) const {
    if (!fits(request.kind == Ask::kRemove, "Removed")) return;
    end(Code::kOk);
    RemoveRecord& remove = ledger.objects[request.id].removes[request.remove];
    remove.done = world.now();
    remove.existed = removed.existed;
  }
  void operator()(const ipc::Reducing& reducing) const {
    if (fits(request.kind == Ask::kReduce && reducing.target == request.id, "Reducing of another target"))
      end(Code::kOk);
  }
  void operator()(const ipc::Reported& reduction) const {
    if (!fits(request.kind == Ask::kReport, "Reported")) return;
    end(Code::kOk);
    request.report = reduction.report;
    judge.reported(number);
  }
  void operator()(const auto&) const { fits(false, "something else"); }
};

void Clients::on_reply(ClientKey client, std::uint64_t number, const ipc::Reply& reply) {
  if (number == 0 || number >= ledger_.requests.size() || ledger_.requests[number].client != client)
    return world_.violate("one-answer", "an answer to request " + std::to_string(number) + ", which client " +
                                            std::to_string(client) + " has not made");
  if (ledger_.requests[number].ended)
    return world_.violate("one-answer", "a second answer to request " + std::to_string(number));
  std::visit(Answer{world_, ledger_, judge_, *this, number, ledger_.requests[number]}, reply);
}

}  // namespace hoplite::sim
