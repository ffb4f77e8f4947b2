#include "core/agent/slots.h"

#include <algorithm>

#include "base/check.h"
#include "base/coverage.h"
#include "protocol/operator.h"

namespace hoplite {
Slots::Slots(Parts parts, Host& host)
    : limits_(parts.limits),
      timers_(parts.timers),
      table_(parts.table),
      records_(parts.records),
      copies_(parts.copies),
      room_(parts.room),
      pulls_(parts.pulls),
      out_(parts.out),
      host_(host) {}

// --- orders --------------------------------------------------------------------------------------------------------------

// Orders come from peers: what does not fit together must not reach the data plane.
bool Slots::is_sane(const SlotOrder& o) const {
  const bool counts = o.slices >= 1 && o.slices <= limits_.max_slices && o.slice < o.slices && o.target_slices >= 1 &&
                      o.target_slices <= limits_.max_slices && o.target_slice < o.target_slices &&
                      o.own.size() + o.inputs.size() >= 1 && o.own.size() <= limits_.max_sources &&
                      o.inputs.size() <= limits_.max_sources && o.meta.size() <= limits_.max_meta_bytes;
  if (!counts || o.source_size > limits_.max_source_bytes) return false;
  const bool arithmetic = can_reduce(o.op, o.type) && o.divide_by >= 1 && (o.divide_by == 1 || is_floating(o.type)) &&
                          o.source_size % size_of(o.type) == 0;
  // Either the same slice of the target, or the slice is the whole target.
  const SliceRange range = slice_range(o.source_size, o.slices, o.slice);
  const bool same = o.target_size == o.source_size && o.slices == o.target_slices && o.slice == o.target_slice;
  const bool whole = o.target_slices == 1 && o.target_size == range.size();
  return arithmetic && (o.role != SlotRole::kRoot || same || whole);
}

void Slots::on_order(NodeRef from, const SlotOrder& m) {
  const SlotKey key{m.target, m.slot};
  const auto existing = slots_.find(key);
  if (existing != slots_.end() && existing->second.coordinator == from && existing->second.order.version == m.version) {
    existing->second.order.priority = m.priority;
    if (Slot& slot = existing->second; slot.out) {
      if (slot.is_root()) slot.out.copy().least_priority = m.priority;
      demand_changed(slot.out.key(), slot.out_slice());
    }
    return report(key);
  }
  const auto refuse_it = [&](Code code, const std::string& why) { send_refusal(from, key, m.version, code, {}, why); };
  if (!is_sane(m)) return refuse_it(Code::kInvalidArgument, "the order makes no sense here; are the limits different?");
  const Copy* made = m.role == SlotRole::kRoot ? records_.copy_of(m.target) : nullptr;
  if (made != nullptr && made->is_complete()) return refuse_it(Code::kExists, "the target exists here");
  if (existing == slots_.end() && slots_.size() >= limits_.max_objects)
    return refuse_it(Code::kStoreFull, "it has too many places in reduces");
  Slot before;
  if (existing != slots_.end()) before = replace(key);
  Slot& slot = slots_[key];
  slot.coordinator = from;
  slot.order = m;
  slot.windows = windows_of(m);
  const SlotSource* missing = hold_sources(slot, before);
  if (missing == nullptr) take_over_inputs(before.feeds, key, slot);
  prioritize_inputs(slot);
  for (Feed& feed : before.feeds) release(feed);
  if (missing != nullptr) return refuse(key, Code::kUnavailable, missing->id, "it is not here");
  if (m.role == SlotRole::kKeep) {
    for (std::size_t i = 0; i < m.own.size(); ++i) export_copy(m.own[i].id, m.own[i].version, slot.own[i].key());
    slot.state = SlotState::kDone;
  } else {
    start(key);
  }
  if (slots_.contains(key)) report(key);
}

// Ends the slot, but for what the next order may go on with.
Slots::Slot Slots::replace(const SlotKey& key) {
  Slot& slot = slots_.at(key);
  if (slot.window > 0) COVERAGE_MARK(slot_ordered_anew_between_its_windows);
  Slot kept;
  kept.order = slot.order;
  for (const CopyUse& own : slot.own) kept.own.push_back(own.again());
  for (Feed& feed : slot.feeds) {
    timers_.cancel(feed.retry);
    kept.feeds.push_back({feed.from, feed.copy.again(), feed.local, feed.slice, feed.valid, feed.done, {}});
    feed.local = true;  // its pulls go on
  }
  drop(key);
  return kept;
}

// Its own sources stay until it ends, also when they are deleted meanwhile and the order is given anew. What is missing, or
// nullptr.
const SlotSource* Slots::hold_sources(Slot& slot, const Slot& before) {
  for (const SlotSource& source : slot.order.own) {
    const auto held = std::ranges::find(before.order.own, source);
    Copy* copy = records_.copy_of(source.id);
    if (held != before.order.own.end())
      copy = &before.own[static_cast<std::size_t>(held - before.order.own.begin())].copy();
    if (copy == nullptr || copy->version != source.version || !copy->is_final() ||
        copy->extent.size != slot.order.source_size)
      return &source;
    slot.own.push_back(table_.use(*copy, CopyUser::kHold));
    copies_.open(*copy);
  }
  return nullptr;
}

// An operator that needs whole contributions has all of them come here. They are pulled and combined part by part, so that
// memory is needed for one part of each.
std::uint32_t Slots::windows_of(const SlotOrder& o) const {
  const bool whole = limits_.always_whole || needs_whole_contributions(o.op);
  if (!whole || o.role != SlotRole::kRoot || o.slices != 1 || o.target_slices != 1) return 1;
  const std::uint64_t part = limits_.slice_bytes != 0 ? limits_.slice_bytes : kMiB;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(o.target_size / part, 1, limits_.max_slices));
}

