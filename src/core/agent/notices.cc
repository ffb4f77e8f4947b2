#include "core/agent/notices.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace hoplite {

// --- clients' waits ------------------------------------------------------------------------------------------------------

void Notices::wait(const RequestKey& key, const std::set<ObjectId>& ids, std::size_t count) {
  Wait wait{{}, {}, {}, std::min(count, ids.size())};
  for (const ObjectId& id : ids) {
    const Copy* copy = records_.copy_of(id);
    if (copy != nullptr && copy->is_complete()) wait.ready.push_back(id);
    else wait.missing.insert(id);
  }
  const bool enough = wait.ready.size() >= wait.count;
  const std::set<ObjectId> missing = wait.missing;
  for (const ObjectId& id : missing) {
    interests_[id].waits.insert(key);
    interests_[id].if_put_again = false;  // who waits wants to hear that it is lost
  }
  const bool fresh = waits_.try_emplace(key, std::move(wait)).second;
  CHECK(fresh, key.client, key.request);
  if (enough) return end_wait(key);
  for (const ObjectId& id : missing) ask(id);
}

void Notices::end_wait(const RequestKey& key) {
  const auto node = waits_.extract(key);
  CHECK(!node.empty(), key.client, key.request);
  Wait& wait = node.mapped();
  if (clients_.find(key) != nullptr) clients_.answer(key, ipc::WaitDone{std::move(wait.ready), std::move(wait.gone)});
  for (const ObjectId& id : wait.missing) {
    interests_.at(id).waits.erase(key);
    let_go_if_unwanted(id);
  }
}

// --- reduces -------------------------------------------------------------------------------------------------------------

void Notices::watch(const ObjectId& source, const ObjectId& target, std::uint64_t welcome_bytes) {
  Interest& interest = interests_[source];
  interest.watchers.insert(target);
  interest.welcome_bytes = std::max(interest.welcome_bytes, welcome_bytes);
}

void Notices::unwatch(const ObjectId& source, const ObjectId& target) {
  const auto it = interests_.find(source);
  if (it != interests_.end() && it->second.watchers.erase(target) > 0) let_go_if_unwanted(source);
}

std::set<ObjectId> Notices::watchers(const ObjectId& source) const {
  const auto it = interests_.find(source);
  return it == interests_.end() ? std::set<ObjectId>{} : it->second.watchers;
}

bool Notices::is_watched(const ObjectId& source) const {
  const auto it = interests_.find(source);
  return it != interests_.end() && !it->second.watchers.empty();
}

std::set<ObjectId> Notices::take_watchers(const ObjectId& source) {
  Interest& interest = interests_.at(source);
  interest.welcome_bytes = 0;
  interest.if_put_again = false;
  return std::exchange(interest.watchers, {});
}

// --- the home ------------------------------------------------------------------------------------------------------------

bool Notices::has_asked(const ObjectId& id, std::uint64_t number) const {
  const auto it = interests_.find(id);
  return it != interests_.end() && it->second.number == number && number != 0;
}

void Notices::ask(const ObjectId& id) {
  Interest& interest = interests_.at(id);
  close_question(interest);
  interest.number = out_.open_question();
  ask_at(id, out_.now() + limits_.request_retry);
  Want want;
  want.request = interest.number;
  want.id = id;
  want.mode = WantMode::kNotify;
  want.wait_if_lost = interest.if_put_again;
  want.inline_bytes = interest.welcome_bytes;
  out_.ask(records_.at(id).home, interest.number, std::move(want));
}

bool Notices::waits_for_its_turn(const ObjectId& id) {
  if (!out_.is_held(interests_.at(id).number)) return false;
  ask_at(id, out_.now() + limits_.request_retry);
  return true;
}

void Notices::on_waiting(const ObjectId& id) {
  out_.answered(interests_.at(id).number);
  ask_at(id, out_.now() + limits_.want_refresh);
}

void Notices::ask_at(const ObjectId& id, Time when) { timers_.set(interests_.at(id).timer, when, timer::Notify{id}); }

void Notices::on_failed(const ObjectId& id, Code code) {
  Interest& interest = interests_.at(id);
  out_.answered(interest.number);
  const std::set<RequestKey> waits = std::exchange(interest.waits, {});
  interest.if_put_again = code == Code::kLost;
  if (interest.is_wanted()) {
    ask_at(id, out_.now() + limits_.want_refresh);
    if (interest.if_put_again) ask(id);
  } else {
    forget(id);  // the home has dropped the question
  }
  for (const RequestKey& key : waits) {
    Wait& wait = waits_.at(key);
    wait.missing.erase(id);
    wait.gone.push_back({id, code});
    if (wait.ready.size() + wait.missing.size() < wait.count) end_wait(key);
  }
}

void Notices::on_ready(const ObjectId& id) {
  const auto it = interests_.find(id);
  if (it == interests_.end()) return;
  const std::set<RequestKey> waits = std::exchange(it->second.waits, {});
  close_question(it->second);
  if (it->second.is_wanted()) ask_at(id, out_.now() + limits_.retry_backoff);
  else forget(id);
  for (const RequestKey& key : waits) {
    Wait& wait = waits_.at(key);
    wait.missing.erase(id);
    wait.ready.push_back(id);
    if (wait.ready.size() >= wait.count) end_wait(key);
  }
}

void Notices::let_go_if_unwanted(const ObjectId& id) {
  if (interests_.at(id).is_wanted()) return;
  forget(id);
  out_.send(records_.at(id).home, Unwant{id, WantMode::kNotify});
}

void Notices::close_question(Interest& interest) { out_.close_question(std::exchange(interest.number, 0)); }

void Notices::forget(const ObjectId& id) {
  timers_.cancel(interests_.at(id).timer);
  close_question(interests_.at(id));
  interests_.erase(id);
  records_.touch(id);
}

void Notices::check_invariants() const {
  for (const auto& [id, interest] : interests_) {
    CHECK(records_.contains(id) && interest.is_wanted() && interest.timer, id);
    CHECK(interest.number == 0 || out_.is_open(interest.number), id, interest.number);
    for (const RequestKey& key : interest.waits) CHECK(waits_.at(key).missing.contains(id), id, key.client);
  }
  for (const auto& [key, wait] : waits_) {
    CHECK(clients_.find(key) != nullptr, key.client, key.request);
    CHECK(wait.ready.size() < wait.count && wait.ready.size() + wait.missing.size() >= wait.count, key.client,
          key.request, wait.ready.size());
    for (const ObjectId& id : wait.missing) CHECK(interests_.at(id).waits.contains(key), id, key.client);
  }
}

}  // namespace hoplite
