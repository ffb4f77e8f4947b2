// What a slot pulls from others, and what others pull from it.
#include <algorithm>

#include "base/coverage.h"
#include "core/agent/impl.h"

namespace hoplite {
// --- inputs --------------------------------------------------------------------------------------------------------------

// Outputs of this node's own slots. False: one is not there yet.
bool Agent::Impl::take_local_inputs(const SlotKey& key) {
  SlotRecord& slot = slots_.at(key);
  for (std::size_t i = 0; i < slot.feeds.size(); ++i) {
    SlotFeed& feed = slot.feeds[i];
    if (feed.from.node.id != self().id || feed.copy) continue;
    const auto exported = exports_.find({feed.from.id, feed.from.version});
    if (exported == exports_.end()) return false;  // export_copy() looks again
    COVERAGE_MARK(slot_takes_the_output_of_its_own_node);
    feed.copy = table_.use(table_.at(exported->second.copy), CopyUser::kHold);
    feed.local = feed.done = true;
  }
  return true;
}

// The new order's inputs, with what the old one had of them: it is kept, and goes on arriving.
void Agent::Impl::take_over_inputs(std::vector<SlotFeed>& before, SlotRecord& slot) {
  for (const SlotInput& input : slot.order.inputs) {
    SlotFeed& feed = slot.feeds.emplace_back();
    const auto old = std::ranges::find(before, input, &SlotFeed::from);
    if (old != before.end() && old->copy && (old->local || old->slice == slot.order.slice)) {
      COVERAGE_MARK(slot_kept_an_input);
      std::swap(feed, *old);
    }
    feed.from = input;
    if (feed.copy && !feed.local)
      pulls_.set_owner(feed.copy.key(), Pulls::InputOf{{slot.order.target, slot.order.slot}, slot.feeds.size() - 1});
    timers_.cancel(feed.retry);
  }
}

// Room for one slice of everything that is pulled: all of it, or nothing.
bool Agent::Impl::reserve_feeds(SlotRecord& slot) {
  const SlotOrder& o = slot.order;
  const SliceRange range = slice_range(o.source_size, o.slices, o.slice);
  std::vector<Copy*> added;
  for (SlotFeed& feed : slot.feeds) {
    if (feed.copy) continue;
    added.push_back(table_.add(feed.from.id, feed.from.version, range.size(), Alignment::kCacheLine, CopyLife::kHidden));
    if (added.back() != nullptr) continue;
    added.pop_back();
    for (Copy* copy : added) table_.take_back(*copy);
    return false;
  }
  auto next = added.begin();
  for (SlotFeed& feed : slot.feeds) {
    if (feed.copy) continue;
    feed.copy = table_.use(**next++, CopyUser::kHold);
    feed.slice = o.slice;
    feed.valid = ValidBytes(range);
    open_part(feed.copy.copy(), o);
  }
  return true;
}

// A copy of what is combined has only that slice, if there are several.
void Agent::Impl::open_part(Copy& copy, const SlotOrder& o) {
  table_.opened(copy);
  const std::uint32_t only = o.slices > 1 ? o.slice : kAllSlices;
  emit(effect::OpenCopy{copy.key, copy.extent, o.slices, false, o.source_size, only});
}

void Agent::Impl::pull_feed(const SlotKey& key, std::size_t index) {
  SlotRecord& slot = slots_.at(key);
  if (index >= slot.feeds.size()) return;
  SlotFeed& feed = slot.feeds[index];
  timers_.cancel(feed.retry);
  if (feed.done || !feed.copy || pulls_.is_running(feed.copy.key(), slot.order.slice)) return;
  const Address* address = membership_.address_of(feed.from.node.id);
  if (address == nullptr)
    return timers_.set(feed.retry, now_ + limits_.settle_after(), timer::SlotFeed{key, index});
  membership_.touch(now_, feed.from.node.id);
  PullRequest pull;
  pull.id = feed.from.id;
  pull.version = feed.from.version;
  pull.slice = slot.order.slice;
  pull.slices = slot.order.slices;
  pull.offset = feed.valid.front();
  pull.slot = true;
  pull.target = slot.order.target;
  pulls_.start(table_.use(feed.copy.copy(), CopyUser::kPull), {feed.from.node, *address, pull}, *effects_);
}

void Agent::Impl::feed_ended(const Pulls::InputOf& of, const Pulls::Ended& e) {
  SlotFeed& feed = slots_.at(of.slot).feeds[of.input];
  feed.valid.extend_to(std::max(feed.valid.front(), e.valid.front()));
  if (e.how == PullEnd::kComplete) {
    feed.done = true;
    return;
  }
  COVERAGE_MARK(slot_input_interrupted);
  if (e.how != PullEnd::kConnectionLost && e.failures >= limits_.input_refusals)
    return refuse_slot(of.slot, Code::kUnavailable, feed.from.id,
                       "node " + feed.from.node.id.to_string() + " does not have it");
  timers_.set(feed.retry, now_ + pulls_.pause_after(e.failures), timer::SlotFeed{of.slot, of.input});
}

void Agent::Impl::release_feed(SlotFeed& feed) {
  timers_.cancel(feed.retry);
  if (feed.copy && !feed.local) pulls_.forget(feed.copy.key());
  feed.copy = {};
}

// --- what others may pull ------------------------------------------------------------------------------------------------

void Agent::Impl::export_copy(const ObjectId& id, Version version, CopyKey copy) {
  Export& item = exports_[{id, version}];
  item.copy = copy;
  ++item.slots;
  servable_.insert(id);
  std::vector<SlotKey> waiting;  // slots of this node that take it
  for (const auto& [key, slot] : slots_)
    if (!slot.out && std::ranges::any_of(slot.feeds, [&](const SlotFeed& feed) {
          return !feed.copy && feed.from == SlotInput{self(), id, version};
        }))
      waiting.push_back(key);
  for (const SlotKey& key : waiting)
    if (slots_.contains(key)) start_slot(key);
}

void Agent::Impl::unexport(const ObjectId& id, Version version) {
  const auto it = exports_.find({id, version});
  if (it != exports_.end() && --it->second.slots == 0) exports_.erase(it);
}

void Agent::Impl::serve_export(Copy& copy, const Serves::Asked& asked) {
  const PullRequest& pull = asked.pull;
  const auto combined = combines_.find({copy.key, pull.slice});
  const SlotOrder* order = combined == combines_.end() ? nullptr : &slots_.at(combined->second).order;
  // While it is being combined, only the slice that it is of, and no further than it is.
  if (order != nullptr && (pull.slice != order->slice || pull.slices != order->slices ||
                           pull.offset > progress_.valid(copy.key, pull.slice).front()))
    return Serves::refuse(asked, *effects_);
  accept_pull(copy, asked);
}

}  // namespace hoplite
