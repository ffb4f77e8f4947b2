// Clients that read, and the conversation with the home about it.
#include <algorithm>

#include "base/coverage.h"
#include "core/agent/impl.h"

namespace hoplite {

void Agent::Impl::on_client(ClientKey client, std::uint64_t request, ipc::Get& m) {
  if (m.id.is_nil()) return fail(client, request, Code::kInvalidArgument, "the nil id names no object");
  if (tombstones_.contains(m.id)) return fail(client, request, Code::kDeleted, "object " + m.id.to_string());
  if (find(m.id) == nullptr && too_many_objects(client, request, 1)) return;
  Record& r = record(m.id);
  Copy* copy = current_copy(r);
  GetRequest get{{client, request}, m.wait_if_lost, m.follow, 0, m.priority};
  if (copy != nullptr && copy->is_complete()) return send_view(get, *copy);
  begin_request(get.key, Clients::Kind::kGet, m.id, m.timeout_ns);
  if (copy != nullptr && get.follow && !(r.put && !r.put->claimed)) open_follow(get, *copy);
  r.gets.push_back(get);
  touched_.insert(m.id);
}

void Agent::Impl::on_client(ClientKey client, std::uint64_t request, ipc::Prioritize& m) {
  bool under_way = false;
  if (Record* r = find(m.id))
    for (GetRequest& get : r->gets)
      if (get.key.client == client) get.priority = m.priority, under_way = true;
  touched_.insert(m.id);
  reply(client, request, ipc::Prioritized{under_way});
}

void Agent::Impl::on_client(ClientKey client, std::uint64_t, ipc::Release& m) {
  for (CopyKey copy : m.copies) clients_.release_view(client, copy);
}

// --- answering -----------------------------------------------------------------------------------------------------------

void Agent::Impl::send_view(GetRequest& get, Copy& copy) {
  clients_.hold_view(get.key.client, table_.use(copy, CopyUser::kView));
  table_.touch(copy);
  reply(get.key.client, get.key.request,
        ipc::View{copy.key, copy.version, copy.extent.offset, copy.extent.size, copy.meta});
}

void Agent::Impl::open_follow(GetRequest& get, Copy& copy) {
  if (get.followed == copy.key) return;
  get.followed = copy.key;
  clients_.hold_view(get.key.client, table_.use(copy, CopyUser::kView));
  open_in_data_plane(copy);
  if (!copy.followed) emit(effect::FollowCopy{copy.key});
  copy.followed = true;
  emit(effect::Reply{
      get.key.client, get.key.request,
      ipc::Opened{copy.key, copy.version, copy.extent.offset, copy.extent.size, copy.meta, front_bytes(copy)}});
}

void Agent::Impl::on(const event::CopyGrown& e) {
  const Copy* copy = table_.find(e.copy);
  Record* r = copy == nullptr || !copy->is_current() ? nullptr : find(copy->id);
  if (r == nullptr) return;
  for (const GetRequest& get : r->gets)
    if (get.followed == e.copy) emit(effect::Reply{get.key.client, get.key.request, ipc::Grown{front_bytes(*copy)}});
}

// What they were shown will not become the object.
void Agent::Impl::reset_followers(Record& record) {
  for (GetRequest& get : record.gets) {
    if (get.followed == 0) continue;
    get.followed = 0;
    emit(effect::Reply{get.key.client, get.key.request, ipc::Reset{}});
  }
}

// Answers what the current copy allows: all gets if it is complete, the followers if it grows.
void Agent::Impl::fulfil_gets(Record& record) {
  Copy* copy = current_copy(record);
  if (copy == nullptr) return;
  if (!copy->is_complete()) {
    for (GetRequest& get : record.gets)
      if (get.follow) open_follow(get, *copy);
    return;
  }
  for (GetRequest& get : std::exchange(record.gets, {})) send_view(get, *copy);
}

void Agent::Impl::fail_gets(Record& record, Code code, bool only_those_who_mind_loss, const std::string& why) {
  for (const GetRequest& get : std::exchange(record.gets, {})) {
    if (only_those_who_mind_loss && get.wait_if_lost) record.gets.push_back(get);
    else fail(get.key.client, get.key.request, code, why);
  }
  touched_.insert(record.id);
}

// Nobody here reads what is being fetched, and no peer depends on it.
bool Agent::Impl::is_unwanted(const Record& record) const {
  if (!record.gets.empty() || record.put) return false;
  const Copy* copy = current_copy(record);
  if (copy == nullptr) return record.fetch != Fetch::kIdle;
  const bool has_children = copy->users(CopyUser::kServe) > 0 || serves_.is_parked(record.id);
  return copy->life() == CopyLife::kFetching && !has_children;
}

void Agent::Impl::abandon(Record& record) {
  stop_asking(record);
  const Copy* copy = current_copy(record);
  if (copy == nullptr) return;
  COVERAGE_MARK(fetch_abandoned);
  send(record.home, Withdraw{record.id, copy->version});
  retire(record);
}

// --- asking the home -----------------------------------------------------------------------------------------------------

void Agent::Impl::ensure_fetch(Record& record) {
  if (record.gets.empty() || record.fetch != Fetch::kIdle || record.put || record.copy != 0) return;
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
      const CopySlice& slice = copy->slices[i];
      if (slice.needs_parent()) want.slices.push_back({i, slice.valid.count(), serves_.children(copy->key, i) > 0});
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
  if (record.fetch == Fetch::kNeedsRoom) room_.leave(Room::Fetch{record.id});
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
    if (copy != nullptr && copy->life() == CopyLife::kFetching && copy->version != m.version) retire(*r);
    // It is there, but we refuse whoever has it: forgive them, after a while.
    const bool picky = m.version != 0 && !r->avoid.empty();
    r->avoid.clear();
    const Duration pause = picky ? std::min(limits_.forgive_after(), limits_.want_refresh) : limits_.want_refresh;
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
  if (Copy* copy = current_copy(*r); copy != nullptr && (copy->life() == CopyLife::kFetching || copy->is_striped())) {
    send(from, Withdraw{m.id, copy->version});
    retire(*r);
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
    return refuse_parked(m.id);
  }
  r->told_lost = true;
  r->avoid.clear();
  send_want(*r);
}

// --- the home's answer ---------------------------------------------------------------------------------------------------

void Agent::Impl::on(NodeRef from, const Assign& m) {
  Record* r = find(m.id);
  if (r != nullptr && r->home != from) return;
  const bool sane = m.version != 0 && m.slices >= 1 && m.slices <= limits_.max_slices && m.parents.size() == m.slices &&
                    m.meta.size() <= limits_.max_meta_bytes;
  if (!sane) return;
  const Copy* copy = r == nullptr ? nullptr : current_copy(*r);
  const bool asked = r != nullptr && r->fetch == Fetch::kAsking;
  if (asked && m.request != r->want_request) return;  // an answer to an older question: the newer one is on its way
  if (!asked) {
    // The home believes that we fetch it. Tell it how things are.
    if (copy != nullptr && copy->version == m.version) return announce(*r);
    return send(from, Withdraw{m.id, m.version});
  }
  if (copy != nullptr && (copy->version != m.version || copy->slice_count() != m.slices)) {
    COVERAGE_MARK(fetch_restarted_with_another_version);
    retire(*r);
  }
  if (r->copy == 0 && !begin_fetch(*r, m)) return;
  pull_as_assigned(*r, m);
  fulfil_gets(*r);  // those who follow
  servable_.insert(m.id);
}

// False: there is no room for it.
bool Agent::Impl::begin_fetch(Record& record, const Assign& m) {
  if (!table_.allocator().fits(m.size)) {
    send(record.home, Withdraw{m.id, m.version});
    fail_gets(record, Code::kStoreFull, false, "object " + m.id.to_string() + ": " + room_numbers(m.size));
    stop_asking(record);
    return false;
  }
  Copy* copy = nullptr;
  if (record.room_granted || room_.is_free_for(m.size))
    copy = table_.add(m.id, m.version, m.size, Alignment::kCacheLine, CopyLife::kFetching);
  if (copy == nullptr) {
    send(record.home, Withdraw{m.id, m.version});
    wait_for_room(record, m.size);
    return false;
  }
  record.room_granted = false;
  record.copy = copy->key;
  copy->meta = m.meta;
  if (m.committed) copy->timed_since = now_;
  copy->cut_into(m.slices);
  pulls_.set_owner(copy->key, Pulls::FetchOf{m.id});
  open_in_data_plane(*copy);
  return true;
}

void Agent::Impl::pull_as_assigned(Record& record, const Assign& m) {
  Copy& copy = table_.at(record.copy);
  copy.committed = copy.committed || m.committed;
  timers_.cancel(record.want_timer);
  set_want_request(record, 0);
  record.fetch = Fetch::kPulling;
  record.told_lost = false;
  // No parent for a slice: the plan has a better place soon, or we refuse whoever has it. Forgive them, after a while.
  const Duration not_yet = record.avoid.empty() ? limits_.retry_backoff / 2 : limits_.forgive_after();
  if (std::ranges::all_of(m.parents, [](const NodeRef& parent) { return parent.id.is_nil(); })) record.avoid.clear();
  for (std::uint32_t i = 0; i < m.slices; ++i) {
    if (!copy.slices[i].needs_parent()) continue;
    copy.slices[i].ticket = {record.home, m.number};
    if (m.parents[i].id.is_nil()) want_later(record, not_yet);
    else if (!start_pull(record, copy, i, m.parents[i])) want_later(record, limits_.settle_after());
  }
}

void Agent::Impl::on(NodeRef from, const InlineObject& m) {
  Record* r = find(m.id);
  if (m.version == 0) return;
  // A relay answers for the home, and only a question that is still open: of others the home knows what became of them.
  const bool relayed = r != nullptr && r->home != from;
  if (relayed && (r->fetch != Fetch::kAsking || r->want_request != m.request || r->home == self())) return;
  if (relayed) from = r->home;
  Copy* copy = r == nullptr ? nullptr : current_copy(*r);
  // Bytes that are on their way by a pull are not worth replacing; a partial copy that lost its parent is, and one of which
  // only a part comes into being here.
  const bool in_parts = copy != nullptr && copy->is_striped();
  const bool coming =
      copy != nullptr && !in_parts && (copy->life() != CopyLife::kFetching || copy->users(CopyUser::kPull) > 0);
  if (in_parts && copy->version == m.version && copy->users(CopyUser::kHold) > 0) {
    send(from, Withdraw{m.id, m.version});  // a slot still fills it: we ask again
    return announce(*r);
  }
  if (copy != nullptr && copy->version == m.version && coming) {
    if (from.id != self().id) announce(*r);
    return;
  }
  const bool needed = r != nullptr && (!r->gets.empty() || copy != nullptr || !r->watchers.empty());
  const bool wanted = needed && !r->put && from.id != self().id && m.meta.size() <= limits_.max_meta_bytes;
  if (wanted) retire(*r);
  if (wanted) copy = table_.add(m.id, m.version, payload_bytes_, Alignment::kCacheLine, CopyLife::kComplete);
  if (!wanted || copy == nullptr) {
    send(from, Withdraw{m.id, m.version});
    // A reduce can use it where it is.
    if (wanted && !r->watchers.empty()) {
      timers_.cancel(r->notify_timer);
      r->notify_request = 0;
      touched_.insert(m.id);
      arrived(*r, {m.id, from, m.version, payload_bytes_, m.meta});
    }
    if (wanted && !r->gets.empty()) wait_for_room(*r, payload_bytes_);
    return;
  }
  r->room_granted = false;
  if (payload_bytes_ > 0) emit(effect::StorePayload{copy->extent});
  copy->meta = m.meta;
  r->copy = copy->key;
  if (r->fetch == Fetch::kNeedsRoom) room_.leave(Room::Fetch{m.id});
  timers_.cancel(r->want_timer);
  r->fetch = Fetch::kIdle;
  table_.touch(*copy);
  // The answer to a question that we have asked again since: the home may have been told that we do not have it.
  if (relayed || (r->want_request != m.request && r->notify_request != m.request)) announce(*r);
  set_want_request(*r, 0);
  fulfil_gets(*r);
  became_ready(*r);
  servable_.insert(m.id);
}

std::string Agent::Impl::waiting_for(const Record& record) const {
  const std::string home = "home " + record.home.id.to_string();
  const Copy* copy = current_copy(record);
  if (record.put) return "the client that writes it has not finished";
  if (record.fetch == Fetch::kNeedsRoom)
    return "there is no room for it: " + room_numbers(room_.asked_by(Room::Fetch{record.id}));
  if (copy != nullptr)
    return format_size(front_bytes(*copy)) + " of " + format_size(copy->extent.size) + " had arrived" +
           (copy->slices.empty() ? "" : " from node " + pulls_.last_parent(copy->key, 0).id.to_string());
  if (record.told_lost) return "it is lost, and nobody has put it again (" + home + ")";
  if (record.told_reducing) return "its reduce, which " + home + " coordinates, has not ended";
  if (record.told_waiting) return "nobody has put it yet, as far as any live node knows (" + home + ")";
  return home + " has not answered yet";
}

}  // namespace hoplite