// As soon as its inputs of this node are there, nobody here puts what it makes, and there is room.
void Slots::start(const SlotKey& key) {
  if (!take_local_inputs(slots_.at(key)) || take_room(key)) return;
  Slot& slot = slots_.at(key);
  // Others may have room: an output is soon given up, and the target itself not much later.
  const Duration patience = slot.is_root() ? limits_.request_retry : limits_.retry_backoff * limits_.output_backoffs;
  timers_.set(slot.room_due, out_.now() + patience, timer::SlotRoom{key});
  room_.wait(Room::Slot{key}, bytes_of(slot));
}

std::uint64_t Slots::bytes_of(const Slot& slot) const {
  const std::uint64_t part = slice_range(slot.order.source_size, slot.slices(), 0).size();
  const auto local = std::ranges::count(slot.order.inputs, out_.self(), &SlotInput::node);
  const std::uint64_t pulled = slot.order.inputs.size() - static_cast<std::uint64_t>(local);
  return part * pulled + (slot.is_root() ? slot.order.target_size : part);
}

bool Slots::take_room(const SlotKey& key) {
  Slot& slot = slots_.at(key);
  CHECK(!slot.out, key.target, key.slot);
  if (slot.is_root() && !host_.may_become_target(key.target)) {
    COVERAGE_MARK(root_waits_for_a_put);
    timers_.cancel(slot.room_due);
    return true;
  }
  if (!table_.allocator().fits(bytes_of(slot))) {
    refuse(key, Code::kStoreFull, {}, table_.room_numbers(bytes_of(slot)));
    return true;
  }
  if (!reserve(slot)) return false;
  timers_.cancel(slot.room_due);
  run(key);
  return true;
}

void Slots::start_roots_of(const ObjectId& target) {
  std::vector<SlotKey> waiting;
  for (auto it = slots_.lower_bound({target, 0}); it != slots_.end() && it->first.target == target; ++it)
    if (it->second.is_root() && !it->second.out && !it->second.room_due) waiting.push_back(it->first);
  for (const SlotKey& key : waiting) {
    const Copy* copy = records_.copy_of(target);
    if (copy != nullptr && copy->is_complete()) refuse(key, Code::kExists, {}, "the target exists here");
    else start(key);
  }
}

