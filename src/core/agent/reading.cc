// Clients that read, and the homes' answers: parents to pull from, the bytes themselves, or why there are none.
#include <algorithm>

#include "base/check.h"
#include "base/coverage.h"
#include "core/agent/impl.h"

namespace hoplite {

void Agent::Impl::on_client(const RequestKey& key, ipc::Get& m) {
  if (m.id.is_nil()) return clients_.fail(key, Code::kInvalidArgument, "the nil id does not identify an object");
  if (tombstones_.contains(m.id) && !m.id.is_named())
    return clients_.fail(key, Code::kDeleted, "object " + m.id.to_string());
  Copy* copy = records_.copy_of(m.id);
  if (copy != nullptr && copy->is_complete()) return gets_.answer(key, *copy);
  if (!records_.contains(m.id) && too_many_objects(key, 1)) return;
  records_.add(m.id);
  begin_request(key, Clients::Kind::kGet, m.id, m.timeout_ns);
  gets_.add(m.id, {key, m.wait_if_lost, m.follow, m.priority});
  if (!puts_.contains(m.id) || puts_.is_claimed(m.id)) gets_.fulfil(m.id);
}

void Agent::Impl::on_client(const RequestKey& key, ipc::Prioritize& m) {
  clients_.answer(key, ipc::Prioritized{gets_.prioritize(m.id, key.client, m.priority)});
}

void Agent::Impl::on_client(const RequestKey& key, ipc::Release& m) {
  for (const CopyKey copy : m.copies) clients_.release(key.client, copy);
}

void Agent::Impl::on(const event::CopyGrown& e) {
  const Copy* copy = table_.find(e.copy);
  if (copy != nullptr && copy->is_current()) gets_.grown(copy->id);
}

void Agent::Impl::stop_get(const RequestKey& key, const ObjectId& id, Code code, const std::string& who) {
  const bool too_late = fetches_.got_room_just_now(id);
  const bool no_room = fetches_.state(id) == Fetches::State::kNeedsRoom || too_late;
  const std::string why = waiting_for(records_.at(id)) + (too_late ? "; there was no space for it until just now" : "");
  clients_.fail(key, no_room && code == Code::kTimedOut ? Code::kStoreFull : code, who + ": " + why);
  gets_.stop(id, key);
}

std::string Agent::Impl::waiting_for(const Record& record) const {
  const Copy* copy = records_.copy_of(record);
  if (puts_.contains(record.id)) return "the client that is writing it has not finished";
  if (fetches_.state(record.id) == Fetches::State::kNeedsRoom)
    return "there is no space for it: " + table_.room_numbers(room_.asked_by(Room::Fetch{record.id}));
  if (copy != nullptr)
    return format_size(copies_.front_bytes(*copy)) + " of " + format_size(copy->extent.size) + " had arrived" +
           (copy->slices.empty() ? "" : " from node " + pulls_.last_parent(copy->key, 0).id.to_string());
  return fetches_.waits_for(record.id) + unjoined();
}

std::string Agent::Impl::unjoined() const {
  return is_joining() ? ", and will not before this node has joined its cluster: no member has let it in yet" : "";
}

// --- wanting -------------------------------------------------------------------------------------------------------------

// Nobody here reads what is being fetched, and no peer depends on it.
bool Agent::Impl::is_unwanted(const Record& record) const {
  if (is_wanted_here(record.id) || puts_.contains(record.id)) return false;
  const Copy* copy = records_.copy_of(record);
  if (copy == nullptr) return !fetches_.is_idle(record.id);
  const bool has_children = copy->users(CopyUser::kServe) > 0 || serves_.is_parked(record.id);
  return copy->life() == CopyLife::kFetching && !has_children;
}

void Agent::Impl::abandon(Record& record) {
  stop_fetch(record);
  const Copy* copy = records_.copy_of(record);
  if (copy == nullptr) return;
  COVERAGE_MARK(fetch_abandoned);
  announcer_.withdraw(record.home, record.id, copy->version);
  ask_after_withdrawal(record.id);
  retire(record);
}

void Agent::Impl::ensure_fetch(const Record& record) {
  const bool wanted = is_wanted_here(record.id) && !puts_.contains(record.id) && record.copy == 0;
  if (wanted && fetches_.is_idle(record.id)) fetches_.begin(want_of(record));
}

void Agent::Impl::stop_fetch(const Record& record) {
  fetches_.stop(record.id);
  if (record.copy == 0) refuse_parked(record.id);
}

void Agent::Impl::refuse_parked(const ObjectId& id) {
  relays_.refuse(id);
  serves_.refuse_parked(id, out_.effects());
}

// What is here already, and what lacks a parent.
Want Agent::Impl::want_of(const Record& record) const {
  Want want;
  want.id = record.id;
  want.for_another = ferries_.contains(record.id) && !gets_.contains(record.id);
  const Copy* copy = records_.copy_of(record);
  if (copy == nullptr) return want;
  want.have_version = copy->version;
  for (std::uint32_t i = 0; i < copy->slices.size(); ++i) {
    const CopySlice& slice = copy->slices[i];
    if (slice.needs_parent()) want.slices.push_back({i, slice.valid.count(), serves_.children(copy->key, i) > 0});
  }
  return want;
}

// The home knows somebody who cannot reach those who have it.
void Agent::Impl::on(NodeRef from, const FetchFor& m) {
  if (from != records_.home(m.id) || m.id.is_nil() || (tombstones_.contains(m.id) && !m.id.is_named())) return;
  const Copy* copy = records_.copy_of(m.id);
  if (copy != nullptr && copy->is_complete()) return announcer_.tell(records_.at(m.id));
  if (puts_.contains(m.id) || m.receiver == self()) return;
  if (!ferries_.contains(m.id) && (ferries_.is_full() || records_.size() >= limits_.max_objects)) return;
  COVERAGE_MARK(fetches_for_another);
  records_.add(m.id);
  ferries_.order(m.id);
}

// --- the home has nothing --------------------------------------------------------------------------------------------------

void Agent::Impl::on(NodeRef from, const Waiting& m) {
  Record* r = records_.find(m.id);
  if (r == nullptr || r->home != from) return;
  if (notices_.has_asked(m.id, m.request)) return notices_.on_waiting(m.id);
  if (!fetches_.has_asked(m.id, m.request)) return;
  fetches_.on_waiting(m);
  const Copy* copy = records_.copy_of(*r);
  if (copy != nullptr && copy->life() == CopyLife::kFetching && copy->version != m.version) retire(*r);
}

void Agent::Impl::on(NodeRef from, const WantFailed& m) {
  Record* r = records_.find(m.id);
  if (r == nullptr || r->home != from) return;
  if (notices_.has_asked(m.id, m.request)) {
    notices_.on_failed(m.id, m.code);
    for (const ObjectId& target : notices_.watchers(m.id)) coordinator_.on_missing(target, m.id, m.code, m.text);
    return;
  }
  if (!fetches_.has_asked(m.id, m.request)) return;
  const Copy* copy = records_.copy_of(*r);
  if (copy != nullptr && (copy->life() == CopyLife::kFetching || copy->is_striped())) {
    announcer_.withdraw(from, m.id, copy->version);
    retire(*r);
  }
  fail_wanted(*r, m);
}

void Agent::Impl::fail_wanted(const Record& record, const WantFailed& m) {
  const std::string who = "object " + m.id.to_string();
  const std::string why = m.text.empty() ? "" : ": " + m.text;
  if (m.code != Code::kLost) {
    gets_.fail(m.id, m.code, who + why);
  } else {
    COVERAGE_MARK(get_told_lost);
    if (m.version != 0) announcer_.remember(m.id, m.version, m.text);
    gets_.fail_lost(m.id, who + (why.empty() ? ": every complete copy was on nodes that died" : why));
  }
  ferries_.end(m.id);
  if (gets_.contains(m.id)) {
    fetches_.on_lost(m.id);
    return fetches_.ask(want_of(record));
  }
  fetches_.end(m.id);
  refuse_parked(m.id);
}

// --- the home names parents ------------------------------------------------------------------------------------------------

void Agent::Impl::on(NodeRef from, const Assign& m) {
  Record* r = records_.find(m.id);
  if (r != nullptr && r->home != from) return;
  const bool sane = m.version != 0 && m.slices >= 1 && m.slices <= limits_.max_slices && m.parents.size() == m.slices &&
                    m.meta.size() <= limits_.max_meta_bytes;
  if (!sane) return;
  const Copy* copy = r == nullptr ? nullptr : records_.copy_of(*r);
  if (!fetches_.is_asking(m.id)) {
    // The home believes that we fetch it. Tell it how things are.
    if (copy != nullptr && copy->version == m.version) return announcer_.tell(*r);
    return announcer_.withdraw(from, m.id, m.version);
  }
  if (!fetches_.has_asked(m.id, m.request)) return;  // an answer to an older question: the newer one is on its way
  if (copy != nullptr && (copy->version != m.version || copy->slice_count() != m.slices)) {
    COVERAGE_MARK(fetch_restarted_with_another_version);
    retire(*r);
  }
  if (r->copy == 0 && !begin_fetch(*r, m)) return;
  pull_as_assigned(*r, m);
  gets_.fulfil(m.id);  // those that follow
  records_.can_be_pulled(m.id);
}

// False: there is no room for it.
bool Agent::Impl::begin_fetch(Record& record, const Assign& m) {
  if (!table_.allocator().fits(m.size)) {
    announcer_.withdraw(record.home, m.id, m.version);
    gets_.fail(m.id, Code::kStoreFull, "object " + m.id.to_string() + ": " + table_.room_numbers(m.size));
    ferries_.end(m.id);
    stop_fetch(record);
    return false;
  }
  Copy* copy = nullptr;
  if (fetches_.has_room_granted(m.id) || room_.is_free_for(m.size))
    copy = table_.add(m.id, m.version, m.size, Alignment::kCacheLine, CopyLife::kFetching);
  if (copy == nullptr) {
    announcer_.withdraw(record.home, m.id, m.version);
    wait_for_room(record, m.size);
    return false;
  }
  fetches_.take_granted_room(m.id);
  record.copy = copy->key;
  copy->meta = m.meta;
  if (m.committed) copy->timed_since = out_.now();
  copy->cut_into(m.slices);
  pulls_.set_owner(copy->key, Pulls::FetchOf{m.id});
  copies_.open(*copy);
  return true;
}

void Agent::Impl::wait_for_room(const Record& record, std::uint64_t bytes) {
  fetches_.wait_for_room(record.id, bytes);
  if (record.copy == 0 && fetches_.state(record.id) == Fetches::State::kNeedsRoom) refuse_parked(record.id);
}

void Agent::Impl::pull_as_assigned(const Record& record, const Assign& m) {
  Copy& copy = table_.at(record.copy);
  copy.committed = copy.committed || m.committed;
  fetches_.on_assigned(m.id);
  const Duration not_yet = fetches_.patience(m.id);
  if (std::ranges::all_of(m.parents, [](const NodeRef& parent) { return parent.id.is_nil(); })) fetches_.forgive(m.id);
  for (std::uint32_t i = 0; i < m.slices; ++i) {
    if (!copy.slices[i].needs_parent()) continue;
    copy.slices[i].ticket = {record.home, m.number};
    if (m.parents[i].id.is_nil()) fetches_.ask_later(m.id, not_yet);
    else if (!start_pull(copy, i, m.parents[i])) fetches_.ask_later(m.id, limits_.settle_after());
  }
}

// --- the bytes come with the answer ----------------------------------------------------------------------------------------

namespace {

// By a pull, or from a client or a slot here: not worth replacing. A partial copy that lost its parent is, and one of which
// only a part comes into being here.
bool is_coming(const Copy& copy) {
  return !copy.is_striped() && (copy.life() != CopyLife::kFetching || copy.users(CopyUser::kPull) > 0);
}

}  // namespace

void Agent::Impl::on(NodeRef from, const InlineObject& m) {
  if (m.version == 0) return;
  Record* r = records_.find(m.id);
  // A relay answers for the home, and only a question that is still open: of others the home knows what became of them.
  const bool relayed = r != nullptr && r->home != from;
  if (relayed && (!fetches_.has_asked(m.id, m.request) || r->home == self())) return;
  const NodeRef home = relayed ? r->home : from;
  Copy* copy = records_.copy_of(m.id);
  const bool same = copy != nullptr && copy->version == m.version;
  if (same && is_coming(*copy)) {
    if (home.id != self().id) announcer_.tell(*r);
    return;
  }
  const bool filled_by_a_slot = same && copy->is_striped() && copy->users(CopyUser::kHold) > 0;
  const bool needed = copy != nullptr || is_wanted_here(m.id) || notices_.is_watched(m.id);
  const bool wanted = needed && !filled_by_a_slot && !puts_.contains(m.id) && home.id != self().id;
  if (!wanted || m.meta.size() > limits_.max_meta_bytes) {
    announcer_.withdraw(home, m.id, m.version);
    if (filled_by_a_slot) announcer_.tell(*r);  // and we ask again
    return;
  }
  const bool replaces = copy != nullptr;
  retire(*r);
  copy = table_.add(m.id, m.version, payload_bytes_, Alignment::kCacheLine, CopyLife::kComplete);
  if (copy == nullptr) return no_room_for(*r, home, m);
  if (payload_bytes_ > 0) out_.emit(effect::StorePayload{copy->extent});
  copy->meta = m.meta;
  r->copy = copy->key;
  table_.touch(*copy);
  // The answer to a question that we have asked again since: the home may have been told that we do not have it. So it has been
  // if others waited to be passed on what is replaced here.
  const bool expected = fetches_.has_asked(m.id, m.request) || notices_.has_asked(m.id, m.request);
  if (relayed || !expected || replaces) announcer_.tell(*r);
  fetches_.end(m.id);
  ferries_.end(m.id);
  gets_.fulfil(m.id);
  became_ready(*r);
  records_.can_be_pulled(m.id);
}

// A reduce can use it where it is.
void Agent::Impl::no_room_for(const Record& record, NodeRef home, const InlineObject& m) {
  announcer_.withdraw(home, m.id, m.version);
  if (notices_.contains(m.id)) {
    arrived({m.id, home, m.version, payload_bytes_, m.meta});
    notices_.on_ready(m.id);
  }
  if (is_wanted_here(m.id)) wait_for_room(record, payload_bytes_);
}

}  // namespace hoplite
