// Copies that come and go, eviction, waiting for room.
#include <algorithm>

#include "base/check.h"
#include "base/coverage.h"
#include "core/agent/impl.h"

namespace hoplite {

// The node does not answer for the current copy any more. Its memory stays until everybody has let go.
void Agent::Impl::retire(Record& record) {
  Copy* copy = records_.copy_of(record);
  if (copy == nullptr) return;
  gets_.reset(record.id);
  refuse_parked(record.id);
  record.copy = 0;
  evictions_.erase(record.id);
  if (fetches_.state(record.id) == Fetches::State::kPulling) fetches_.end(record.id);
  pulls_.forget(copy->key);
  table_.become(*copy, CopyLife::kRetired);
  records_.touch(record.id);
}

// The home was told that we do not have it. That may cross an answer which makes us a holder: what is asked behind it is
// answered behind it, and the older answer is not the expected one any more.
void Agent::Impl::ask_after_withdrawal(const ObjectId& id) {
  if (!notices_.contains(id)) return;
  COVERAGE_MARK(asked_again_after_a_withdrawal);
  notices_.ask(id);
}

// --- room ----------------------------------------------------------------------------------------------------------------

void Agent::Impl::hand_out_room() {
  const std::uint64_t needed = room_.hand_out([&](const Room::Waiter& waiter) { return take_room(waiter); });
  if (needed > 0) evict_for(needed);
}

// True: it has what it needs, or does not need it any more.
bool Agent::Impl::take_room(const Room::Waiter& waiter) {
  if (const auto* create = std::get_if<Room::Create>(&waiter.owner)) return create_now(*create, waiter.bytes);
  if (const auto* slot = std::get_if<Room::Slot>(&waiter.owner)) return slots_.take_room(slot->key);
  if (!table_.allocator().can_allocate(waiter.bytes, Alignment::kCacheLine)) return false;
  fetches_.grant_room(std::get<Room::Fetch>(waiter.owner).id);
  return true;
}

void Agent::Impl::evict_for(std::uint64_t bytes) {
  bool asked = false;
  // Freed ranges need not be adjacent, so ask for as much again as is needed, least recently used first.
  for (CopyKey key : table_.eviction_candidates(out_.now(), bytes * 2)) {
    Copy& copy = table_.at(key);
    copy.evict_asked = true;
    evictions_.insert(copy.id);
    asked = true;
    out_.send(records_.at(copy.id).home, EvictRequest{copy.id, copy.version});
  }
  if (asked || !room_timer_) timers_.set(room_timer_, out_.now() + limits_.request_retry, timer::Room{});
}

void Agent::Impl::on(NodeRef from, const EvictReply& m) {
  Record* r = records_.find(m.id);
  Copy* copy = records_.copy_of(m.id);
  if (copy == nullptr || r->home != from || copy->version != m.version || !copy->evict_asked) return;
  copy->evict_asked = false;
  evictions_.erase(m.id);
  if (!m.granted) {
    COVERAGE_MARK(eviction_denied);
    copy->evict_not_before = out_.now() + limits_.request_retry;  // others first
  } else if (copy->is_idle() && !copy->primary) {
    COVERAGE_MARK(copy_evicted);
    out_.emit(effect::Happened{effect::Happened::What::kEvicted, m.id, copy->extent.size, ""});
    announcer_.remember(m.id, m.version);
    retire(*r);
  } else {
    COVERAGE_MARK(copy_in_use_again_before_eviction);
    announcer_.tell(*r);
  }
  room_.reconsider();
}

void Agent::Impl::on(NodeRef from, const SetPrimary& m) {
  Record* r = records_.find(m.id);
  Copy* copy = records_.copy_of(m.id);
  if (r != nullptr && r->home != from) return;
  if (copy == nullptr || copy->version != m.version) {
    // A want that is under way tells the home the same, and a withdrawal behind it would take back its answer.
    if (!fetches_.is_asking(m.id)) announcer_.withdraw(from, m.id, m.version);
    return;
  }
  copy->primary = m.primary;
  table_.touch(*copy);
}

void Agent::Impl::on(NodeRef from, const Drop& m) {
  if (m.id.is_nil()) return;
  Record* r = records_.find(m.id);
  const Copy* copy = records_.copy_of(m.id);
  bool same = copy != nullptr && (m.version == 0 || copy->version == m.version);
  if (m.reason == DropReason::kDeleted) {
    announcer_.withdraw(from, m.id, m.version);
    const bool stays = copy != nullptr && copy->is_complete() && !same && !is_newer(m.version, copy->version);
    if (stays) return;  // an older version was deleted
    if (m.version != 0 || !m.id.is_named())
      tombstones_.bury(m.id, m.version, out_.now() + limits_.tombstone_life, records_.home(m.id).id);
    known_.forget(m.id, m.version);
    // An older version goes with it, and a newer one stays. Who has none asks whether there is a newer one.
    same = same || (copy != nullptr && tombstones_.covers(m.id, copy->version));
    if (copy != nullptr && !same) return;
    if (copy == nullptr && m.id.is_named()) {
      if (fetches_.is_asking(m.id)) fetches_.ask(want_of(*r));
      return;
    }
  }
  if (r == nullptr) {
    if (m.reason == DropReason::kReset) announcer_.withdraw(from, m.id, m.version);
    return;
  }
  if (m.reason != DropReason::kDeleted && r->home != from) return;
  const std::string who = "object " + m.id.to_string();
  if (m.reason == DropReason::kReset) {
    if (!same && fetches_.is_asking(m.id)) return fetches_.ask(want_of(*r));  // that tells the home as much
    if (!same) return announcer_.withdraw(from, m.id, m.version);
    const bool slots_fill_it = copy->users(CopyUser::kHold) > 0;
    if (copy->life() == CopyLife::kCombining && slots_fill_it)
      return;  // the coordinator has heard the same, and decides
    // Part of a result whose other parts are gone goes too.
    if (copy->life() != CopyLife::kFetching && !copy->is_striped()) return announcer_.tell(*r);
    COVERAGE_MARK(growing_copy_reset);
    if (copy->committed) announcer_.remember(m.id, m.version);
    announcer_.withdraw(from, m.id, m.version);
    stop_fetch(*r);
    return retire(*r);
  }
  const Code code = m.reason == DropReason::kDeleted ? Code::kDeleted : Code::kExists;
  if (same && copy->life() == CopyLife::kCombining) {
    slots_.refuse_all_into(copy->key, code, who);
    same = r->copy != 0;
  }
  if (same && puts_.contains(m.id)) fail_put(*r, code, who);
  else if (same) retire(*r);
  records_.touch(m.id);
  if (m.reason != DropReason::kDeleted) return;
  gets_.fail(m.id, Code::kDeleted, who);
  stop_fetch(*r);
}

}  // namespace hoplite
