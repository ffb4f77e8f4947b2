#include "sim/workload.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace hoplite::sim {

Workload::Workload(World& world, Clients& clients, Ledger& ledger, Judge& judge, const RunPlan& plan, Random& random)
    : world_(world), clients_(clients), ledger_(ledger), judge_(judge), plan_(plan), random_(random) {
  for (std::uint32_t i = 0; i < plan.names; ++i) {
    const std::string name(1, static_cast<char>('a' + i));
    names_.push_back(ObjectId::named(name));
    world_.trace().names().add_object(names_.back(), name);
  }
}

void Workload::operate() {
  const ClientKey client = some_client();
  if (client == 0) return;
  std::uint64_t dice = random_.below(100);
  const auto below = [&](std::uint64_t share) {
    const bool mine = dice < share;
    dice -= mine ? 0 : share;
    return mine;
  };
  if (plan_.reduces && random_.chance(plan_.hot ? 0.2 : 0.1)) return reduce(client);
  if (!sources_.empty() && random_.chance(0.35)) return put_source(client);
  if (plan_.hot && plan_.reduces && !ledger_.writing.empty() && random_.chance(0.4)) return seal_one();
  if (plan_.hot && random_.chance(0.2)) return broadcast(client);
  if (plan_.tight && random_.chance(0.2)) return release();
  if (below(20)) return put(client);
  if (below(10)) return create(client);
  if (below(15)) return go_on_writing();
  if (below(26)) return get(client);
  if (below(10)) return release();
  if (below(5)) return wait(client);
  if (below(5)) return remove(client);
  if (below(3)) return cancel();
  if (below(1) && plan_.hazard != Hazard::kNone) return clients_.kill(client);
  if (below(1)) return clients_.disconnect(client);
  if (below(2)) return outlive();
  return look();
}

// Attaches one where nobody is, now and then.
ClientKey Workload::some_client() {
  const auto node = static_cast<NodeIndex>(random_.below(world_.size()));
  if (!world_.running(node)) return 0;
  const std::vector<ClientKey> there = clients_.attached_to(node);
  if (there.empty() || (there.size() < 3 && random_.chance(0.1))) return clients_.attach(node);
  return there[random_.below(there.size())];
}

ObjectId Workload::some_id(ClientKey client) {
  const double dice = random_.uniform();
  if (dice < 0.5) return names_[random_.below(names_.size())];
  if (dice < 0.6) {
    minted_.push_back(clients_.new_id(client));
    return minted_.back();
  }
  if (dice < 0.75 && !minted_.empty()) return minted_[random_.below(minted_.size())];
  if (ledger_.objects.empty()) return names_.front();
  return one_of(ledger_.objects)->first;
}

std::uint64_t Workload::some_size() {
  const double dice = random_.uniform();
  const std::uint64_t edge = plan_.limits.inline_bytes;
  if (dice < 0.08) return 0;
  if ((plan_.hot || plan_.tight) && random_.chance(0.6)) return random_.between(plan_.max_size / 3, plan_.max_size);
  if (dice < 0.3 && edge <= plan_.max_size) return edge - std::min<std::uint64_t>(edge, 4) + random_.below(9);
  if (dice < 0.7) return random_.between(1, std::min<std::uint64_t>(plan_.max_size, 1500));
  if (dice < 0.99) return random_.between(1, plan_.max_size);
  return plan_.capacity + 1 + random_.below(1000);  // can never fit
}

std::int64_t Workload::some_timeout() {
  if (random_.chance(0.3)) return kNoTimeout;
  if (random_.chance(0.1)) return 0;
  return static_cast<std::int64_t>(static_cast<double>(plan_.beat.ns) * 0.05 * std::pow(600.0, random_.uniform()));
}

void Workload::put(ClientKey client) {
  const std::uint64_t size = std::min(some_size(), plan_.limits.inline_bytes);
  const ObjectId id = random_.chance(0.3) ? ObjectId{} : some_id(client);
  clients_.put(client, id, size, some_timeout());
}

void Workload::create(ClientKey client) {
  const ObjectId id = random_.chance(0.3) ? ObjectId{} : some_id(client);
  clients_.create(client, id, some_size(), some_timeout());
}

void Workload::go_on_writing() {
  if (ledger_.writing.empty()) return;
  const auto it = one_of(ledger_.writing);
  const RequestNumber create = it->first;
  const double dice = random_.uniform();
  if (dice < 0.45) {
    clients_.write(create, it->second.written + 1 + random_.below(it->second.size - it->second.written + 1));
  } else if (dice < 0.93) {
    clients_.seal(create, some_timeout());
  } else {
    clients_.abort(create);
  }
}

void Workload::seal_one() { clients_.seal(one_of(ledger_.writing)->first, kNoTimeout); }

void Workload::finish_writing() {
  while (!ledger_.writing.empty()) {
    const RequestNumber create = ledger_.writing.begin()->first;
    if (random_.chance(0.7)) clients_.seal(create, kNoTimeout);
    else clients_.abort(create);
  }
}

ipc::Get Workload::some_get(double follow) {
  ipc::Get get;
  get.timeout_ns = some_timeout();
  get.wait_if_lost = random_.chance(0.3);
  get.follow = random_.chance(follow);
  get.priority = static_cast<Priority>(random_.below(static_cast<std::uint64_t>(last_enumerator(Priority{})) + 1));
  return get;
}

