// Clients that read, and the conversation with the home about it.
#include <algorithm>

#include "base/coverage.h"
#include "core/agent/impl.h"

namespace hoplite {

void Agent::Impl::on_client(ClientKey client, std::uint64_t request, client::Get& m) {
  if (m.id.is_nil()) return fail(client, request, Code::kInvalidArgument, "the nil id names no object");
  if (tombstones_.contains(m.id)) return fail(client, request, Code::kDeleted, "object " + m.id.to_string());
  if (find(m.id) == nullptr && too_many_objects(client, request, 1)) return;
  Record& r = record(m.id);
  Copy* copy = current_copy(r);
  GetRequest get{client, request, m.wait_if_lost, m.follow, 0, {}};
  if (copy != nullptr && copy->state == CopyState::kComplete) return send_view(get, *copy);
  if (!begin_request(client, request, {PendingRequest::Kind::kGet, m.id, 0})) return forget_if_unused(m.id);
  timers_.set(get.deadline, deadline_of(m.timeout_ns), timer::RequestDeadline{client, request});
  if (copy != nullptr && get.follow && !(r.put && !r.put->claimed)) open_follow(get, *copy);
  r.gets.push_back(get);
  ensure_fetch(r);
}

void Agent::Impl::on_client(ClientKey client, std::uint64_t, client::Release& m) {
  for (CopyKey copy : m.copies) release_view(client, copy);
  try_room();
}

// --- answering -----------------------------------------------------------------------------------------------------------

void Agent::Impl::send_view(GetRequest& get, Copy& copy) {
  hold_view(get.client, copy);
  table_.touch(copy);
  reply(get.client, get.request, client::View{copy.key, copy.version, copy.extent.offset, copy.extent.size, copy.meta});
}

void Agent::Impl::open_follow(GetRequest& get, Copy& copy) {
  if (get.followed == copy.key) return;
  get.followed = copy.key;
  hold_view(get.client, copy);
  open_in_data_plane(copy);
  if (!copy.followed) emit(effect::FollowCopy{copy.key});
  copy.followed = true;
  emit(effect::Reply{
      get.client, get.request,
      client::Opened{copy.key, copy.version, copy.extent.offset, copy.extent.size, copy.meta, front_bytes(copy)}});
}

void Agent::Impl::on(const event::CopyGrown& e) {
  const Copy* copy = table_.find(e.copy);
  Record* r = copy == nullptr || !copy->current ? nullptr : find(copy->id);
  if (r == nullptr) return;
  for (const GetRequest& get : r->gets)
    if (get.followed == e.copy) emit(effect::Reply{get.client, get.request, client::Grown{front_bytes(*copy)}});
}

// What they were shown will not become the object.
void Agent::Impl::reset_followers(Record& record) {
  for (GetRequest& get : record.gets) {
    if (get.followed == 0) continue;
    get.followed = 0;
    emit(effect::Reply{get.client, get.request, client::Reset{}});
  }
}

// Answers what the current copy allows: all gets if it is complete, the followers if it grows.
void Agent::Impl::fulfil_gets(Record& record) {
  Copy* copy = current_copy(record);
  if (copy == nullptr) return;
  if (copy->state != CopyState::kComplete) {
    for (GetRequest& get : record.gets)
      if (get.follow) open_follow(get, *copy);
    return;
  }
  auto gets = std::move(record.gets);
  record.gets.clear();
  for (GetRequest& get : gets) {
    timers_.cancel(get.deadline);
    send_view(get, *copy);
  }
}

void Agent::Impl::fail_gets(Record& record, Code code, bool only_those_who_mind_loss, const std::string& why) {
  std::vector<GetRequest> kept;
  auto gets = std::move(record.gets);
  record.gets.clear();
  for (GetRequest& get : gets) {
    if (only_those_who_mind_loss && get.wait_if_lost) {
      kept.push_back(get);
      continue;
    }
    timers_.cancel(get.deadline);
    fail(get.client, get.request, code, why);
  }
  record.gets = std::move(kept);
}

void Agent::Impl::drop_get(Record& record, std::size_t index) {
  timers_.cancel(record.gets[index].deadline);
  record.gets.erase(record.gets.begin() + static_cast<std::ptrdiff_t>(index));
  abandon_if_unwanted(record);
}

// Nobody here reads it any more, and no peer depends on it: stop fetching.
void Agent::Impl::abandon_if_unwanted(Record& record) {
  if (!record.gets.empty() || record.put) return;
  const ObjectId id = record.id;
  Copy* copy = current_copy(record);
  if (copy != nullptr && (copy->state != CopyState::kGrowing || copy->kept || has_children(*copy))) return;
  stop_asking(record);
  if (copy != nullptr) {
    COVERAGE_MARK(fetch_abandoned);
    send(record.home, Withdraw{id, copy->version});
    detach(record);
  }
  forget_if_unused(id);
}

// --- asking the home -----------------------------------------------------------------------------------------------------

void Agent::Impl::ensure_fetch(Record& record) {
  if (record.gets.empty() || record.fetch != Fetch::kIdle || record.put || record.copy != 0) return;
  record.attempts = 0;
  record.avoid.clear();
  record.told_lost = false;
  send_want(record);
}

void Agent::Impl::set_want_request(Record& record, std::uint64_t request) {
  open_requests_.erase(record.want_request);
  record.want_request = request;
  if (request != 0) open_requests_.insert(request);
}

void Agent::Impl::send_want(Record& record) {
  record.fetch = Fetch::kAsking;
  record.told_waiting = false;
  set_want_request(record, next_request_++);
  Want want;
  want.request = record.want_request;
  want.id = record.id;
  want.mode = WantMode::kFetch;
  want.wait_if_lost = record.told_lost;
  want.avoid = record.avoid;
  if (const Copy* copy = current_copy(record)) {
    want.have_version = copy->version;
    for (std::uint32_t i = 0; i < copy->slices.size(); ++i) {
      const SliceFetch& slice = copy->slices[i];
      if (!slice.done && slice.transfer == 0 && !slice.combined)
        want.slices.push_back({i, slice.watermark - slice.begin, has_children(*copy, i)});
    }
  }
  timers_.set(record.want_timer, now_ + limits_.request_retry, timer::Want{record.id});
  send(record.home, std::move(want));
}

void Agent::Impl::want_later(Record& record, Duration delay) {
  record.fetch = Fetch::kAsking;
  set_want_request(record, 0);  // whatever is still under way is old
  timers_.set(record.want_timer, now_ + delay, timer::Want{record.id});
}

// Takes back what was asked of the home. Pulls are not touched.
void Agent::Impl::stop_asking(Record& record) {
  if (record.fetch == Fetch::kAsking) send(record.home, Unwant{record.id, WantMode::kFetch});
  if (record.fetch == Fetch::kNeedsRoom) leave_room_queue(record.id);
  timers_.cancel(record.want_timer);
  record.fetch = Fetch::kIdle;
  set_want_request(record, 0);
  if (record.copy == 0) refuse_parked(record.id);
}

void Agent::Impl::on(NodeRef from, const Waiting& m) {
  Record* r = find(m.id);
  if (r == nullptr || r->home != from) return;
  if (r->fetch == Fetch::kAsking && r->want_request == m.request) {
    r->told_waiting = m.version == 0;
    r->told_reducing = m.reducing;
    Copy* copy = current_copy(*r);
    if (copy != nullptr && copy->state == CopyState::kGrowing && copy->version != m.version) detach(*r);
    // It is there, but we refuse whoever has it: forgive them, after a while.
    const bool picky = m.version != 0 && !r->avoid.empty();
    r->avoid.clear();
    const Duration pause = picky ? std::min(limits_.retry_backoff * 10, limits_.want_refresh) : limits_.want_refresh;
    timers_.set(r->want_timer, now_ + pause, timer::Want{m.id});
  } else if (r->notify_request == m.request) {
    timers_.set(r->notify_timer, now_ + limits_.want_refresh, timer::Notify{m.id});
  }
}

void Agent::Impl::on(NodeRef from, const WantFailed& m) {
  Record* r = find(m.id);
  if (r == nullptr || r->home != from) return;
  const std::string who = "object " + m.id.to_string();
  if (m.request == r->notify_request && m.request != 0) {
    // For wait() a deleted or lost object is not ready; it may be put again, so keep asking, slowly.
    timers_.set(r->notify_timer, now_ + limits_.want_refresh, timer::Notify{m.id});
    r->notify_if_put_again = m.code == Code::kLost;
    if (r->notify_if_put_again) send_notify(*r);
    return went_missing(*r, m.code, m.text);
  }
  if (r->fetch != Fetch::kAsking || m.request != r->want_request) return;
  if (Copy* copy = current_copy(*r); copy != nullptr && (copy->state == CopyState::kGrowing || copy->kept)) {
    send(from, Withdraw{m.id, copy->version});
    detach(*r);
  }
  const std::string why = m.text.empty() ? "" : ": " + m.text;
  if (m.code != Code::kLost) {
    fail_gets(*r, m.code, false, who + why);
  } else {
    COVERAGE_MARK(get_told_lost);
    if (m.version != 0) remember(m.id, m.version, m.text);
    fail_gets(*r, Code::kLost, true, who + (why.empty() ? ": every complete copy was on nodes that died" : why));
  }
  if (r->gets.empty()) {
    timers_.cancel(r->want_timer);
    r->fetch = Fetch::kIdle;
    set_want_request(*r, 0);
    refuse_parked(m.id);
    return forget_if_unused(m.id);
  }
  r->told_lost = true;
  r->avoid.clear();
  send_want(*r);
}

// --- the home's answer ---------------------------------------------------------------------------------------------------

void Agent::Impl::on(NodeRef from, const Assign& m) {
  Record* r = find(m.id);
  if (r != nullptr && r->home != from) return;
  const bool sane = m.slices >= 1 && m.slices <= limits_.max_slices && m.parents.size() == m.slices &&
                    m.meta.size() <= limits_.max_meta_bytes;
  if (!sane) return;
  Copy* copy = r == nullptr ? nullptr : current_copy(*r);
  const bool asked = r != nullptr && r->fetch == Fetch::kAsking;
  if (asked && m.request != r->want_request) return;  // an answer to an older question: the newer one is on its way
  if (!asked) {
    // The home believes that we fetch it. Tell it how things are.
    if (copy != nullptr && copy->version == m.version) return announce(*r);
    return send(from, Withdraw{m.id, m.version});
  }
  if (copy != nullptr && (copy->version != m.version || copy->slice_count() != m.slices)) {
    COVERAGE_MARK(fetch_restarted_with_another_version);
    detach(*r);
    copy = nullptr;
  }
  if (copy == nullptr) {
    if (!table_.allocator().fits(m.size)) {
      send(from, Withdraw{m.id, m.version});
      fail_gets(*r, Code::kStoreFull, false, "object " + m.id.to_string() + ": " + room_numbers(m.size));
      stop_asking(*r);
      return forget_if_unused(m.id);
    }
    if (may_pass_queue(*r, m.size)) copy = table_.add(m.id, m.version, m.size, Alignment::kCacheLine);
    if (copy == nullptr) {
      send(from, Withdraw{m.id, m.version});
      return wait_for_room(*r, m.size);
    }
    r->room_granted = false;
    copy->meta = m.meta;
    copy->fetch_started = now_;
    copy->complete_at_start = m.committed;
    for (std::uint32_t i = 0; i < m.slices; ++i) {
      const SliceRange range = slice_range(m.size, m.slices, i);
      copy->slices.push_back({.begin = range.begin, .watermark = range.begin, .end = range.end});
    }
    r->copy = copy->key;
    open_in_data_plane(*copy);
  }
  copy->committed = copy->committed || m.committed;
  timers_.cancel(r->want_timer);
  set_want_request(*r, 0);
  r->fetch = Fetch::kPulling;
  r->told_lost = false;
  // No parent for a slice: the plan has a better place soon, or we refuse whoever has it. Forgive them, after a while.
  const Duration not_yet = r->avoid.empty() ? limits_.retry_backoff / 2 : limits_.retry_backoff * 10;
  if (std::ranges::all_of(m.parents, [](const NodeRef& parent) { return parent.id.is_nil(); })) r->avoid.clear();
  for (std::uint32_t i = 0; i < m.slices; ++i) {
    if (copy->slices[i].transfer != 0 || copy->slices[i].done || copy->slices[i].combined) continue;
    if (m.parents[i].id.is_nil()) want_later(*r, not_yet);
    else if (!start_pull(*r, *copy, i, m.parents[i])) want_later(*r, limits_.retry_backoff * 2);
  }
  fulfil_gets(*r);  // those who follow
}

void Agent::Impl::on(NodeRef from, const InlineObject& m) {
  Record* r = find(m.id);
  if (r != nullptr && r->home != from) return;
  Copy* copy = r == nullptr ? nullptr : current_copy(*r);
  // Bytes that are on their way by a pull are not worth replacing; a partial copy that lost its parent is, and one of which
  // only a part comes into being here.
  const bool in_parts = copy != nullptr && copy->kept;
  const bool coming = copy != nullptr && !in_parts && (copy->state != CopyState::kGrowing || copy->pulls > 0);
  if (in_parts && copy->version == m.version && copy->holds > 0) {
    send(from, Withdraw{m.id, m.version});  // a slot still fills it: we ask again
    return announce(*r);
  }
  if (copy != nullptr && copy->version == m.version && coming) {
    if (from.id != self().id) announce(*r);
    return;
  }
  const bool needed = r != nullptr && (!r->gets.empty() || copy != nullptr || !r->watchers.empty());
  const bool wanted = needed && !r->put && from.id != self().id && m.meta.size() <= limits_.max_meta_bytes;
  if (wanted && copy != nullptr) detach(*r);
  if (wanted) copy = table_.add(m.id, m.version, payload_bytes_, Alignment::kCacheLine);
  if (!wanted || copy == nullptr) {
    send(from, Withdraw{m.id, m.version});
    // A reduce can use it where it is.
    if (wanted && !r->watchers.empty()) {
      timers_.cancel(r->notify_timer);
      r->notify_request = 0;
      arrived(*r, {m.id, from, m.version, payload_bytes_, m.meta});
    }
    if (wanted && !r->gets.empty()) wait_for_room(*r, payload_bytes_);
    return forget_if_unused(m.id);
  }
  r->room_granted = false;
  if (payload_bytes_ > 0) emit(effect::StorePayload{copy->extent});
  copy->meta = m.meta;
  copy->state = CopyState::kComplete;
  copy->committed = true;
  r->copy = copy->key;
  if (r->fetch == Fetch::kNeedsRoom) leave_room_queue(m.id);
  timers_.cancel(r->want_timer);
  r->fetch = Fetch::kIdle;
  table_.touch(*copy);
  // The answer to a question that we have asked again since: the home may have been told that we do not have it.
  if (r->want_request != m.request && r->notify_request != m.request) announce(*r);
  set_want_request(*r, 0);
  fulfil_gets(*r);
  became_ready(*r);
  reconsider_parked(m.id);
}

std::string Agent::Impl::waiting_for(const Record& record) const {
  const std::string home = "home " + record.home.id.to_string();
  const Copy* copy = record.copy == 0 ? nullptr : table_.find(record.copy);
  if (record.put) return "the client that writes it has not finished";
  if (record.fetch == Fetch::kNeedsRoom) {
    const auto asked = std::ranges::find(room_queue_, record.id, &RoomRequest::id);
    return "there is no room for it: " + room_numbers(asked == room_queue_.end() ? 0 : asked->size);
  }
  if (copy != nullptr)
    return format_size(front_bytes(*copy)) + " of " + format_size(copy->extent.size) + " had arrived" +
           (copy->slices.empty() ? "" : " from node " + copy->slices.front().parent.id.to_string());
  if (record.told_lost) return "it is lost, and nobody has put it again (" + home + ")";
  if (record.told_reducing) return "its reduce, which " + home + " coordinates, has not ended";
  if (record.told_waiting) return "nobody has put it yet, as far as any live node knows (" + home + ")";
  return home + " has not answered yet";
}

}  // namespace hoplite
