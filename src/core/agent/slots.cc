// Places in reduces that this node fills: its own sources and what it pulls from others, combined into an output.
//
// The coordinator orders, this node obeys and reports; it decides nothing but when to try again. Everything that a slot uses
// is held until the coordinator ends it, or is dead.
#include <algorithm>

#include "base/check.h"
#include "base/coverage.h"
#include "core/agent/impl.h"
#include "protocol/operator.h"

namespace hoplite {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 48;  // of a source: sums of such sizes do not overflow

// Which slice of its output a slot fills.
std::uint32_t out_slice(const SlotOrder& order) {
  return order.role == SlotRole::kRoot ? order.target_slice : order.slice;
}

}  // namespace

// --- orders --------------------------------------------------------------------------------------------------------------

// Orders come from peers: what does not fit together must not reach the data plane.
bool Agent::Impl::sane(const SlotOrder& o) const {
  const bool counts = o.slices >= 1 && o.slices <= limits_.max_slices && o.slice < o.slices && o.target_slices >= 1 &&
                      o.target_slices <= limits_.max_slices && o.target_slice < o.target_slices &&
                      o.own.size() + o.inputs.size() >= 1 && o.own.size() <= limits_.max_sources &&
                      o.inputs.size() <= limits_.max_sources && o.meta.size() <= limits_.max_meta_bytes;
  if (!counts || o.source_size > kMaxBytes) return false;
  const bool arithmetic = can_reduce(o.op, o.type) && o.divide_by >= 1 && (o.divide_by == 1 || is_floating(o.type)) &&
                          o.source_size % size_of(o.type) == 0;
  // Either the same slice of the target, or the slice is the whole target.
  const SliceRange range = slice_range(o.source_size, o.slices, o.slice);
  const bool same = o.target_size == o.source_size && o.slices == o.target_slices && o.slice == o.target_slice;
  const bool whole = o.target_slices == 1 && o.target_size == range.end - range.begin;
  return arithmetic && (o.role != SlotRole::kRoot || same || whole);
}

void Agent::Impl::on(NodeRef from, const SlotOrder& m) {
  const SlotKey key{m.target, m.slot};
  const auto existing = slots_.find(key);
  if (existing != slots_.end() && existing->second.coordinator == from && existing->second.order.version == m.version)
    return tell_coordinator(key);
  const auto refuse = [&](Code code, const std::string& why) { send_refusal(from, key, m.version, code, {}, why); };
  if (!sane(m)) return refuse(Code::kInvalidArgument, "the order makes no sense here; are the limits different?");
  if (existing == slots_.end() && slots_.size() >= limits_.max_objects)
    return refuse(Code::kStoreFull, "it has too many places in reduces");
  SlotRecord before;
  if (existing != slots_.end()) before = replace_slot(key);
  SlotRecord& slot = slots_[key];
  slot.coordinator = from;
  slot.order = m;
  cut_into_windows(slot);
  const SlotSource* missing = hold_sources(slot, before);
  if (missing == nullptr) take_over_inputs(before.feeds, slot);
  for (SlotFeed& feed : before.feeds) release_feed(feed);
  if (missing != nullptr) return refuse_slot(key, Code::kUnavailable, missing->id, "it is not here");
  if (m.role == SlotRole::kPin) {
    for (std::size_t i = 0; i < m.own.size(); ++i) export_copy(m.own[i].id, m.own[i].version, slot.own[i].key());
    return update_slot(key, SlotState::kDone);
  }
  start_slot(key);
  if (slots_.contains(key)) tell_coordinator(key);
}

// Ends the slot, but for what the next order may go on with.
SlotRecord Agent::Impl::replace_slot(const SlotKey& key) {
  SlotRecord& slot = slots_.at(key);
  if (slot.windows > 1 && slot.order.slice > 0) COVERAGE_MARK(slot_ordered_anew_between_its_windows);
  SlotRecord kept;
  kept.order = slot.order;
  for (const CopyUse& own : slot.own) kept.own.push_back(own.again());
  for (SlotFeed& feed : slot.feeds) {
    timers_.cancel(feed.retry);
    kept.feeds.push_back({feed.from, feed.copy.again(), feed.local, feed.slice, feed.valid, feed.done, {}});
    feed.local = true;  // its pulls go on
  }
  drop_slot(key);
  return kept;
}

