// Copies that come and go, eviction, waiting for room.
#include <algorithm>

#include "base/check.h"
#include "base/coverage.h"
#include "core/agent/impl.h"

namespace hoplite {

// The node does not answer for the current copy any more. Its memory stays until everybody has let go.
void Agent::Impl::retire(Record& record) {
  Copy* copy = current_copy(record);
  if (copy == nullptr) return;
  reset_followers(record);
  refuse_parked(record.id);
  record.copy = 0;
  if (record.fetch == Fetch::kPulling) record.fetch = Fetch::kIdle;
  pulls_.forget(copy->key);
  table_.become(*copy, CopyLife::kRetired);
  touched_.insert(record.id);
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
  Record& r = records_.at(std::get<Room::Fetch>(waiter.owner).id);
  CHECK(r.fetch == Fetch::kNeedsRoom, r.id.to_string(), static_cast<int>(r.fetch));
  r.fetch = Fetch::kIdle;
  r.room_granted = true;
  r.room_since = now_;
  touched_.insert(r.id);
  return true;
}

// The home is asked again when there is room.
void Agent::Impl::wait_for_room(Record& record, std::uint64_t size) {
  if (record.room_granted) {  // and yet it did not fit: not again at once
    record.room_granted = false;
    return want_later(record, limits_.retry_backoff * limits_.room_backoffs);
  }
  if (record.fetch == Fetch::kNeedsRoom) return;
  stop_asking(record);
  record.fetch = Fetch::kNeedsRoom;
  room_.wait(Room::Fetch{record.id}, size);
}

void Agent::Impl::evict_for(std::uint64_t bytes) {
  bool asked = false;
  // Freed ranges need not be adjacent, so ask for as much again as is needed, least recently used first.
  for (CopyKey key : table_.eviction_candidates(now_, bytes * 2)) {
    Copy& copy = table_.at(key);
    copy.evict_asked = true;
    asked = true;
    send(records_.at(copy.id).home, EvictRequest{copy.id, copy.version});
  }
  if (asked || !room_timer_) timers_.set(room_timer_, now_ + limits_.request_retry, timer::Room{});
}

void Agent::Impl::on(NodeRef from, const EvictReply& m) {
  Record* r = find(m.id);
  Copy* copy = r == nullptr ? nullptr : current_copy(*r);
  if (copy == nullptr || r->home != from || copy->version != m.version || !copy->evict_asked) return;
  copy->evict_asked = false;
  if (!m.granted) {
    COVERAGE_MARK(eviction_denied);
    copy->evict_not_before = now_ + limits_.request_retry;  // others first
  } else if (copy->is_idle() && !copy->primary) {
    COVERAGE_MARK(copy_evicted);
    remember(m.id, m.version);
    retire(*r);
  } else {
    COVERAGE_MARK(copy_in_use_again_before_eviction);
    announce(*r);
  }
  room_.reconsider();
}

void Agent::Impl::on(NodeRef from, const SetPrimary& m) {
  Record* r = find(m.id);
  Copy* copy = r == nullptr ? nullptr : current_copy(*r);
  if (r != nullptr && r->home != from) return;
  if (copy == nullptr || copy->version != m.version) {
    // A want that is under way tells the home the same, and a withdrawal behind it would take back its answer.
    if (r == nullptr || r->fetch != Fetch::kAsking) send(from, Withdraw{m.id, m.version});
    return;
  }
  copy->primary = m.primary;
  table_.touch(*copy);
}

void Agent::Impl::on(NodeRef from, const Drop& m) {
  Record* r = find(m.id);
  const Copy* copy = r == nullptr ? nullptr : current_copy(*r);
  bool same = copy != nullptr && (m.version == 0 || copy->version == m.version);
  if (m.reason == DropReason::kDeleted) {
    send(from, Withdraw{m.id, m.version});
    if (copy != nullptr && !same && copy->is_complete()) return;  // another version was deleted
    tombstones_.add(m.id, m.version, now_ + limits_.tombstone_life, home(m.id).id);
  }
  if (r == nullptr) {
    if (m.reason == DropReason::kReset) send(from, Withdraw{m.id, m.version});
    return;
  }
  if (m.reason != DropReason::kDeleted && r->home != from) return;
  const std::string who = "object " + m.id.to_string();
  if (m.reason == DropReason::kReset) {
    if (!same && r->fetch == Fetch::kAsking) return send_want(*r);  // that tells the home as much
    if (!same) return send(from, Withdraw{m.id, m.version});
    const bool slots_fill_it = copy->users(CopyUser::kHold) > 0;
    if (copy->life() == CopyLife::kCombining && slots_fill_it)
      return;  // the coordinator has heard the same, and decides
    // Part of a result whose other parts are gone goes too.
    if (copy->life() != CopyLife::kFetching && !copy->is_striped()) return announce(*r);
    COVERAGE_MARK(growing_copy_reset);
    if (copy->committed) remember(m.id, m.version);
    send(from, Withdraw{m.id, m.version});
    stop_asking(*r);
    return retire(*r);
  }
  const Code code = m.reason == DropReason::kDeleted ? Code::kDeleted : Code::kExists;
  if (same && copy->life() == CopyLife::kCombining) {
    slots_.refuse_all_into(copy->key, code, who);
    same = r->copy != 0;
  }
  if (same && r->put) fail_put(*r, code, who);
  else if (same) retire(*r);
  touched_.insert(m.id);
  if (m.reason != DropReason::kDeleted) return;
  fail_gets(*r, Code::kDeleted, false, who);
  stop_asking(*r);
}

std::string Agent::Impl::room_numbers(std::uint64_t needed) const {
  const ExtentAllocator& a = table_.allocator();
  return format_size(needed) + " needed; the store has " + format_size(a.capacity()) + ", " + format_size(a.used()) +
         " in use, of which " + format_size(table_.pinned_bytes()) + " cannot be evicted";
}

}  // namespace hoplite
