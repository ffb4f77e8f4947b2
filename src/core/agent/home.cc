// This node as a home: messages to the directory, and the directory's words to others.
#include <algorithm>

#include "base/coverage.h"
#include "core/agent/impl.h"
#include "protocol/names.h"

namespace hoplite {

Plan Agent::Impl::make_plan(const Demand& demand) const {
  return hoplite::make_plan(demand, {records_.alive(), link_costs(), limits_});
}

bool Agent::Impl::can_inline(const ObjectId& id, Version version, NodeRef receiver) const {
  const Copy* copy = records_.copy_of(id);
  if (copy == nullptr || copy->version != version || copy->extent.size > limits_.inline_bytes) return false;
  if (!copy->is_complete() && !puts_.may_be_committed(id)) return false;
  if (out_.takes_bytes(receiver)) return true;
  COVERAGE_MARK(pulled_instead_of_queued);
  return false;
}

void Agent::Impl::flush(Directory::Output& homes) {
  for (Directory::Outgoing& send_one : homes.sends) {
    if (send_one.with_bytes) {
      const Extent bytes = records_.copy_of(std::get<InlineObject>(send_one.message).id)->extent;
      out_.send_with_bytes(send_one.to, std::move(send_one.message), bytes);
    } else {
      out_.send(send_one.to, std::move(send_one.message));
    }
  }
  for (const Heard& heard : homes.heard) deputies_.note(heard);
  for (std::string& line : homes.log) out_.emit(effect::Log{std::move(line)});
  log_lost(homes.lost);
  homes = {};
}

void Agent::Impl::log_lost(const std::vector<Directory::Output::Lost>& lost) {
  const bool each = lost.size() <= limits_.max_named;
  const std::string are_lost = each ? " is lost: " : " and " + std::to_string(lost.size() - 1) + " others are lost: ";
  for (const auto& [id, name, why] : lost) {
    std::string line = "object " + described(id, name);
    out_.emit(effect::Log{line.append(are_lost).append(why)});
    if (!each) return;
  }
}

// Requests only: facts for somebody else's ids are simply not taken.
bool Agent::Impl::is_home(NodeRef asker, const ObjectId& id) {
  if (id.is_nil()) return false;
  if (records_.home(id) == self()) return true;
  out_.send(asker, NotHome{id});
  out_.send(asker, Sync{true, membership_.all()});
  return false;
}

void Agent::Impl::on(NodeRef from, const PutRequest& m) {
  if (!is_home(from, m.id) || m.version == 0 || m.meta.size() > limits_.max_meta_bytes) return;
  Directory::Output out;
  const bool accepted = directory_.on_put(out_.now(), from, m, out);
  flush(out);
  if (!accepted) return;
  if (from.id != self().id && m.sealed && payload_bytes_ == m.size && m.size <= limits_.inline_bytes)
    store_home_copy(m);
  directory_.serve(out_.now(), m.id, out);
  flush(out);
}

// A small object put elsewhere: keep its bytes here too, if there is room, so that wants are answered by the bytes.
void Agent::Impl::store_home_copy(const PutRequest& put) {
  Record& r = records_.add(put.id);
  if (r.copy != 0) return;
  Copy* copy = table_.add(put.id, put.version, put.size, Alignment::kCacheLine, CopyLife::kComplete);
  if (copy == nullptr) return;
  if (put.size > 0) out_.emit(effect::StorePayload{copy->extent});
  copy->meta = put.meta;
  table_.touch(*copy);
  r.copy = copy->key;
  directory_.add_own_copy(put.id, put.version);
  fetches_.stop(put.id);
  gets_.fulfil(put.id);
}

void Agent::Impl::on(NodeRef from, const Want& m) {
  if (!is_home(from, m.id)) return;
  const ReduceReport* ended = coordinator_.ended(m.id);
  if (ended != nullptr && ended->phase == ReducePhase::kFailed && !directory_.is_taken(m.id) &&
      !(m.wait_if_lost && ended->code == Code::kLost))
    return out_.send(from, WantFailed{m.request, m.id, 0, ended->code, ended->text});
  Directory::Output out;
  directory_.on_want(out_.now(), from, m, out);
  flush(out);
}

void Agent::Impl::on(NodeRef from, const Unwant& m) {
  Directory::Output out;
  directory_.on_unwant(out_.now(), from, m, out);
  flush(out);
}

void Agent::Impl::on(NodeRef from, const Announce& m) {
  Announce mine = m;
  const auto foreign = std::ranges::find_if(m.facts, [&](const Fact& f) { return records_.home(f.id) != self(); });
  if (foreign != m.facts.end()) out_.send(from, NotHome{foreign->id});
  std::erase_if(mine.facts, [&](const Fact& f) {
    return records_.home(f.id) != self() || f.id.is_nil() || f.version == 0 || f.meta.size() > limits_.max_meta_bytes ||
           f.lost_why.size() > limits_.max_meta_bytes || (f.state != CopyState::kKnows && !f.lost_why.empty()) ||
           f.slices == 0 || f.slices > limits_.max_slices || f.roots > f.slices;
  });
  std::erase_if(mine.tombstones, [&](const Tombstone& t) {
    return records_.home(t.id) != self() || t.id.is_nil() || (t.id.is_named() && t.version == 0);
  });
  for (const Fact& fact : mine.facts)
    if (!fact.lost_why.empty()) announcer_.remember(fact.id, fact.version, fact.lost_why);
  Directory::Output out;
  const std::size_t told = m.facts.size() + m.tombstones.size();
  directory_.on_announce(out_.now(), from, mine, out, told - mine.facts.size() - mine.tombstones.size());
  flush(out);
  for (const Tombstone& stone : mine.tombstones)
    if (tombstones_.contains(stone.id) && !directory_.is_taken(stone.id))
      coordinator_.cancel(stone.id, Code::kDeleted, "the target was deleted");
  if (m.full_end && m.comparison != 0) out_.send(from, Compared{m.comparison, m.first, m.last, false});
  if (m.rate_kib != 0) rate_estimate_ = (rate_estimate_ * 3 + std::uint64_t{m.rate_kib} * 1024) / 4;
}

void Agent::Impl::on(NodeRef from, const Compare& m) {
  if (m.first <= m.last) out_.send(from, directory_.on_compare(from, m));
}

void Agent::Impl::on(NodeRef from, const Compared& m) { announcer_.on_compared(from, m); }

void Agent::Impl::on(NodeRef from, const Withdraw& m) {
  Directory::Output out;
  directory_.on_withdraw(out_.now(), from, m, out);
  flush(out);
}

void Agent::Impl::on(NodeRef from, const EvictRequest& m) {
  if (!is_home(from, m.id)) return;
  Directory::Output out;
  directory_.on_evict(out_.now(), from, m, out);
  flush(out);
}

void Agent::Impl::on(NodeRef from, const DeleteRequest& m) {
  if (!is_home(from, m.id)) return;
  Directory::Output out;
  directory_.on_delete(out_.now(), from, m, out);
  flush(out);
  coordinator_.cancel(m.id, Code::kDeleted, "the target was deleted");
}

void Agent::Impl::on(NodeRef from, const RecoverReply& m) {
  Directory::Output out;
  directory_.on_recover_reply(out_.now(), from, m, out);
  flush(out);
}

}  // namespace hoplite
