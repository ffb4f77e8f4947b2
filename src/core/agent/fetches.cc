#include "core/agent/fetches.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace hoplite {

const Fetches::Fetch* Fetches::find(const ObjectId& id) const {
  const auto it = fetches_.find(id);
  return it == fetches_.end() ? nullptr : &it->second;
}

Fetches::State Fetches::state(const ObjectId& id) const {
  const Fetch* fetch = find(id);
  return fetch == nullptr ? State::kIdle : fetch->state;
}

bool Fetches::has_asked(const ObjectId& id, std::uint64_t number) const {
  const Fetch* fetch = find(id);
  return fetch != nullptr && fetch->state == State::kAsking && fetch->question == number && number != 0;
}

// --- asking --------------------------------------------------------------------------------------------------------------

void Fetches::begin(Want want) {
  Fetch& fetch = fetches_[want.id];
  CHECK(fetch.state == State::kIdle, want.id, fetch.state);
  fetch.avoid.clear();
  fetch.told_lost = false;
  ask(std::move(want));
}

void Fetches::ask(Want want) {
  const ObjectId id = want.id;
  Fetch& fetch = fetches_[id];
  CHECK(fetch.state != State::kNeedsRoom, id);
  close_question(fetch);
  fetch.state = State::kAsking;
  fetch.told_waiting = false;
  fetch.question = out_.open_question();
  timers_.set(fetch.timer, out_.now() + limits_.request_retry, timer::Want{id});
  want.request = fetch.question;
  want.mode = WantMode::kFetch;
  want.wait_if_lost = fetch.told_lost;
  want.avoid = fetch.avoid;
  want.cut_off = out_.cut_off();
  // What has begun to come holds memory, and others may follow it.
  const auto turn = want.have_version != 0 ? Outbox::Turn::kFirst : Outbox::Turn::kLast;
  out_.ask(records_.at(id).home, fetch.question, std::move(want), {}, turn);
}

bool Fetches::waits_for_its_turn(const ObjectId& id) {
  Fetch& fetch = fetches_.at(id);
  if (!out_.is_held(fetch.question)) return false;
  timers_.set(fetch.timer, out_.now() + limits_.request_retry, timer::Want{id});
  return true;
}

void Fetches::ask_later(const ObjectId& id, Duration delay) {
  Fetch& fetch = fetches_[id];
  CHECK(fetch.state != State::kNeedsRoom, id);
  fetch.state = State::kAsking;
  close_question(fetch);  // whatever is still under way is old
  timers_.set(fetch.timer, out_.now() + delay, timer::Want{id});
}

void Fetches::stop(const ObjectId& id) {
  if (is_asking(id)) out_.send(records_.at(id).home, Unwant{id, WantMode::kFetch});
  end(id);
}

void Fetches::end(const ObjectId& id) {
  const auto it = fetches_.find(id);
  if (it == fetches_.end()) return;
  if (it->second.state == State::kNeedsRoom) room_.leave(Room::Fetch{id});
  timers_.cancel(it->second.timer);
  close_question(it->second);
  fetches_.erase(it);
  records_.touch(id);
}

void Fetches::close_question(Fetch& fetch) { out_.close_question(std::exchange(fetch.question, 0)); }

// --- answers -------------------------------------------------------------------------------------------------------------

void Fetches::on_waiting(const Waiting& m) {
  Fetch& fetch = fetches_.at(m.id);
  CHECK(fetch.state == State::kAsking, m.id, fetch.state);
  out_.answered(fetch.question);
  fetch.told_waiting = m.version == 0;
  fetch.told_reducing = m.reducing;
  // It is there, but we refuse whoever has it: forgive them, after a while.
  const bool picky = m.version != 0 && !fetch.avoid.empty();
  fetch.avoid.clear();
  Duration pause = picky ? std::min(limits_.forgive_after(), limits_.want_refresh) : limits_.want_refresh;
  // Somebody may be fetching it for us: if that comes to nothing, the home has to hear of us to ask somebody else.
  if (m.version != 0 && out_.has_detours()) pause = std::min(pause, limits_.request_retry);
  timers_.set(fetch.timer, out_.now() + pause, timer::Want{m.id});
}

