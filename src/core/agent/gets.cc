#include "core/agent/gets.h"

#include <algorithm>

#include "base/check.h"

namespace hoplite {

void Gets::add(const ObjectId& id, const Get& get) {
  CHECK(records_.contains(id) && get.shown == 0, id, get.shown);
  gets_[id].push_back(get);
  records_.touch(id);
}

void Gets::stop(const ObjectId& id, const RequestKey& key) {
  auto& gets = gets_.at(id);
  const auto stopped = std::erase_if(gets, [&](const Get& get) { return get.key == key; });
  CHECK(stopped == 1, key.client, key.request, stopped);
  if (gets.empty()) gets_.erase(id);
  records_.touch(id);
}

bool Gets::prioritize(const ObjectId& id, ClientKey client, Priority priority) {
  const auto it = gets_.find(id);
  if (it == gets_.end()) return false;
  bool any = false;
  for (Get& get : it->second) {
    if (get.key.client != client) continue;
    get.priority = priority;
    any = true;
  }
  records_.touch(id);
  return any;
}

Priority Gets::highest(const ObjectId& id) const {
  Priority highest = Priority::kLow;
  if (const auto it = gets_.find(id); it != gets_.end())
    for (const Get& get : it->second) highest = std::max(highest, get.priority);
  return highest;
}

void Gets::answer(const RequestKey& key, Copy& copy) {
  CHECK(copy.is_complete(), copy.id, copy.key);
  clients_.hold_view(key.client, copies_.view(copy));
  clients_.answer(key, ipc::View{copy.key, copy.version, copy.extent.offset, copy.extent.size, copy.meta});
}

void Gets::fulfil(const ObjectId& id) {
  Copy* copy = records_.copy_of(id);
  const auto it = gets_.find(id);
  if (copy == nullptr || it == gets_.end()) return;
  if (copy->is_complete()) {
    const auto waiting = gets_.extract(it);
    for (const Get& get : waiting.mapped()) answer(get.key, *copy);
    records_.touch(id);
    return;
  }
  for (Get& get : it->second)
    if (get.follow && get.shown != copy->key) show(get, *copy);
}

void Gets::show(Get& get, Copy& copy) {
  CHECK(get.shown == 0, get.key.client, get.key.request, get.shown);
  get.shown = copy.key;
  clients_.hold_view(get.key.client, copies_.view(copy));
  copies_.follow(copy);
  clients_.say(get.key, ipc::Opened{copy.key, copy.version, copy.extent.offset, copy.extent.size, copy.meta,
                                    copies_.front_bytes(copy)});
}

void Gets::grown(const ObjectId& id) {
  const Copy* copy = records_.copy_of(id);
  const auto it = gets_.find(id);
  if (copy == nullptr || it == gets_.end()) return;
  for (const Get& get : it->second)
    if (get.shown == copy->key) clients_.say(get.key, ipc::Grown{copies_.front_bytes(*copy)});
}

void Gets::reset(const ObjectId& id) {
  const auto it = gets_.find(id);
  if (it == gets_.end()) return;
  for (Get& get : it->second)
    if (std::exchange(get.shown, 0) != 0) clients_.say(get.key, ipc::Reset{});
}

void Gets::fail(const ObjectId& id, Code code, const std::string& why, bool some_wait_on) {
  records_.touch(id);
  const auto it = gets_.find(id);
  if (it == gets_.end()) return;
  std::vector<Get> waiting_on;
  for (const Get& get : it->second) {
    if (some_wait_on && get.wait_if_lost) waiting_on.push_back(get);
    else clients_.fail(get.key, code, why);
  }
  if (waiting_on.empty()) gets_.erase(it);
  else it->second = std::move(waiting_on);
}

void Gets::check_invariants() const {
  for (const auto& [id, gets] : gets_) {
    const Record& record = records_.at(id);
    const Copy* copy = records_.copy_of(record);
    CHECK(!gets.empty() && (copy == nullptr || !copy->is_complete()), id, gets.size());
    for (const Get& get : gets) {
      CHECK(clients_.find(get.key) != nullptr, id, get.key.client, get.key.request);
      CHECK(get.shown == 0 || (get.follow && get.shown == record.copy), id, get.shown, record.copy);
    }
  }
}

}  // namespace hoplite