// Its own sources stay until it ends, also when they are deleted meanwhile and the order is given anew. What is missing, or
// nullptr.
const SlotSource* Agent::Impl::hold_sources(SlotRecord& slot, const SlotRecord& before) {
  for (const SlotSource& source : slot.order.own) {
    const auto held = std::ranges::find(before.order.own, source);
    const Record* r = find(source.id);
    Copy* copy = r == nullptr ? nullptr : current_copy(*r);
    if (held != before.order.own.end())
      copy = &before.own[static_cast<std::size_t>(held - before.order.own.begin())].copy();
    if (copy == nullptr || copy->version != source.version || !copy->is_final() ||
        copy->extent.size != slot.order.source_size)
      return &source;
    slot.own.push_back(table_.use(*copy, CopyUser::kHold));
    open_in_data_plane(*copy);
  }
  return nullptr;
}

// An operator that needs whole contributions has all of them come here. They are pulled and combined part by part, so that
// memory is needed for one part of each.
void Agent::Impl::cut_into_windows(SlotRecord& slot) {
  SlotOrder& o = slot.order;
  const bool whole = limits_.always_whole || needs_whole_contributions(o.op);
  if (!whole || o.role != SlotRole::kRoot || o.slices != 1 || o.target_slices != 1) return;
  const std::uint64_t part = limits_.slice_bytes != 0 ? limits_.slice_bytes : kMiB;
  const std::uint64_t windows = std::clamp<std::uint64_t>(o.target_size / part, 1, limits_.max_slices);
  o.slices = o.target_slices = slot.windows = static_cast<std::uint32_t>(windows);
}

// As soon as its inputs of this node are there, and there is room.
void Agent::Impl::start_slot(const SlotKey& key) {
  if (!take_local_inputs(key) || begin_slot(key)) return;
  SlotRecord& slot = slots_.at(key);
  // Others may have room: an output is soon given up, and the target itself not much later.
  const bool root = slot.order.role == SlotRole::kRoot;
  const Duration patience = root ? limits_.request_retry : limits_.retry_backoff * limits_.output_backoffs;
  timers_.set(slot.room_deadline, now_ + patience, timer::SlotRoom{key});
  room_.wait(Room::Slot{key}, slot_bytes(slot.order));
}

std::uint64_t Agent::Impl::slot_bytes(const SlotOrder& order) const {
  const SliceRange range = slice_range(order.source_size, order.slices, 0);
  const std::uint64_t part = range.end - range.begin;
  const auto local = std::ranges::count(order.inputs, self(), &SlotInput::node);
  const std::uint64_t pulled = order.inputs.size() - static_cast<std::uint64_t>(local);
  return part * pulled + (order.role == SlotRole::kRoot ? order.target_size : part);
}

// False: there is no room yet. Otherwise it is under way, or has been refused.
bool Agent::Impl::begin_slot(const SlotKey& key) {
  const auto it = slots_.find(key);
  if (it == slots_.end() || it->second.out) return true;
  SlotRecord& slot = it->second;
  if (!table_.allocator().fits(slot_bytes(slot.order))) {
    refuse_slot(key, Code::kStoreFull, {}, room_numbers(slot_bytes(slot.order)));
    return true;
  }
  if (!reserve_slot(slot)) return false;
  timers_.cancel(slot.room_deadline);
  run_slot(key);
  return true;
}

