#include "core/agent/clients.h"

#include <utility>

#include "base/check.h"

namespace hoplite {

// --- requests ------------------------------------------------------------------------------------------------------------

void Clients::begin(const RequestKey& key, Kind kind, const ObjectId& id, Time deadline, std::uint64_t errand) {
  const auto [it, fresh] = clients_[key.client].requests.try_emplace(key.request);
  CHECK(fresh, key.client, key.request);
  it->second = {kind, id, errand, {}};
  timers_.set(it->second.deadline, deadline, timer::RequestDeadline{key.client, key.request});
}

const Clients::Pending* Clients::find(const RequestKey& key) const {
  const auto client = clients_.find(key.client);
  if (client == clients_.end()) return nullptr;
  const auto it = client->second.requests.find(key.request);
  return it == client->second.requests.end() ? nullptr : &it->second;
}

void Clients::say(const RequestKey& key, ipc::Reply reply) {
  out_.emit(effect::Reply{key.client, key.request, std::move(reply)});
}

// A request that is answered at once never began.
void Clients::answer(const RequestKey& key, ipc::Reply reply) {
  say(key, std::move(reply));
  const auto client = clients_.find(key.client);
  if (client == clients_.end()) return;
  const auto it = client->second.requests.find(key.request);
  if (it == client->second.requests.end()) return;
  timers_.cancel(it->second.deadline);
  client->second.requests.erase(it);
}

void Clients::fail(const RequestKey& key, Code code, std::string why) {
  answer(key, ipc::Failed{code, std::move(why)});
}

std::vector<RequestKey> Clients::pending() const {
  std::vector<RequestKey> all;
  for (const auto& [client, state] : clients_)
    for (const auto& [request, what] : state.requests) all.push_back({client, request});
  return all;
}

std::vector<RequestKey> Clients::pending(ClientKey client) const {
  std::vector<RequestKey> all;
  if (const auto it = clients_.find(client); it != clients_.end())
    for (const auto& [request, what] : it->second.requests) all.push_back({client, request});
  return all;
}

std::size_t Clients::pending_count() const {
  std::size_t count = 0;
  for (const auto& [client, state] : clients_) count += state.requests.size();
  return count;
}

// --- views ---------------------------------------------------------------------------------------------------------------

// Before the first use of a copy is noted, and after the last one is gone.
void Clients::took(Client& client, const CopyUse& use) {
  if (client.views.contains(use.key()) || client.writing.contains(use.key())) return;
  client.holding.bytes += use.copy().extent.size;
}
void Clients::let_go(Client& client, const CopyUse& use) {
  if (client.views.contains(use.key()) || client.writing.contains(use.key())) return;
  client.holding.bytes -= use.copy().extent.size;
}

void Clients::hold_view(ClientKey client, CopyUse view) {
  Client& holder = clients_[client];
  CHECK(holder.attached, client, view.key());
  took(holder, view);
  ++holder.holding.views;
  holder.views[view.key()].push_back(std::move(view));
}

void Clients::release(ClientKey client, CopyKey copy) {
  const auto it = clients_.find(client);
  if (it == clients_.end()) return;
  const auto views = it->second.views.find(copy);
  if (views == it->second.views.end()) {
    if (!it->second.attached && it->second.writing.contains(copy)) end_writing(client, copy);
    return;
  }
  const CopyUse released = std::move(views->second.back());
  views->second.pop_back();
  --it->second.holding.views;
  if (!views->second.empty()) return;
  it->second.views.erase(views);
  let_go(it->second, released);
}

// --- writing -------------------------------------------------------------------------------------------------------------

void Clients::begin_writing(ClientKey client, CopyUse written) {
  Client& writer = clients_[client];
  const CopyKey copy = written.key();
  took(writer, written);
  const bool fresh = writer.writing.try_emplace(copy, Writing{std::move(written), Code::kOk}).second;
  CHECK(fresh && writer.attached, client, copy);
}

Copy* Clients::written_by(ClientKey client, CopyKey copy) const {
  const auto it = clients_.find(client);
  if (it == clients_.end()) return nullptr;
  const auto writing = it->second.writing.find(copy);
  return writing == it->second.writing.end() ? nullptr : &writing->second.use.copy();
}

void Clients::refuse_writing(ClientKey client, CopyKey copy, Code code) {
  CHECK(code != Code::kOk, client, copy);
  const auto it = clients_.find(client);
  if (it == clients_.end()) return;
  const auto writing = it->second.writing.find(copy);
  if (writing != it->second.writing.end()) writing->second.refused = code;
}

Code Clients::end_writing(ClientKey client, CopyKey copy) {
  Client& writer = clients_.at(client);
  const auto it = writer.writing.find(copy);
  CHECK(it != writer.writing.end(), client, copy);
  const Writing ended = std::move(it->second);
  writer.writing.erase(it);
  let_go(writer, ended.use);
  return ended.refused;
}

std::vector<CopyKey> Clients::writing(ClientKey client) const {
  std::vector<CopyKey> copies;
  if (const auto it = clients_.find(client); it != clients_.end())
    for (const auto& [copy, writing] : it->second.writing) copies.push_back(copy);
  return copies;
}

// --- the end -------------------------------------------------------------------------------------------------------------

bool Clients::is_attached(ClientKey client) const {
  const auto it = clients_.find(client);
  return it != clients_.end() && it->second.attached;
}

void Clients::detach(ClientKey client) {
  const auto it = clients_.find(client);
  if (it == clients_.end()) return;
  for (auto& [request, pending] : it->second.requests) timers_.cancel(pending.deadline);
  it->second.requests.clear();
  it->second.attached = false;
}

void Clients::forget(ClientKey client) {
  CHECK(!is_attached(client), client);
  clients_.erase(client);
}

std::vector<ClientHolding> Clients::holdings() const {
  std::vector<ClientHolding> all;
  for (const auto& [client, state] : clients_) {
    if (state.views.empty() && state.writing.empty()) continue;
    all.push_back(state.holding);
    all.back().client = client;
  }
  return all;
}

void Clients::check_invariants() const {
  for (const auto& [client, state] : clients_) {
    CHECK(state.attached || state.requests.empty(), client, state.requests.size());
    std::uint64_t bytes = 0;
    std::uint64_t views_held = 0;
    for (const auto& [copy, views] : state.views) {
      CHECK(!views.empty() && views.front().key() == copy, client, copy);
      views_held += views.size();
      bytes += views.front().copy().extent.size;
    }
    for (const auto& [copy, writing] : state.writing) {
      CHECK(writing.use.key() == copy, client, copy);
      if (!state.views.contains(copy)) bytes += writing.use.copy().extent.size;
    }
    CHECK(bytes == state.holding.bytes && views_held == state.holding.views, client, bytes, state.holding.bytes);
  }
}

}  // namespace hoplite
