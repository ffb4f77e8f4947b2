// This node as a home: messages to the directory, and the directory's words to others.
#include <algorithm>

#include "base/coverage.h"
#include "core/agent/impl.h"
#include "core/broadcast/double_tree.h"
#include "core/broadcast/plan.h"

namespace hoplite {
namespace {

// One plan for each slice.
class SlicePlanner final : public ParentPlanner {
 public:
  SlicePlanner(std::uint64_t size, std::uint32_t slices, BroadcastPlan::Options options) {
    for (std::uint32_t i = 0; i < slices; ++i) {
      const SliceRange range = slice_range(size, slices, i);
      options.bytes = range.end - range.begin;
      plans_.emplace_back(options);
    }
  }
  void add_root(NodeId node) override {
    for (BroadcastPlan& plan : plans_) plan.add_root(node);
  }
  std::vector<NodeId> choose(Time now, NodeId receiver, const Want& want) override {
    std::vector<NodeId> parents(plans_.size());
    const auto ask = [&](const SliceWant& slice) {
      if (slice.slice >= plans_.size()) return;
      const auto parent = plans_[slice.slice].choose(now, {receiver, slice.have_bytes, slice.has_children, want.avoid});
      if (parent) parents[slice.slice] = *parent;
    };
    for (const SliceWant& slice : want.slices) ask(slice);
    if (want.slices.empty())
      for (std::uint32_t i = 0; i < plans_.size(); ++i) ask({i, 0, false});
    return parents;
  }
  void remove(NodeId node) override {
    for (BroadcastPlan& plan : plans_) plan.remove(node);
  }
  void measured(NodeId receiver, std::uint64_t bytes_per_second) override {
    for (BroadcastPlan& plan : plans_) plan.measured(plan.parent_of(receiver), bytes_per_second);
  }

 private:
  std::vector<BroadcastPlan> plans_;
};

class TwoTreesPlanner final : public ParentPlanner {
 public:
  explicit TwoTreesPlanner(Duration patience) : trees_(patience) {}
  void add_root(NodeId node) override { trees_.add_root(node); }
  std::vector<NodeId> choose(Time now, NodeId receiver, const Want& want) override {
    std::vector<NodeId> parents(DoubleTree::kSlices);
    const auto ask = [&](std::uint32_t slice, bool keeps_place) {
      if (slice >= DoubleTree::kSlices) return;
      parents[slice] = trees_.choose(now, {receiver, slice, keeps_place, want.avoid}).value_or(NodeId{});
    };
    for (const SliceWant& slice : want.slices) ask(slice.slice, slice.have_bytes > 0 || slice.has_children);
    if (want.slices.empty())
      for (std::uint32_t slice = 0; slice < DoubleTree::kSlices; ++slice) ask(slice, false);
    return parents;
  }
  void remove(NodeId node) override { trees_.remove(node); }
  void measured(NodeId, std::uint64_t) override {}  // its shape does not depend on rates

 private:
  DoubleTree trees_;
};

// Nodes that each have a slice when it comes into being, and want the others: a ring, along which every slice goes from its
// root to the node before it. So every link carries each slice but one, once.
class RingPlanner final : public ParentPlanner {
 public:
  void add_root(NodeId node) override { ring_.insert(node); }
  std::vector<NodeId> choose(Time, NodeId receiver, const Want& want) override {
    std::vector<NodeId> parents(slices_);
    for (std::uint32_t slice = 0; slice < slices_; ++slice) {
      const bool asked = want.slices.empty() || std::ranges::count(want.slices, slice, &SliceWant::slice) > 0;
      if (asked) parents[slice] = parent(receiver, slice, want.avoid);
    }
    return parents;
  }
  void remove(NodeId node) override {
    ring_.erase(node);
    std::erase(chain_, node);
  }
  void measured(NodeId, std::uint64_t) override {}  // its shape does not depend on rates
  explicit RingPlanner(std::uint32_t slices) : slices_(slices) {}

