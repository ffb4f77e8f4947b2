// What a slot pulls from others, and what others pull from it.
#include <algorithm>

#include "base/coverage.h"
#include "core/agent/impl.h"

namespace hoplite {
namespace {
// Pulls of an input that were refused or fell silent before the coordinator is told.
constexpr std::uint32_t kPatience = 8;
}  // namespace

SlotFeed& Agent::Impl::feed_at(const std::pair<SlotKey, std::size_t>& place) {
  return slots_.at(place.first).feeds[place.second];
}

// --- inputs --------------------------------------------------------------------------------------------------------------

// Outputs of this node's own slots. False: one is not there yet.
bool Agent::Impl::take_local_inputs(const SlotKey& key) {
  SlotRecord& slot = slots_.at(key);
  for (std::size_t i = 0; i < slot.feeds.size(); ++i) {
    SlotFeed& feed = slot.feeds[i];
    if (feed.from.node.id != self().id || feed.copy != 0) continue;
    const auto exported = exports_.find({feed.from.id, feed.from.version});
    if (exported == exports_.end()) return false;  // export_copy() looks again
    COVERAGE_MARK(slot_takes_the_output_of_its_own_node);
    feed.copy = exported->second.copy;
    feed.local = feed.done = true;
    ++table_.find(feed.copy)->holds;
  }
  return true;
}

// The new order's inputs, with what the old one had of them: it is kept, and goes on arriving.
void Agent::Impl::take_over_inputs(std::vector<SlotFeed>& before, SlotRecord& slot) {
  for (const SlotInput& input : slot.order.inputs) {
    SlotFeed& feed = slot.feeds.emplace_back();
    const auto old = std::ranges::find(before, input, &SlotFeed::from);
    if (old != before.end() && old->copy != 0 && (old->local || old->slice == slot.order.slice)) {
      COVERAGE_MARK(slot_kept_an_input);
      std::swap(feed, *old);
    }
    feed.from = input;
    if (feed.copy != 0 && !feed.local)
      feeds_[feed.copy] = {{slot.order.target, slot.order.slot}, slot.feeds.size() - 1};
    timers_.cancel(feed.retry);
  }
}

// Room for one slice of everything that is pulled: all of it, or nothing.
bool Agent::Impl::reserve_feeds(SlotRecord& slot) {
  const SlotOrder& o = slot.order;
  const SliceRange range = slice_range(o.source_size, o.slices, o.slice);
  std::vector<CopyKey> added;
  for (SlotFeed& feed : slot.feeds) {
    if (feed.copy != 0) continue;
    Copy* copy = table_.add(feed.from.id, feed.from.version, range.end - range.begin, Alignment::kCacheLine);
    if (copy == nullptr) {
      for (const CopyKey key : added) table_.collect(*table_.find(key));
      return false;
    }
    copy->current = false;
    added.push_back(copy->key);
  }
  auto next = added.begin();
  for (SlotFeed& feed : slot.feeds) {
    if (feed.copy != 0) continue;
    Copy& copy = *table_.find(*next++);
    ++copy.holds;
    feed.copy = copy.key;
    feed.slice = o.slice;
    feed.watermark = range.begin;
    copy.open = true;
    open_part(copy, o);
  }
  return true;
}

// A copy of what is combined has only that slice, if there are several.
void Agent::Impl::open_part(const Copy& copy, const SlotOrder& o) {
  const std::uint32_t only = o.slices > 1 ? o.slice : kAllSlices;
  emit(effect::OpenCopy{copy.key, copy.extent, o.slices, false, o.source_size, only});
}

void Agent::Impl::pull_feed(const SlotKey& key, std::size_t index) {
  SlotRecord& slot = slots_.at(key);
  if (index >= slot.feeds.size()) return;
  SlotFeed& feed = slot.feeds[index];
  timers_.cancel(feed.retry);
  if (feed.done || feed.transfer != 0 || feed.copy == 0) return;
  const Address* address = membership_.address_of(feed.from.node.id);
  Copy& copy = *table_.find(feed.copy);
  if (address == nullptr || copy.closing) {
    const Time later = now_ + limits_.retry_backoff * 5;
    return timers_.set(feed.retry, later, timer::SlotFeed{key, index});
  }
  feed.transfer = next_transfer_++;
  pulls_[feed.transfer] = {copy.key, slot.order.slice};
  ++copy.pulls;
  membership_.touch(now_, feed.from.node.id);
  PullRequest pull;
  pull.transfer = feed.transfer;
  pull.id = feed.from.id;
  pull.version = feed.from.version;
  pull.slice = slot.order.slice;
  pull.slices = slot.order.slices;
  pull.offset = feed.watermark;
  pull.slot = true;
  pull.target = slot.order.target;
  // There is nobody else to pull it from: silence only tells of a connection that died without a word.
  emit(effect::StartPull{feed.from.node, *address, copy.key, pull, patience(feed.silences) * 8});
}

void Agent::Impl::feed_ended(std::pair<SlotKey, std::size_t> at, const event::PullEnded& e) {
  SlotFeed& feed = feed_at(at);
  feed.transfer = 0;
  if (e.valid.front() > feed.watermark) feed.silences = 0;
  feed.watermark = std::max(feed.watermark, e.valid.front());
  if (e.how == PullEnd::kComplete) {
    feed.done = true;
    return;
  }
  COVERAGE_MARK(slot_input_interrupted);
  ++feed.failures;
  if (e.how != PullEnd::kConnectionLost && feed.failures >= kPatience)
    return refuse_slot(at.first, Code::kUnavailable, feed.from.id,
                       "node " + feed.from.node.id.to_string() + " does not have it");
  const Duration pause = limits_.retry_backoff * std::min<std::int64_t>(feed.failures, 10);
  timers_.set(feed.retry, now_ + pause, timer::SlotFeed{at.first, at.second});
}

void Agent::Impl::release_feed(SlotFeed& feed) {
  timers_.cancel(feed.retry);
  if (feed.copy == 0) return;
  const auto it = feed.local ? feeds_.end() : feeds_.find(feed.copy);
  if (it != feeds_.end() && &feed_at(it->second) == &feed) feeds_.erase(it);
  release_hold(std::exchange(feed.copy, 0));
  feed.transfer = 0;
}

// --- what others may pull ------------------------------------------------------------------------------------------------

void Agent::Impl::export_copy(const ObjectId& id, Version version, CopyKey copy) {
  Export& item = exports_[{id, version}];
  item.copy = copy;
  ++item.slots;
  reconsider_parked(id);
  std::vector<SlotKey> waiting;  // slots of this node that take it
  for (const auto& [key, slot] : slots_)
    if (slot.out == 0 && std::ranges::any_of(slot.feeds, [&](const SlotFeed& feed) {
          return feed.copy == 0 && feed.from == SlotInput{self(), id, version};
        }))
      waiting.push_back(key);
  for (const SlotKey& key : waiting)
    if (slots_.contains(key)) start_slot(key);
}

void Agent::Impl::unexport(const ObjectId& id, Version version) {
  const auto it = exports_.find({id, version});
  if (it != exports_.end() && --it->second.slots == 0) exports_.erase(it);
}

void Agent::Impl::serve_export(Copy& copy, const ParkedPull& asked) {
  const PullRequest& pull = asked.pull;
  const auto refuse = [&] { emit(effect::RefusePull{asked.channel, pull.transfer, Code::kUnavailable}); };
  if (copy.closing || copy.serves >= 2 * limits_.max_children * pull.slices) return refuse();
  const auto combined = combines_.find({copy.key, pull.slice});
  const SlotOrder* order = combined == combines_.end() ? nullptr : &slots_.at(combined->second).order;
  // While it is being combined, only the slice that it is of, and no further than it is.
  if (order != nullptr && (pull.slice != order->slice || pull.slices != order->slices ||
                           pull.offset > progress_.valid(copy.key, pull.slice).front()))
    return refuse();
  accept_pull(copy, asked);
}

}  // namespace hoplite
