// What a slot pulls from others, and what others pull from it.
#include <algorithm>

#include "base/check.h"
#include "base/coverage.h"
#include "core/agent/slots.h"

namespace hoplite {

// --- inputs --------------------------------------------------------------------------------------------------------------

// Outputs of this node's own slots. False: one is not there yet.
bool Slots::take_local_inputs(Slot& slot) {
  for (Feed& feed : slot.feeds) {
    if (feed.from.node.id != out_.self().id || feed.copy) continue;
    Copy* copy = exported(feed.from.id, feed.from.version);
    if (copy == nullptr) return false;  // export_copy() looks again
    COVERAGE_MARK(slot_takes_the_output_of_its_own_node);
    feed.copy = table_.use(*copy, CopyUser::kHold);
    feed.local = feed.done = true;
  }
  return true;
}

// The new order's inputs, with what the old one had of them: it is kept, and goes on arriving.
void Slots::take_over_inputs(std::vector<Feed>& before, const SlotKey& key, Slot& slot) {
  for (const SlotInput& input : slot.order.inputs) {
    Feed& feed = slot.feeds.emplace_back();
    const auto old = std::ranges::find(before, input, &Feed::from);
    if (old != before.end() && old->copy && (old->local || old->slice == slot.slice())) {
      COVERAGE_MARK(slot_kept_an_input);
      std::swap(feed, *old);
    }
    feed.from = input;
    if (feed.copy && !feed.local) pulls_.set_owner(feed.copy.key(), Pulls::InputOf{key, slot.feeds.size() - 1});
  }
}

// Room for one slice of everything that is pulled: all of it, or nothing.
bool Slots::reserve_feeds(Slot& slot) {
  const SliceRange range = slot.range();
  std::vector<Copy*> added;
  for (const Feed& feed : slot.feeds) {
    if (feed.copy) continue;
    added.push_back(
        table_.add(feed.from.id, feed.from.version, range.size(), Alignment::kCacheLine, CopyLife::kHidden));
    if (added.back() != nullptr) continue;
    added.pop_back();
    for (Copy* copy : added) table_.take_back(*copy);
    return false;
  }
  auto next = added.begin();
  for (Feed& feed : slot.feeds) {
    if (feed.copy) continue;
    feed.copy = table_.use(**next++, CopyUser::kHold);
    feed.slice = slot.slice();
    feed.valid = ValidBytes(range);
    open_part(feed.copy.copy(), slot);
  }
  return true;
}

// A copy of what is combined has only that slice, if there are several.
void Slots::open_part(Copy& copy, const Slot& slot) {
  table_.opened(copy);
  const std::uint32_t only = slot.slices() > 1 ? slot.slice() : kAllSlices;
  out_.emit(effect::OpenCopy{copy.key, copy.extent, slot.slices(), false, slot.order.source_size, only});
}

void Slots::pull(const SlotKey& key, std::size_t input) {
  Slot& slot = slots_.at(key);
  CHECK(input < slot.feeds.size(), key.target, input, slot.feeds.size());
  Feed& feed = slot.feeds[input];
  timers_.cancel(feed.retry);
  if (feed.done || pulls_.is_running(feed.copy.key(), slot.slice())) return;
  const Address* address = out_.depend_on(feed.from.node.id);
  if (address == nullptr)
    return timers_.set(feed.retry, out_.now() + limits_.settle_after(), timer::SlotFeed{key, input});
  PullRequest pull;
  pull.id = feed.from.id;
  pull.version = feed.from.version;
  pull.slice = slot.slice();
  pull.slices = slot.slices();
  pull.offset = feed.valid.front();
  pull.slot = true;
  pull.target = slot.order.target;
  pull.priority = priority_of(slot);
  pulls_.start(table_.use(feed.copy.copy(), CopyUser::kPull), {feed.from.node, *address, pull}, out_.effects());
}

// Inputs are as urgent as what they are for.
Priority Slots::priority_of(const Slot& slot) const {
  return slot.out ? std::max(slot.order.priority, host_.demand(slot.out.copy(), slot.out_slice()))
                  : slot.order.priority;
}

void Slots::demand_changed(CopyKey out, std::uint32_t slice) {
  if (const auto it = combining_.find({out, slice}); it != combining_.end()) prioritize_inputs(slots_.at(it->second));
}

void Slots::prioritize_inputs(const Slot& slot) {
  for (const Feed& feed : slot.feeds)
    if (feed.copy && !feed.local) pulls_.prioritize(feed.copy.key(), slot.slice(), priority_of(slot), out_.effects());
}

void Slots::on_input_ended(const Pulls::InputOf& of, const Pulls::Ended& e) {
  Feed& feed = slots_.at(of.slot).feeds.at(of.input);
  CHECK(feed.copy.key() == e.copy, feed.copy.key(), e.copy);
  feed.valid.extend_to(std::max(feed.valid.front(), e.valid.front()));
  if (e.how == PullEnd::kComplete) {
    feed.done = true;
    return;
  }
  COVERAGE_MARK(slot_input_interrupted);
  if (e.how != PullEnd::kConnectionLost && e.failures >= limits_.input_refusals)
    return refuse(of.slot, Code::kUnavailable, feed.from.id,
                  "node " + feed.from.node.id.to_string() + " does not have it");
  timers_.set(feed.retry, out_.now() + pulls_.pause_after(e.failures), timer::SlotFeed{of.slot, of.input});
}

void Slots::release(Feed& feed) {
  timers_.cancel(feed.retry);
  if (feed.copy && !feed.local) pulls_.forget(feed.copy.key());
  feed.copy = {};
}

// --- what others may pull ------------------------------------------------------------------------------------------------

Copy* Slots::exported(const ObjectId& id, Version version) {
  const auto it = exports_.find({id, version});
  return it == exports_.end() ? nullptr : &table_.at(it->second.copy);
}

void Slots::export_copy(const ObjectId& id, Version version, CopyKey copy) {
  Export& item = exports_[{id, version}];
  item.copy = copy;
  ++item.slots;
  records_.can_be_pulled(id);
  std::vector<SlotKey> waiting;  // slots of this node that take it
  for (const auto& [key, slot] : slots_)
    if (!slot.out && std::ranges::any_of(slot.feeds, [&](const Feed& feed) {
          return !feed.copy && feed.from == SlotInput{out_.self(), id, version};
        }))
      waiting.push_back(key);
  for (const SlotKey& key : waiting)
    if (const auto it = slots_.find(key); it != slots_.end() && !it->second.out) start(key);
}

void Slots::unexport(const ObjectId& id, Version version) {
  const auto it = exports_.find({id, version});
  CHECK(it != exports_.end(), id, version);
  if (--it->second.slots == 0) exports_.erase(it);
}

// While it is being combined, only the slice that it is of, and no further than it is.
bool Slots::may_pull(const Copy& copy, const PullRequest& pull) const {
  const auto it = combining_.find({copy.key, pull.slice});
  if (it == combining_.end()) return true;
  const Slot& slot = slots_.at(it->second);
  return pull.slice == slot.slice() && pull.slices == slot.slices() &&
         pull.offset <= copies_.valid(copy, pull.slice).front();
}

}  // namespace hoplite
