#include "core/agent/puts.h"

#include <utility>

#include "base/check.h"

namespace hoplite {

void Puts::begin(const ObjectId& id, ClientKey client) {
  const auto [it, fresh] = puts_.try_emplace(id);
  CHECK(fresh && records_.copy_of(id) != nullptr, id);
  it->second.copy = records_.at(id).copy;
  it->second.client = client;
}

void Puts::seal(const ObjectId& id, std::uint64_t client_request) {
  Put& put = puts_.at(id);
  CHECK(!put.is_sealed() && client_request != 0, id, client_request);
  put.client_request = client_request;
  if (put.claimed || put.number == 0) claim(id);
}

void Puts::claim(const ObjectId& id) {
  Put& put = puts_.at(id);
  const Record& record = records_.at(id);
  const Copy& copy = *records_.copy_of(record);
  out_.answered(put.number);
  put.number = put.first_number == 0 ? out_.open_question() : out_.next_number();
  if (put.first_number == 0) put.first_number = put.number;
  put.sealed_sent = put.is_sealed();
  put.asked.insert(record.home);
  claim_at(id, out_.now() + limits_.request_retry);
  PutRequest request{put.number, id, copy.version, copy.extent.size, copy.meta, put.is_sealed()};
  const bool with_bytes =
      put.is_sealed() && copy.extent.size <= limits_.inline_bytes && record.home.id != out_.self().id;
  out_.ask(record.home, put.number, std::move(request), with_bytes ? std::optional(copy.extent) : std::nullopt);
}

bool Puts::waits_for_its_turn(const ObjectId& id) {
  if (!out_.is_held(puts_.at(id).number)) return false;
  claim_at(id, out_.now() + limits_.request_retry);
  return true;
}

void Puts::claim_at(const ObjectId& id, Time when) { timers_.set(puts_.at(id).retry, when, timer::Claim{id}); }

bool Puts::is_claimed(const ObjectId& id) const {
  const auto it = puts_.find(id);
  return it != puts_.end() && it->second.claimed;
}

bool Puts::may_be_committed(const ObjectId& id) const {
  const auto it = puts_.find(id);
  return it != puts_.end() && it->second.sealed_sent;
}

Puts::Answer Puts::on_reply(NodeRef from, const PutReply& m) {
  const auto it = puts_.find(m.id);
  if (it == puts_.end() || records_.at(m.id).home != from || it->second.number != m.request) return Answer::kNone;
  Put& put = it->second;
  timers_.cancel(put.retry);
  out_.answered(put.number);
  const bool can_be_newer = m.newer_than != 0 && generation(m.newer_than) < kLastGeneration && !put.claimed;
  if (m.code != Code::kOk) return can_be_newer ? Answer::kTooOld : Answer::kRefused;
  put.claimed = true;
  out_.close_question(put.first_number);  // a fact from now on, which full announcements tell
  if (put.sealed_sent) return Answer::kCommitted;
  if (!put.is_sealed()) return Answer::kClaimed;
  claim(m.id);
  return Answer::kNone;
}

Puts::Ended Puts::finish(const ObjectId& id) {
  const auto it = puts_.find(id);
  CHECK(it != puts_.end(), id);
  timers_.cancel(it->second.retry);
  out_.answered(it->second.number);
  out_.close_question(it->second.first_number);
  const Ended ended{it->second.copy, it->second.client, it->second.client_request};
  puts_.erase(it);
  return ended;
}

Puts::Ended Puts::give_up(const ObjectId& id, NodeRef refused_by) {
  const Copy& copy = *records_.copy_of(id);
  for (const NodeRef& home : puts_.at(id).asked)
    if (home != refused_by) out_.send(home, Withdraw{id, copy.version});
  return finish(id);
}

void Puts::check_invariants() const {
  for (const auto& [id, put] : puts_) {
    CHECK(records_.at(id).copy == put.copy, id, put.copy);
    CHECK(records_.copy_of(id)->life() == CopyLife::kWriting, id, put.copy);
    CHECK(put.number != 0 && put.number >= put.first_number, id, put.number, put.first_number);
    CHECK(put.retry || (put.claimed && !put.is_sealed()), id, put.number);
    CHECK(put.claimed || out_.is_open(put.first_number), id, put.first_number);
    CHECK(!put.sealed_sent || put.is_sealed(), id);
  }
}

}  // namespace hoplite