// Everything has its place: combine, and pull what is to be combined.
void Agent::Impl::run_slot(const SlotKey& key) {
  SlotRecord& slot = slots_.at(key);
  for (std::size_t i = 0; i < slot.feeds.size(); ++i)
    if (!slot.feeds[i].local) pulls_.set_owner(slot.feeds[i].copy.key(), Pulls::InputOf{key, i});
  start_combine(key, slot);
  for (std::size_t i = 0; i < slot.feeds.size(); ++i) pull_feed(key, i);
}

// Room for the output and for what is pulled: all of it, or nothing.
bool Agent::Impl::reserve_slot(SlotRecord& slot) {
  const SlotOrder& o = slot.order;
  const SliceRange range = slice_range(o.source_size, o.slices, o.slice);
  const bool root = o.role == SlotRole::kRoot;
  // Several slices of one target may be made here.
  const Record* r = root ? find(o.target) : nullptr;
  Copy* out = r == nullptr ? nullptr : current_copy(*r);
  const bool shared = out != nullptr && out->version == o.version && out->life() == CopyLife::kCombining;
  if (!shared)
    out = table_.add(o.target, o.version, root ? o.target_size : range.size(), Alignment::kCacheLine, CopyLife::kHidden);
  if (out == nullptr) return false;
  if (!reserve_feeds(slot)) {
    if (!shared) table_.take_back(*out);
    return false;
  }
  slot.out = table_.use(*out, CopyUser::kHold);
  return true;
}

void Agent::Impl::start_combine(const SlotKey& key, SlotRecord& slot) {
  const SlotOrder& o = slot.order;
  const SliceRange range = slice_range(o.source_size, o.slices, o.slice);
  Copy& out = slot.out.copy();
  const bool root = o.role == SlotRole::kRoot;
  if (out.in_data_plane() == InDataPlane::kNotOpen) {
    if (root) open_target(slot);
    else open_part(out, o);
  }
  if (root) begin_root(slot);
  else export_copy(o.target, o.version, out.key);
  effect::Combine combine{out.key, out_slice(o), o.op, o.type, o.divide_by, !root, {}};
  for (const CopyUse& own : slot.own) combine.inputs.push_back({own.key(), 0, range.begin});
  for (const SlotFeed& feed : slot.feeds) combine.inputs.push_back({feed.copy.key(), o.slice, range.begin});
  combines_[{out.key, combine.slice}] = key;
  emit(std::move(combine));
}

// The output of a root is the object itself, from its first byte on.
void Agent::Impl::open_target(SlotRecord& slot) {
  const SlotOrder& o = slot.order;
  Copy& out = slot.out.copy();
  // A client that is putting it has lost: the home has given the id to the reduce.
  if (Record* putting = find(o.target); putting != nullptr && putting->put)
    fail_put(*putting, Code::kExists, "object " + o.target.to_string());
  Record& r = record(o.target);
  if (r.fetch != Fetch::kIdle) stop_asking(r);
  if (const Copy* old = current_copy(r)) {
    send(r.home, Withdraw{o.target, old->version});
    retire(r);
  }
  r.copy = out.key;
  table_.become(out, CopyLife::kCombining);
  out.meta = o.meta;
  out.cut_into(o.target_slices);
  if (slot.windows > 1)  // every part of it comes into being here
    for (CopySlice& slice : out.slices) slice = {slice.valid, SliceState::kAttached, true};
  pulls_.set_owner(out.key, Pulls::FetchOf{o.target});
  open_in_data_plane(out);
}

// One slice of the target comes into being here. If there are others, they are fetched from where they do.
void Agent::Impl::begin_root(SlotRecord& slot) {
  const SlotOrder& o = slot.order;
  Copy& out = slot.out.copy();
  CopySlice& slice = out.slices[o.target_slice];
  CHECK(slice.combined || slice.needs_parent(), o.target.to_string(), o.target_slice, static_cast<int>(slice.state));
  slice.combined = true;
  slice.state = SliceState::kAttached;
  Record& r = records_.at(o.target);
  announce(r);
  if (out.is_striped() && r.fetch == Fetch::kIdle) send_want(r);
  fulfil_gets(r);
  servable_.insert(o.target);
}