 private:
  NodeId parent(NodeId receiver, std::uint32_t slice, const std::vector<NodeId>& avoid) {
    const auto welcome = [&](NodeId node) { return node != receiver && std::ranges::count(avoid, node) == 0; };
    if (ring_.empty()) return {};
    auto next = ring_.find(receiver);
    if (next == ring_.end()) {
      // Others form a chain in the order of their coming, which the ring feeds.
      const auto self = std::ranges::find(chain_, receiver);
      const NodeId before = self == chain_.begin() || chain_.empty() ? NodeId{} : *std::prev(self);
      if (self == chain_.end()) chain_.push_back(receiver);
      if (!before.is_nil() && welcome(before)) return before;
      next = std::next(ring_.begin(), static_cast<std::ptrdiff_t>(slice % ring_.size()));
    }
    for (std::size_t tried = 0; tried < ring_.size(); ++tried) {
      next = next == ring_.begin() ? std::prev(ring_.end()) : std::prev(next);
      if (welcome(*next)) return *next;
    }
    std::erase(chain_, receiver);  // it waits, and has nothing for those who come after it
    return {};
  }

  const std::uint32_t slices_;
  std::set<NodeId> ring_;
  std::vector<NodeId> chain_;
};

}  // namespace

// One, unless so many may come for the object that the hops of a chain would cost more than two trees do.
std::uint32_t Agent::Impl::slices_for(std::uint64_t size) const {
  if (limits_.slice_bytes > 0)
    return static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>((size + limits_.slice_bytes - 1) / limits_.slice_bytes, 1, limits_.max_slices));
  constexpr double kWorthIt = 0.25;  // for receivers that come one by one, a chain is better
  const double transfer_s = static_cast<double>(size) / static_cast<double>(rate_estimate_);
  const double chain_s = limits_.hop_latency.seconds() * static_cast<double>(alive_.size());
  const bool crowd = alive_.size() >= limits_.crowd && chain_s > kWorthIt * transfer_s;
  return crowd && size > limits_.inline_bytes && limits_.max_slices >= DoubleTree::kSlices ? DoubleTree::kSlices : 1;
}

std::unique_ptr<ParentPlanner> Agent::Impl::make_planner(std::uint64_t size, std::uint32_t slices, bool striped) {
  if (striped) return std::make_unique<RingPlanner>(slices);
  if (slices == DoubleTree::kSlices) return std::make_unique<TwoTreesPlanner>(limits_.retry_backoff / 2);
  BroadcastPlan::Options options;
  options.rate = rate_estimate_;
  options.hop = limits_.hop_latency;
  options.max_children = limits_.max_children;
  return std::make_unique<SlicePlanner>(size, slices, options);
}

bool Agent::Impl::can_inline(const ObjectId& id, Version version) const {
  const Record* r = find(id);
  const Copy* copy = r == nullptr ? nullptr : current_copy(*r);
  return copy != nullptr && copy->version == version && copy->extent.size <= limits_.inline_bytes &&
         (copy->is_complete() || (r->put && r->put->sealed_sent));
}

void Agent::Impl::flush(Directory::Output& out) {
  for (Directory::Outgoing& send_one : out.sends) {
    if (send_one.with_bytes) {
      const Record* r = find(std::get<InlineObject>(send_one.message).id);
      send(send_one.to, std::move(send_one.message), effect::Payload::kExtent, table_.at(r->copy).extent);
    } else {
      send(send_one.to, std::move(send_one.message));
    }
  }
  for (std::string& line : out.log) emit(effect::Log{std::move(line)});
  out = {};
}

// Requests only: facts for somebody else's ids are simply not taken.
bool Agent::Impl::is_home(NodeRef asker, const ObjectId& id) {
  if (id.is_nil()) return false;
  if (home(id) == self()) return true;
  send(asker, NotHome{id});
  send(asker, Sync{true, membership_.all()});
  return false;
}