void Slots::on_timer(const timer::SlotRoom& t) {
  Slot& slot = slots_.at(t.slot);
  slot.room_due.reset();
  if (slot.out) return continue_with_window(t.slot);
  refuse(t.slot, Code::kStoreFull, {}, table_.room_numbers(bytes_of(slot)));
}

// Everything has its place: combine, and pull what is to be combined.
void Slots::run(const SlotKey& key) {
  Slot& slot = slots_.at(key);
  for (std::size_t i = 0; i < slot.feeds.size(); ++i)
    if (!slot.feeds[i].local) pulls_.set_owner(slot.feeds[i].copy.key(), Pulls::InputOf{key, i});
  combine(key, slot);
  prioritize_inputs(slot);
  for (std::size_t i = 0; i < slot.feeds.size(); ++i) pull(key, i);
}

// Room for the output and for what is pulled: all of it, or nothing.
bool Slots::reserve(Slot& slot) {
  const SlotOrder& o = slot.order;
  // Several slices of one target may be made here.
  Copy* out = slot.is_root() ? records_.copy_of(o.target) : nullptr;
  const bool shared = out != nullptr && out->version == o.version && out->life() == CopyLife::kCombining;
  const std::uint64_t size = slot.is_root() ? o.target_size : slot.range().size();
  if (!shared) out = table_.add(o.target, o.version, size, Alignment::kCacheLine, CopyLife::kHidden);
  if (out == nullptr) return false;
  if (!reserve_feeds(slot)) {
    if (!shared) table_.take_back(*out);
    return false;
  }
  slot.out = table_.use(*out, CopyUser::kHold);
  return true;
}

void Slots::combine(const SlotKey& key, Slot& slot) {
  const SlotOrder& o = slot.order;
  Copy& out = slot.out.copy();
  if (out.in_data_plane() == InDataPlane::kNotOpen) {
    if (slot.is_root()) open_target(slot);
    else open_part(out, slot);
  }
  if (slot.is_root()) begin_root(slot);
  else export_copy(o.target, o.version, out.key);
  effect::Combine combine{out.key, slot.out_slice(), o.op, o.type, o.divide_by, !slot.is_root(), {}};
  const std::uint64_t begin = slot.range().begin;
  for (const CopyUse& own : slot.own) combine.inputs.push_back({own.key(), 0, begin});
  for (const Feed& feed : slot.feeds) combine.inputs.push_back({feed.copy.key(), slot.slice(), begin});
  const bool fresh = combining_.try_emplace({out.key, combine.slice}, key).second;
  CHECK(fresh, out.key, combine.slice);
  out_.emit(std::move(combine));
}

// The output of a root is the object itself, from its first byte on.
void Slots::open_target(Slot& slot) {
  Copy& out = slot.out.copy();
  table_.become(out, CopyLife::kCombining);
  out.meta = slot.order.meta;
  out.least_priority = slot.order.priority;
  out.cut_into(slot.target_slices());
  if (slot.windows > 1)  // every part of it comes into being here
    for (CopySlice& slice : out.slices) slice = {slice.valid, SliceState::kAttached, true};
  host_.become_target(out);
}

void Slots::begin_root(Slot& slot) {
  Copy& out = slot.out.copy();
  CopySlice& slice = out.slices[slot.out_slice()];
  CHECK(slice.combined || slice.needs_parent(), out.key, slot.out_slice(), slice.state);
  slice.combined = true;
  slice.state = SliceState::kAttached;
  host_.target_grows(out);
}

// --- combined -----------------------------------------------------------------------------------------------------------

void Slots::on_combined(const event::Combined& e) {
  const auto it = combining_.find({e.out, e.slice});
  if (it == combining_.end()) return;
  const SlotKey key = it->second;
  combining_.erase(it);
  Slot& slot = slots_.at(key);
  if (slot.window + 1 < slot.windows) return next_window(key);
  // The output is all that is needed from now on. The sources stay: the order may be given again.
  for (Feed& feed : slot.feeds) release(feed);
  slot.state = SlotState::kDone;
  report(key);
}