// --- combined -----------------------------------------------------------------------------------------------------------

void Agent::Impl::on(const event::Combined& e) {
  const auto it = combines_.find({e.out, e.slice});
  if (it == combines_.end()) return;
  const SlotKey key = it->second;
  combines_.erase(it);
  SlotRecord& slot = slots_.at(key);
  if (slot.order.slice + 1 < slot.windows) return next_window(key);
  // The output is all that is needed from now on. The sources stay: the order may be given again.
  for (SlotFeed& feed : slot.feeds) release_feed(feed);
  update_slot(key, SlotState::kDone);
}

// The same memory cannot serve again before the data plane has let go of it, so the next part gets its own.
void Agent::Impl::next_window(const SlotKey& key) {
  SlotRecord& slot = slots_.at(key);
  slot.order.target_slice = ++slot.order.slice;
  for (SlotFeed& feed : slot.feeds) {
    if (feed.local) continue;
    release_feed(feed);
    feed.done = false;
  }
  continue_slot(key);
}

// Goes on with the next part as soon as there is room for it.
void Agent::Impl::continue_slot(const SlotKey& key) {
  SlotRecord& slot = slots_.at(key);
  if (!reserve_feeds(slot)) {
    if (slot.waits_since == Time::never()) slot.waits_since = now_;
    if (slot.waits_since + limits_.request_retry <= now_)
      return refuse_slot(key, Code::kStoreFull, {}, room_numbers(slot_bytes(slot.order)));
    const Time soon = now_ + limits_.retry_backoff;
    return timers_.set(slot.room_deadline, soon, timer::SlotRoom{key});
  }
  slot.waits_since = Time::never();
  run_slot(key);
}

// --- reports -------------------------------------------------------------------------------------------------------------

void Agent::Impl::update_slot(const SlotKey& key, SlotState state) {
  slots_.at(key).state = state;
  tell_coordinator(key);
}

void Agent::Impl::tell_coordinator(const SlotKey& key) {
  SlotRecord& slot = slots_.at(key);
  const bool root = slot.order.role == SlotRole::kRoot && slot.state != SlotState::kDone;
  timers_.set(slot.refresh, now_ + (root ? limits_.want_refresh / limits_.reports_per_refresh : limits_.want_refresh),
              timer::SlotReport{key});
  SlotUpdate update{key.target, key.slot, slot.order.version, slot.state, Code::kOk, {}, {}, 0};
  if (slot.out) {
    const std::uint32_t slice = out_slice(slot.order);
    // Of the slices that come into being here: one, or all of them in turn.
    const SliceRange range = slice_range(slot.order.target_size, slot.order.target_slices, slice);
    update.bytes = progress_.valid(slot.out.key(), slice).front() - (root && slot.windows == 1 ? range.begin : 0);
  }
  send(slot.coordinator, std::move(update));
}

// By value, here and below: what is dropped may be where they came from.
void Agent::Impl::refuse_slot(SlotKey key, Code code, ObjectId culprit, const std::string& why) {
  const auto it = slots_.find(key);
  if (it == slots_.end()) return;
  const NodeRef coordinator = it->second.coordinator;
  const Version version = it->second.order.version;
  drop_slot(key);
  send_refusal(coordinator, key, version, code, culprit, why);
}

void Agent::Impl::send_refusal(NodeRef to, const SlotKey& key, Version version, Code code, ObjectId culprit,
                               const std::string& why) {
  send(to, SlotUpdate{key.target, key.slot, version, SlotState::kRefused, code, culprit,
                      "node " + self().id.to_string() + ": " + why, 0});
}

// The target may not be: it was deleted, or another version of it exists.
void Agent::Impl::refuse_slots_into(CopyKey out, Code code, const std::string& why) {
  std::vector<SlotKey> keys;
  for (const auto& [key, slot] : slots_)
    if (slot.out.key() == out) keys.push_back(key);
  for (const SlotKey& key : keys) refuse_slot(key, code, {}, why);
}