void Fetches::on_lost(const ObjectId& id) {
  Fetch& fetch = fetches_.at(id);
  fetch.told_lost = true;
  fetch.avoid.clear();
}

void Fetches::on_assigned(const ObjectId& id) {
  Fetch& fetch = fetches_.at(id);
  CHECK(fetch.state == State::kAsking, id, fetch.state);
  timers_.cancel(fetch.timer);
  close_question(fetch);
  fetch.state = State::kPulling;
  fetch.told_lost = false;
}

bool Fetches::take_told_reducing(const ObjectId& id) {
  const auto it = fetches_.find(id);
  return it != fetches_.end() && std::exchange(it->second.told_reducing, false);
}

std::string Fetches::waits_for(const ObjectId& id) const {
  const std::string home = "home " + records_.at(id).home.id.to_string();
  const Fetch* fetch = find(id);
  if (fetch == nullptr) return home + " has not answered yet";
  if (out_.is_held(fetch->question)) return home + " is to be asked when it has answered those that asked before";
  if (fetch->told_lost) return "it is lost, and nobody has put it again (" + home + ")";
  if (fetch->told_reducing) return "its reduce, coordinated by " + home + ", has not finished";
  if (fetch->told_waiting) return "nobody has put it yet, as far as any live node knows (" + home + ")";
  return home + " has not answered yet";
}

// --- parents that refused or fell silent ---------------------------------------------------------------------------------

void Fetches::avoid(const ObjectId& id, NodeId parent) {
  auto& avoid = fetches_[id].avoid;
  if (std::ranges::find(avoid, parent) == avoid.end()) avoid.push_back(parent);
}

void Fetches::forgive(const ObjectId& id) { fetches_.at(id).avoid.clear(); }

Duration Fetches::patience(const ObjectId& id) const {
  return fetches_.at(id).avoid.empty() ? limits_.retry_backoff / 2 : limits_.forgive_after();
}

// --- room ----------------------------------------------------------------------------------------------------------------

void Fetches::wait_for_room(const ObjectId& id, std::uint64_t bytes) {
  if (state(id) == State::kNeedsRoom) return;
  if (has_room_granted(id)) {
    take_granted_room(id);
    return ask_later(id, limits_.retry_backoff * limits_.room_backoffs);
  }
  stop(id);
  fetches_[id].state = State::kNeedsRoom;
  room_.wait(Room::Fetch{id}, bytes);
}

void Fetches::grant_room(const ObjectId& id) {
  Fetch& fetch = fetches_.at(id);
  CHECK(fetch.state == State::kNeedsRoom, id, fetch.state);
  fetch.state = State::kIdle;
  fetch.room_granted = true;
  fetch.room_since = out_.now();
  records_.touch(id);
}

bool Fetches::has_room_granted(const ObjectId& id) const {
  const Fetch* fetch = find(id);
  return fetch != nullptr && fetch->room_granted;
}

void Fetches::take_granted_room(const ObjectId& id) { fetches_[id].room_granted = false; }

bool Fetches::got_room_just_now(const ObjectId& id) const {
  const Fetch* fetch = find(id);
  return fetch != nullptr && fetch->room_since && *fetch->room_since + limits_.request_retry > out_.now();
}

void Fetches::check_invariants() const {
  for (const auto& [id, fetch] : fetches_) {
    CHECK(records_.contains(id), id, fetch.state);
    CHECK((fetch.state == State::kNeedsRoom) == room_.is_waiting(Room::Fetch{id}), id, fetch.state);
    CHECK((fetch.state == State::kAsking) == fetch.timer.has_value(), id, fetch.state);
    CHECK(fetch.question == 0 || (fetch.state == State::kAsking && out_.is_open(fetch.question)), id, fetch.state);
    CHECK(fetch.state != State::kPulling || records_.at(id).copy != 0, id, fetch.state);
    CHECK(!fetch.room_granted || fetch.state != State::kNeedsRoom, id, fetch.state);
  }
}

}  // namespace hoplite