void Workload::get(ClientKey client) {
  ipc::Get get = some_get(0.3);
  get.id = some_id(client);
  clients_.get(client, get);
}

void Workload::broadcast(ClientKey client) {
  std::vector<ObjectId> begun;  // somebody puts them, or has
  for (const auto& [object, record] : ledger_.objects)
    if (!record.puts.empty() && record.removes.empty()) begun.push_back(object);
  const ObjectId id = begun.empty() ? some_id(client) : begun[random_.below(begun.size())];
  for (NodeIndex node = 0; node < world_.size(); ++node) {
    if (!world_.running(node) || random_.chance(0.15)) continue;
    ipc::Get get = some_get(0.3);
    get.id = id;
    clients_.get(clients_.on(node), get);
  }
}

void Workload::wait(ClientKey client) {
  std::vector<ObjectId> ids;
  const std::uint64_t count = random_.between(1, 4);
  for (std::uint64_t i = 0; i < count; ++i) {
    const ObjectId id = some_id(client);
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  }
  const auto wanted = static_cast<std::uint32_t>(random_.between(1, ids.size()));
  clients_.wait(client, std::move(ids), wanted, some_timeout());
}

void Workload::remove(ClientKey client) { clients_.remove(client, some_id(client), some_timeout()); }

void Workload::reduce(ClientKey client) {
  ReduceSpec spec;
  spec.type = random_.chance(0.5) ? DType::kU64 : DType::kU8;
  spec.op = random_.chance(0.7) ? ReduceOp::kSum : ReduceOp::kMax;
  std::uint64_t size = std::min(some_size(), plan_.max_size);
  if (spec.type == DType::kU64) size -= size % 8;
  const PutNumber nested = reduces_.empty() || random_.chance(0.75) ? 0 : reduces_[random_.below(reduces_.size())];
  if (nested != 0) {
    const PutRecord& inner = ledger_.puts[nested];
    spec.op = inner.reduce->op;
    spec.type = inner.reduce->type;
    size = inner.size;
    spec.sources.push_back(inner.id);
  }
  const std::uint64_t count = random_.between(nested != 0 ? 0 : 1, plan_.hot ? 6 : 4);
  for (std::uint64_t i = 0; i < count; ++i) {
    const ObjectId id = clients_.new_id(client);
    spec.sources.push_back(id);
    if (random_.chance(0.92)) sources_.push_back({id, size});
  }
  spec.count = static_cast<std::uint32_t>(random_.between(1, spec.sources.size()));
  // In hot runs all sources are there at once, so that faults hit what is being combined.
  const std::uint64_t early = plan_.hot ? spec.sources.size() : random_.below(spec.sources.size() + 1);
  for (std::uint64_t i = 0; i < early; ++i) put_source(some_client());
  spec.target = random_.chance(0.3) ? some_id(client) : clients_.new_id(client);
  if (std::ranges::count(spec.sources, spec.target) > 0) return;
  // All reduces that may ever be seen under one id, or be made of it, are of one kind (sim/reduced.h).
  for (const PutRecord& put : ledger_.puts) {
    if (!put.reduce || (put.reduce->op == spec.op && put.reduce->type == spec.type)) continue;
    if (put.id == spec.target || std::ranges::count(put.reduce->sources, spec.target) > 0) return;
  }
  if (random_.chance(0.3)) spec.spread = random_.chance(0.7) ? Spread::kSlices : Spread::kByCost;
  spec.wait_if_lost = random_.chance(0.5);
  spec.timeout_ns = random_.chance(0.8) ? kNoTimeout : some_timeout();
  const RequestNumber asked = clients_.reduce(client, spec, size);
  reduces_.push_back(ledger_.requests[asked].put);
  if (!random_.chance(0.7)) return;
  ipc::Get get = some_get(0.4);
  get.id = spec.target;
  clients_.get(client, get);
}

void Workload::put_source(ClientKey client) {
  if (client == 0 || sources_.empty()) return;
  const std::size_t index = random_.below(sources_.size());
  const auto [id, size] = sources_[index];
  sources_.erase(sources_.begin() + static_cast<std::ptrdiff_t>(index));
  if (size <= plan_.limits.inline_bytes) clients_.put(client, id, size, kNoTimeout);
  else clients_.create(client, id, size, kNoTimeout);
}

void Workload::cancel() {
  const RequestNumber number = random_.between(1, ledger_.requests.size());
  if (number < ledger_.requests.size()) clients_.cancel(number);
}

void Workload::release() {
  if (ledger_.held.empty()) return;
  clients_.release(one_of(ledger_.held)->first);
}

// What processes do whose connections have ended.
void Workload::outlive() {
  look();
  for (const Writing& kept : ledger_.kept) clients_.write_on(kept, static_cast<std::uint8_t>(random_.next()));
  if (clients_.any_disconnected() && random_.chance(0.3)) clients_.end_one(random_);
}

void Workload::look() {
  for (const auto& [number, held] : ledger_.held) judge_.look_again(held);
}

}  // namespace hoplite::sim