// --- the end -------------------------------------------------------------------------------------------------------------

void Agent::Impl::on(NodeRef from, const SlotEnd& m) {
  const SlotKey key{m.target, m.slot};
  const auto it = slots_.find(key);
  const bool ours = it != slots_.end() && it->second.coordinator == from && it->second.order.version == m.version;
  if (ours && m.commit && it->second.state == SlotState::kDone) commit_slot(key);
  else if (ours && !m.commit) drop_slot(key);
  if (m.commit) send(from, SlotUpdate{m.target, m.slot, m.version, SlotState::kEnded, Code::kOk, {}, {}, 0});
}

// The coordinator commits all slices or none: what holds for one slot here holds for its neighbours.
void Agent::Impl::commit_slot(const SlotKey& key) {
  const ObjectId target = key.target;
  const Version version = slots_.at(key).order.version;
  Copy& out = slots_.at(key).out.copy();
  std::vector<SlotKey> roots;
  for (auto it = slots_.lower_bound({target, 0}); it != slots_.end() && it->first.target == target; ++it)
    if (it->second.order.version == version && it->second.order.role == SlotRole::kRoot) roots.push_back(it->first);
  const bool ours = out.is_current();
  out.committed = true;
  for (const SlotKey& root : roots) {
    const SlotRecord& slot = slots_.at(root);
    const bool all = slot.windows > 1;
    const std::uint32_t first = all ? 0 : slot.order.target_slice;
    const std::uint32_t end = all ? out.slice_count() : first + 1;
    for (std::uint32_t i = first; ours && i < end; ++i) {
      out.slices[i].state = SliceState::kDone;
      emit(effect::SealCopy{out.key, i});
    }
    drop_slot(root);
  }
  if (!ours) return;
  servable_.insert(target);
  if (!std::ranges::all_of(out.slices, &CopySlice::is_done)) return;
  out.primary = true;
  complete_fetch(records_.at(target), out);
}

void Agent::Impl::drop_slot(SlotKey key) {
  SlotRecord slot = std::move(slots_.at(key));
  slots_.erase(key);
  timers_.cancel(slot.refresh);
  timers_.cancel(slot.room_deadline);
  room_.leave(Room::Slot{key});
  if (slot.order.role == SlotRole::kPin && slot.state == SlotState::kDone)
    for (const SlotSource& source : slot.order.own) unexport(source.id, source.version);
  if (slot.order.role == SlotRole::kInner && slot.out) unexport(key.target, slot.order.version);
  std::vector<CopyUse> held = std::move(slot.own);
  for (SlotFeed& feed : slot.feeds) {
    held.push_back(feed.copy.again());
    release_feed(feed);
  }
  // What is being combined is let go when the data plane has let go of it.
  if (combines_.erase({slot.out.key(), out_slice(slot.order)}) > 0)
    std::ranges::move(held, std::back_inserter(used_by_[slot.out.key()]));
  if (slot.out) drop_output(key.target, std::move(slot.out));
}

void Agent::Impl::drop_output(const ObjectId& target, CopyUse out) {
  Record* r = find(target);
  if (r == nullptr || r->copy != out.key() || out.copy().committed) return;
  send(r->home, Withdraw{target, out.copy().version});
  retire(*r);
}

// Nobody takes over: what it coordinated is lost, and who asks will be told why.
void Agent::Impl::drop_slots_of(NodeRef coordinator) {
  std::vector<SlotKey> keys;
  for (const auto& [key, slot] : slots_)
    if (slot.coordinator == coordinator) keys.push_back(key);
  for (const SlotKey& key : keys) {
    const auto it = slots_.find(key);
    if (it == slots_.end()) continue;  // it was refused when another one made room
    COVERAGE_MARK(coordinator_of_a_slot_died);
    const Version version = it->second.order.version;
    drop_slot(key);
    remember(key.target, version, coordinator_gone(coordinator));
  }
}

}  // namespace hoplite
