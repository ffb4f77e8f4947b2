// Memory: copies and who uses them, eviction, waiting for room.
#include <algorithm>

#include "base/coverage.h"
#include "core/agent/impl.h"

namespace hoplite {

// The node does not answer for the current copy any more. Its memory stays until everybody has let go.
void Agent::Impl::detach(Record& record) {
  Copy* copy = current_copy(record);
  if (copy == nullptr) return;
  const CopyKey key = copy->key;
  reset_followers(record);
  refuse_parked(record.id);
  record.copy = 0;
  if (record.fetch == Fetch::kPulling) record.fetch = Fetch::kIdle;
  copy->current = false;
  table_.unlist(*copy);
  collect(key);
}

void Agent::Impl::collect(CopyKey key) {
  Copy* copy = table_.find(key);
  if (copy == nullptr) return;
  // A copy that only the data plane still knows is closed there first. What a reduce uses stays open.
  if (!copy->current && copy->open && !copy->closing && copy->holds == 0) {
    copy->closing = true;
    emit(effect::CloseCopy{key});
  }
  table_.collect(*copy);
}

// --- views ---------------------------------------------------------------------------------------------------------------

void Agent::Impl::hold_view(ClientKey client, Copy& copy) {
  ++copy.views;
  ++clients_[client].views[copy.key];
}

void Agent::Impl::release_view(ClientKey client, CopyKey key) {
  const auto state = clients_.find(client);
  if (state == clients_.end()) return;
  const auto view = state->second.views.find(key);
  if (view == state->second.views.end()) return;
  if (--view->second == 0) state->second.views.erase(view);
  --table_.find(key)->views;
  collect(key);
}

// --- room ----------------------------------------------------------------------------------------------------------------

void Agent::Impl::queue_for_room(RoomRequest request) {
  room_queue_.push_back(std::move(request));
  try_room();
}

// Room is handed out in the order of asking, but small requests need not wait behind large ones.
bool Agent::Impl::may_pass_queue(const Record& record, std::uint64_t size) const {
  return room_queue_.empty() || record.room_granted || size <= table_.allocator().capacity() / 64;
}

// The home is asked again when there is room.
void Agent::Impl::wait_for_room(Record& record, std::uint64_t size) {
  if (record.room_granted) {  // and yet it did not fit: not again at once
    record.room_granted = false;
    return want_later(record, limits_.retry_backoff * 5);
  }
  if (record.fetch == Fetch::kNeedsRoom) return;
  stop_asking(record);
  record.fetch = Fetch::kNeedsRoom;
  queue_for_room({record.id, size, false, 0, 0, 0, {}, {}});
}

void Agent::Impl::leave_room_queue(const ObjectId& fetch_of) {
  std::erase_if(room_queue_, [&](const RoomRequest& r) { return !r.is_put && r.slot == 0 && r.id == fetch_of; });
}

// Hands out room in the order of asking. A small request may pass a large one that does not fit: it takes little from it,
// and does not wait for what may take minutes.
void Agent::Impl::try_room() {
  if (room_queue_.empty()) return;
  const std::uint64_t small = table_.allocator().capacity() / 64;
  auto queue = std::move(room_queue_);
  room_queue_.clear();
  std::uint64_t needed = 0;
  std::deque<RoomRequest> still;
  for (RoomRequest& request : queue) {
    if ((needed == 0 || request.size <= small) && grant_room(request)) continue;
    if (needed == 0) needed = std::max<std::uint64_t>(request.size, 1);
    still.push_back(std::move(request));
  }
  // Granting may have queued others behind.
  for (RoomRequest& request : room_queue_) still.push_back(std::move(request));
  room_queue_ = std::move(still);
  if (needed > 0) evict_for(needed);
}

// True: it has what it needs, or does not need it any more.
bool Agent::Impl::grant_room(RoomRequest& request) {
  if (request.is_put) {
    if (!create_now(request.client, request.request, request.id, request.size, request.meta)) return false;
    timers_.cancel(request.deadline);
    return true;
  }
  if (request.slot != 0) return begin_slot({request.id, request.slot});
  Record* r = find(request.id);
  if (r == nullptr || r->fetch != Fetch::kNeedsRoom) return true;
  if (!table_.allocator().can_allocate(request.size, Alignment::kCacheLine)) return false;
  r->fetch = Fetch::kIdle;
  r->room_granted = true;
  ensure_fetch(*r);
  return true;
}

void Agent::Impl::evict_for(std::uint64_t bytes) {
  bool asked = false;
  // Freed ranges need not be adjacent, so ask for as much again as is needed, least recently used first.
  for (CopyKey key : table_.eviction_candidates(now_, bytes * 2)) {
    Copy& copy = *table_.find(key);
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
  } else if (copy->idle() && !copy->primary) {
    COVERAGE_MARK(copy_evicted);
    remember(m.id, m.version);
    detach(*r);
    forget_if_unused(m.id);
  } else {
    COVERAGE_MARK(copy_in_use_again_before_eviction);
    announce(*r);
  }
  try_room();
}

void Agent::Impl::on(NodeRef from, const Pin& m) {
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
  if (m.reason == DropReason::kDeleted) {
    tombstones_.add(m.id, m.version, now_ + limits_.tombstone_life, home(m.id).id);
    send(from, Withdraw{m.id, m.version});
  }
  Record* r = find(m.id);
  if (r == nullptr) {
    if (m.reason == DropReason::kReset) send(from, Withdraw{m.id, m.version});
    return;
  }
  if (m.reason != DropReason::kDeleted && r->home != from) return;
  Copy* copy = current_copy(*r);
  const bool same = copy != nullptr && (m.version == 0 || copy->version == m.version);
  const std::string who = "object " + m.id.to_string();
  if (m.reason == DropReason::kReset) {
    if (!same && r->fetch == Fetch::kAsking) return;  // the want that is under way tells the home as much
    if (!same) return send(from, Withdraw{m.id, m.version});
    const bool stranded = copy->kept && copy->holds == 0;  // part of a result whose other parts are gone
    if (copy->combined && !stranded) return;               // the coordinator has heard the same, and decides
    if (copy->state != CopyState::kGrowing && !stranded) return announce(*r);
    COVERAGE_MARK(growing_copy_reset);
    if (copy->committed) remember(m.id, m.version);
    send(from, Withdraw{m.id, m.version});
    stop_asking(*r);
    detach(*r);
    ensure_fetch(*r);
    return forget_if_unused(m.id);
  }
  const Code code = m.reason == DropReason::kDeleted ? Code::kDeleted : Code::kExists;
  if (same && copy->combined && copy->holds > 0) {
    refuse_slots_into(copy->key, code, who);
    r = find(m.id);
    if (r == nullptr) return;
  }
  if (same && r->put) {
    fail_put(*r, code, who);
    r = find(m.id);
  } else if (same) {
    detach(*r);
  }
  if (r != nullptr && m.reason == DropReason::kDeleted) {
    fail_gets(*r, Code::kDeleted, false, who);
    stop_asking(*r);
  } else if (r != nullptr) {
    ensure_fetch(*r);
  }
  forget_if_unused(m.id);
  try_room();
}

std::string Agent::Impl::room_numbers(std::uint64_t size) const {
  const ExtentAllocator& a = table_.allocator();
  return format_size(size) + " needed; the store has " + format_size(a.capacity()) + ", " + format_size(a.used()) +
         " in use, of which " + format_size(table_.pinned_bytes()) + " cannot be evicted";
}

}  // namespace hoplite
