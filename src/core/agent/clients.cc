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

void Clients::hold_view(ClientKey client, CopyUse view) {
  const CopyKey copy = view.key();
  clients_[client].views[copy].push_back(std::move(view));
}

void Clients::release_view(ClientKey client, CopyKey copy) {
  const auto it = clients_.find(client);
  if (it == clients_.end()) return;
  const auto view = it->second.views.find(copy);
  if (view == it->second.views.end()) return;
  view->second.pop_back();
  if (view->second.empty()) it->second.views.erase(view);
}

// --- writing -------------------------------------------------------------------------------------------------------------

void Clients::begin_writing(ClientKey client, CopyUse written) {
  const CopyKey copy = written.key();
  const bool fresh = clients_[client].writing.try_emplace(copy, Writing{std::move(written), Code::kOk}).second;
  CHECK(fresh, client, copy);
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
  auto& writing = clients_.at(client).writing;
  const auto it = writing.find(copy);
  CHECK(it != writing.end(), client, copy);
  const Code refused = it->second.refused;
  writing.erase(it);
  return refused;
}

std::vector<CopyKey> Clients::writing(ClientKey client) const {
  std::vector<CopyKey> copies;
  if (const auto it = clients_.find(client); it != clients_.end())
    for (const auto& [copy, writing] : it->second.writing) copies.push_back(copy);
  return copies;
}

void Clients::forget(ClientKey client) {
  const auto it = clients_.find(client);
  if (it == clients_.end()) return;
  for (auto& [request, pending] : it->second.requests) timers_.cancel(pending.deadline);
  clients_.erase(it);
}

void Clients::check_invariants() const {
  for (const auto& [client, state] : clients_) {
    for (const auto& [copy, views] : state.views) CHECK(!views.empty() && views.front().key() == copy, client, copy);
    for (const auto& [copy, writing] : state.writing) CHECK(writing.use.key() == copy, client, copy);
  }
}

}  // namespace hoplite