void Agent::Impl::on(NodeRef from, const PutRequest& m) {
  if (!is_home(from, m.id) || m.version == 0 || m.meta.size() > limits_.max_meta_bytes) return;
  Directory::Output out;
  const bool accepted = directory_.on_put(now_, from, m, out);
  flush(out);
  if (!accepted) return;
  if (from.id != self().id && m.sealed && payload_bytes_ == m.size && m.size <= limits_.inline_bytes)
    store_home_copy(m);
  directory_.serve(now_, m.id, out);
  flush(out);
}

// A small object put elsewhere: keep its bytes here too, if there is room, so that wants are answered by the bytes.
void Agent::Impl::store_home_copy(const PutRequest& put) {
  Record& r = record(put.id);
  if (r.copy != 0 || r.put) return;
  Copy* copy = table_.add(put.id, put.version, put.size, Alignment::kCacheLine, CopyLife::kComplete);
  if (copy == nullptr) return;
  if (put.size > 0) emit(effect::StorePayload{copy->extent});
  copy->meta = put.meta;
  table_.touch(*copy);
  r.copy = copy->key;
  directory_.add_own_copy(put.id, put.version);
  if (!r.gets.empty()) stop_asking(r);
  fulfil_gets(r);
}

void Agent::Impl::on(NodeRef from, const Want& m) {
  if (!is_home(from, m.id)) return;
  const ReduceReport* ended = coordinator_.ended(m.id);
  if (ended != nullptr && ended->phase == ReducePhase::kFailed && !directory_.is_taken(m.id) &&
      !(m.wait_if_lost && ended->code == Code::kLost))
    return send(from, WantFailed{m.request, m.id, 0, ended->code, ended->text});
  Directory::Output out;
  directory_.on_want(now_, from, m, out);
  flush(out);
}

void Agent::Impl::on(NodeRef from, const Unwant& m) { directory_.on_unwant(from, m); }

void Agent::Impl::on(NodeRef from, const Announce& m) {
  Announce mine = m;
  const auto foreign = std::ranges::find_if(m.facts, [&](const Fact& f) { return home(f.id) != self(); });
  if (foreign != m.facts.end()) send(from, NotHome{foreign->id});
  std::erase_if(mine.facts, [&](const Fact& f) {
    return home(f.id) != self() || f.id.is_nil() || f.version == 0 || f.meta.size() > limits_.max_meta_bytes ||
           f.slices == 0 || f.slices > limits_.max_slices || f.roots > f.slices;
  });
  std::erase_if(mine.tombstones, [&](const Tombstone& t) { return home(t.id) != self(); });
  for (const Fact& fact : mine.facts)
    if (fact.state == CopyState::kKnows && !fact.meta.empty()) remember(fact.id, fact.version, fact.meta);
  Directory::Output out;
  directory_.on_announce(now_, from, mine, out);
  flush(out);
  for (const Tombstone& stone : mine.tombstones)
    if (tombstones_.contains(stone.id)) coordinator_.cancel(stone.id, Code::kDeleted, "the target was deleted");
  if (m.rate_kib != 0) rate_estimate_ = (rate_estimate_ * 3 + std::uint64_t{m.rate_kib} * 1024) / 4;
}

void Agent::Impl::on(NodeRef from, const Withdraw& m) {
  Directory::Output out;
  directory_.on_withdraw(now_, from, m, out);
  flush(out);
}

void Agent::Impl::on(NodeRef from, const EvictRequest& m) {
  if (!is_home(from, m.id)) return;
  Directory::Output out;
  directory_.on_evict(now_, from, m, out);
  flush(out);
}

void Agent::Impl::on(NodeRef from, const DeleteRequest& m) {
  if (!is_home(from, m.id)) return;
  Directory::Output out;
  directory_.on_delete(now_, from, m, out);
  flush(out);
  coordinator_.cancel(m.id, Code::kDeleted, "the target was deleted");
}

void Agent::Impl::on(NodeRef from, const RecoverReply& m) {
  Directory::Output out;
  directory_.on_recover_reply(now_, from, m, out);
  flush(out);
}

}  // namespace hoplite