// The same memory cannot serve again before the data plane has let go of it, so the next part gets its own.
void Slots::next_window(const SlotKey& key) {
  Slot& slot = slots_.at(key);
  ++slot.window;
  for (Feed& feed : slot.feeds) {
    if (feed.local) continue;
    release(feed);
    feed.done = false;
  }
  continue_with_window(key);
}

// Goes on with the next part as soon as there is room for it.
void Slots::continue_with_window(const SlotKey& key) {
  Slot& slot = slots_.at(key);
  if (!reserve_feeds(slot)) {
    if (slot.waits_since == Time::never()) slot.waits_since = out_.now();
    if (slot.waits_since + limits_.request_retry <= out_.now())
      return refuse(key, Code::kStoreFull, {}, table_.room_numbers(bytes_of(slot)));
    return timers_.set(slot.room_due, out_.now() + limits_.retry_backoff, timer::SlotRoom{key});
  }
  slot.waits_since = Time::never();
  run(key);
}

// --- reports -------------------------------------------------------------------------------------------------------------

void Slots::report(const SlotKey& key) {
  Slot& slot = slots_.at(key);
  const bool grows = slot.is_root() && slot.state != SlotState::kDone;
  const Duration next = grows ? limits_.want_refresh / limits_.reports_per_refresh : limits_.want_refresh;
  timers_.set(slot.refresh, out_.now() + next, timer::SlotReport{key});
  SlotUpdate update{key.target, key.slot, slot.order.version, slot.state, Code::kOk, {}, {}, 0};
  if (slot.out) {
    // Of the slices that come into being here: one, or all of them in turn.
    const SliceRange range = slice_range(slot.order.target_size, slot.target_slices(), slot.out_slice());
    const std::uint64_t before = grows && slot.windows == 1 ? range.begin : 0;
    const std::uint64_t front = copies_.valid(slot.out.copy(), slot.out_slice()).front();
    update.bytes = std::max(front, before) - before;  // it may just have been opened
  }
  out_.send(slot.coordinator, std::move(update));
}

void Slots::report_to(NodeRef coordinator) {
  for (const auto& [key, slot] : slots_)
    if (slot.coordinator == coordinator) report(key);
}

// By value, here and below: what is dropped may be where they came from.
void Slots::refuse(SlotKey key, Code code, ObjectId culprit, const std::string& why) {
  const auto it = slots_.find(key);
  if (it == slots_.end()) return;
  const NodeRef coordinator = it->second.coordinator;
  const Version version = it->second.order.version;
  drop(key);
  send_refusal(coordinator, key, version, code, culprit, why);
}

void Slots::send_refusal(NodeRef to, const SlotKey& key, Version version, Code code, ObjectId culprit,
                         const std::string& why) {
  out_.send(to, SlotUpdate{key.target, key.slot, version, SlotState::kRefused, code, culprit,
                           "node " + out_.self().id.to_string() + ": " + why, 0});
}

void Slots::refuse_all_into(CopyKey out, Code code, const std::string& why) {
  std::vector<SlotKey> keys;
  for (const auto& [key, slot] : slots_)
    if (slot.out.key() == out) keys.push_back(key);
  for (const SlotKey& key : keys) refuse(key, code, {}, why);
}

// --- the end -------------------------------------------------------------------------------------------------------------

void Slots::on_end(NodeRef from, const SlotEnd& m) {
  const SlotKey key{m.target, m.slot};
  const auto it = slots_.find(key);
  const bool ours = it != slots_.end() && it->second.coordinator == from && it->second.order.version == m.version;
  if (ours && m.commit && it->second.state == SlotState::kDone) commit(key);
  else if (ours && !m.commit) drop(key);
  if (m.commit) out_.send(from, SlotUpdate{m.target, m.slot, m.version, SlotState::kEnded, Code::kOk, {}, {}, 0});
}

// The coordinator commits all slices or none: what holds for one slot here holds for its neighbours.
void Slots::commit(const SlotKey& key) {
  const Version version = slots_.at(key).order.version;
  Copy& out = slots_.at(key).out.copy();
  std::vector<SlotKey> roots;
  for (auto it = slots_.lower_bound({key.target, 0}); it != slots_.end() && it->first.target == key.target; ++it)
    if (it->second.order.version == version && it->second.is_root()) roots.push_back(it->first);
  const bool ours = out.is_current();
  out.committed = true;
  for (const SlotKey& root : roots) {
    const Slot& slot = slots_.at(root);
    const bool all = slot.windows > 1;
    const std::uint32_t first = all ? 0 : slot.out_slice();
    const std::uint32_t end = all ? out.slice_count() : first + 1;
    for (std::uint32_t i = first; ours && i < end; ++i) {
      out.slices[i].state = SliceState::kDone;
      out_.emit(effect::SealCopy{out.key, i});
    }
    drop(root);
  }
  if (ours) host_.target_committed(out);
}

void Slots::drop(SlotKey key) {
  Slot slot = std::move(slots_.at(key));
  slots_.erase(key);
  timers_.cancel(slot.refresh);
  timers_.cancel(slot.room_due);
  room_.leave(Room::Slot{key});
  if (slot.order.role == SlotRole::kKeep && slot.state == SlotState::kDone)
    for (const SlotSource& source : slot.order.own) unexport(source.id, source.version);
  if (slot.order.role == SlotRole::kInner && slot.out) unexport(key.target, slot.order.version);
  std::vector<CopyUse> held = std::move(slot.own);
  for (Feed& feed : slot.feeds) {
    held.push_back(feed.copy.again());
    release(feed);
  }
  // What is being combined is let go when the data plane has let go of it.
  if (combining_.erase({slot.out.key(), slot.out_slice()}) > 0)
    std::ranges::move(held, std::back_inserter(used_by_[slot.out.key()]));
  if (slot.out && slot.out.copy().life() == CopyLife::kCombining && !slot.out.copy().committed)
    host_.target_dropped(slot.out.copy());
}

std::vector<std::pair<ObjectId, Version>> Slots::drop_those_of(NodeRef coordinator) {
  std::vector<SlotKey> keys;
  for (const auto& [key, slot] : slots_)
    if (slot.coordinator == coordinator) keys.push_back(key);
  std::vector<std::pair<ObjectId, Version>> dropped;
  for (const SlotKey& key : keys) {
    COVERAGE_MARK(coordinator_of_a_slot_died);
    dropped.emplace_back(key.target, slots_.at(key).order.version);
    drop(key);
  }
  return dropped;
}

void Slots::drop_all() {
  while (!slots_.empty()) drop(slots_.begin()->first);
}

void Slots::check_invariants() const {
  for (const auto& [key, slot] : slots_) {
    const std::string target = key.target.to_string();
    CHECK(slot.refresh, target, key.slot);
    CHECK(slot.window < slot.windows, target, slot.window, slot.windows);
    CHECK(slot.own.size() == slot.order.own.size(), target, slot.own.size(), slot.order.own.size());
    CHECK(slot.out || slot.state != SlotState::kDone || slot.order.role == SlotRole::kKeep, target, key.slot);
    CHECK(!room_.is_waiting(Room::Slot{key}) || (!slot.out && slot.room_due), target, key.slot);
    for (const Feed& feed : slot.feeds) {
      CHECK(!feed.local || feed.done, target, key.slot);
      if (feed.copy && pulls_.is_running(feed.copy.key(), slot.slice()))
        CHECK(pulls_.priority(feed.copy.key(), slot.slice()) == priority_of(slot), target, key.slot);
    }
  }
  for (const auto& [place, key] : combining_) {
    const auto slot = slots_.find(key);
    CHECK(slot != slots_.end(), key.target, place.out);
    CHECK(slot->second.out.key() == place.out && slot->second.out_slice() == place.slice, place.out, place.slice);
  }
  for (const auto& [out, used] : used_by_) CHECK(table_.find(out) != nullptr, out, used.size());
  for (const auto& [name, item] : exports_) CHECK(item.slots > 0 && table_.find(item.copy) != nullptr, item.copy);
}

}  // namespace hoplite
