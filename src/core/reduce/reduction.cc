#include "core/reduce/reduction.h"

#include <algorithm>

#include "base/check.h"
#include "base/coverage.h"
#include "protocol/bulk.h"
#include "protocol/metadata.h"
#include "protocol/operator.h"

namespace hoplite {
namespace {

std::string plural(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace

Reduction::Reduction(Options options)
    : self_(options.self),
      spec_(std::move(options.spec)),
      links_(std::move(options.links)),
      limits_(options.limits),
      whole_(limits_.always_whole || needs_whole_contributions(spec_.op)),
      random_(options.seed),
      generation_(options.generation),
      next_target_(random_.next()),
      names_(limits_.max_names_bytes),
      source_order_(spec_.sources) {
  for (const ObjectId& id : source_order_) sources_[id];
  for (const std::string& name : std::exchange(spec_.names, {})) learn_name(name);
}

void Reduction::start(Output& out) { out.watch = source_order_; }

std::optional<Error> Reduction::add_sources(const std::vector<ObjectId>& ids, const std::vector<std::string>& names,
                                            Output& out) {
  if (!running()) return Error{Code::kInvalidArgument, "the reduce has ended"};
  if (complete()) return Error{Code::kInvalidArgument, "all " + plural(spec_.count, "source") + " have arrived"};
  if (source_order_.size() + ids.size() > limits_.max_sources)
    return Error{Code::kInvalidArgument, "it would have " + std::to_string(source_order_.size() + ids.size()) +
                                             " sources; the limit is " + std::to_string(limits_.max_sources)};
  for (const ObjectId& id : ids)
    if (sources_.contains(id)) return Error{Code::kInvalidArgument, described(id) + " is a source already"};
  for (const ObjectId& id : ids) {
    sources_[id];
    source_order_.push_back(id);
    out.watch.push_back(id);
  }
  for (const std::string& name : names) learn_name(name);
  return std::nullopt;
}

void Reduction::learn_name(std::string_view name) {
  if (const ObjectId id = ObjectId::named(name); id == spec_.target || sources_.contains(id)) names_.add(name);
}

std::string Reduction::described(const ObjectId& id) const {
  return "source " + hoplite::described(id, names_.find(id));
}

// --- arrivals ------------------------------------------------------------------------------------------------------------

void Reduction::on_arrival(Time now, const Arrival& arrival, Output& out) {
  const auto it = sources_.find(arrival.id);
  if (!running() || it == sources_.end() || it->second.arrived) return;
  const Metadata meta = decode_metadata(arrival.meta);
  learn_name(meta.name);
  if (meta.failure) return on_missing(arrival.id, Code::kFailed, meta.text, out);
  if (mismatch(arrival, meta, out)) return;
  Source& source = it->second;
  source.arrived = true;
  source.state = SourceState::kSpare;
  source.node = arrival.node;
  source.version = arrival.version;
  source.order = ++arrivals_;
  arrived_.push_back(arrival.id);
  // All that were awaited are there, or there is a tree that can grow: nothing to wait for.
  if (used_ + arrived_.size() >= spec_.count || slices_ != 0) return plan_arrivals(out);
  // The answers of all homes should be in, also when they are far.
  const Duration round_trips = Duration::from_seconds(links_(arrival.node.id, self_.id).hop_s * 8);
  if (gather_until_ == Time::never()) gather_until_ = now + std::max(limits_.gather_for, round_trips);
}

// True: the reduce has failed.
bool Reduction::mismatch(const Arrival& arrival, const Metadata& meta, Output& out) {
  const auto refuse = [&](const std::string& why, Code code = Code::kTypeMismatch) {
    fail(code, described(arrival.id) + " " + why, out);
    return true;
  };
  if (meta.type != DType::kBytes && meta.type != spec_.type)
    return refuse("has elements of type " + std::string(to_string(meta.type)) + ", not " +
                  std::string(to_string(spec_.type)));
  if (arrival.size % size_of(spec_.type) != 0)
    return refuse("has " + std::to_string(arrival.size) + " bytes, which is not a whole number of elements of type " +
                      std::string(to_string(spec_.type)),
                  Code::kSizeMismatch);
  if (!described_) {
    described_ = true;
    first_ = arrival.id;
    source_size_ = arrival.size;
    meta_ = encode_metadata({spec_.type, spec_.parts == 1 ? meta.shape : std::vector<std::uint64_t>{},
                             std::string(names_.find(spec_.target)), ""});
    return false;
  }
  if (arrival.size != source_size_)
    return refuse("has " + std::to_string(arrival.size) + " bytes, but " + described(first_) + " has " +
                      std::to_string(source_size_),
                  Code::kSizeMismatch);
  const Metadata expected = decode_metadata(meta_);
  if (!meta.shape.empty() && !expected.shape.empty() && meta.shape != expected.shape)
    return refuse("has a different shape than " + described(first_));
  return false;
}

void Reduction::on_missing(const ObjectId& id, Code code, const std::string& why, Output& out) {
  const auto it = sources_.find(id);
  if (!running() || it == sources_.end() || it->second.arrived) return;
  it->second.state = code == Code::kDeleted  ? SourceState::kDeleted
                     : code == Code::kFailed ? SourceState::kFailed
                                             : SourceState::kLost;
  it->second.code = code;
  it->second.why = !why.empty() ? why : code == Code::kLost ? "every complete copy was on nodes that died" : "";
  check_possible(out);
}

void Reduction::check_possible(Output& out) {
  if (!running() || spec_.more_follow) return;
  std::vector<ObjectId> gone;
  for (const ObjectId& id : source_order_) {
    const SourceState state = sources_.at(id).state;
    if (state == SourceState::kDeleted || state == SourceState::kFailed ||
        (state == SourceState::kLost && !spec_.wait_if_lost))
      gone.push_back(id);
  }
  if (source_order_.size() - gone.size() >= spec_.count) return;
  const Source& last = sources_.at(gone.back());
  const std::string what = last.code == Code::kDeleted ? " is deleted"
                           : last.code == Code::kLost  ? " is lost"
                                                       : " failed";
  fail(last.code,
       described(gone.back()) + what + (last.why.empty() ? "" : ": " + last.why) + "; " +
           plural(spec_.count, "source") + " of " + std::to_string(source_order_.size()) +
           " were to be reduced, but only " + std::to_string(source_order_.size() - gone.size()) + " are left",
       out);
}

void Reduction::tick(Time now, Output& out) {
  if (gather_until_ <= now) {
    gather_until_ = Time::never();
    if (running()) plan_arrivals(out);
  }
  const bool unanswered = running() && std::ranges::any_of(slots_, [](const auto& s) { return !s.second.answered; });
  if (!unanswered && uncommitted_.empty()) {
    retry_at_ = Time::never();
    return;
  }
  if (retry_at_ > now && retry_at_ != Time::never()) return;
  const bool due = retry_at_ != Time::never();
  retry_at_ = now + limits_.request_retry;
  if (!due) return;
  for (const auto& [number, slot] : slots_)
    if (unanswered && !slot.answered) order(number, out);
  for (const auto& [number, node] : uncommitted_)
    out.sends.push_back({node, SlotEnd{spec_.target, number, target_version_, true}});
}

Time Reduction::next_wakeup() const { return std::min(gather_until_, retry_at_); }

// --- growing -------------------------------------------------------------------------------------------------------------

void Reduction::plan_arrivals(Output& out) {
  gather_until_ = Time::never();
  std::map<NodeRef, std::vector<ObjectId>> batch;
  // Our own sources sit at the root, with whoever asked: then its link carries the bytes once.
  const bool last = used_ + arrived_.size() >= spec_.count;
  std::deque<ObjectId> held;
  while (!arrived_.empty()) {
    const ObjectId id = arrived_.front();
    arrived_.pop_front();
    Source& source = sources_.at(id);
    if (!last && source.node == self_) {
      held.push_back(id);
      continue;
    }
    if (complete()) {
      spares_.push_back(id);
      continue;
    }
    source.state = SourceState::kUsed;
    ++used_;
    batch[source.node].push_back(id);
  }
  arrived_ = std::move(held);
  if (batch.empty()) return;
  phase_ = ReducePhase::kRunning;
  // Those that came together may stand in any order. They follow the ring of node ids, ours last: then a chain finds the
  // connections that others have made, and all slices of an allreduce use the same ones, in both phases (RingPlanner).
  const auto up_to_ours = std::distance(batch.begin(), batch.upper_bound(self_));
  std::vector<NodeId> ring;
  std::vector<std::uint32_t> groups;
  for (auto& [node, ids] : batch) {
    ring.push_back(node.id);
    groups.push_back(new_group(node, std::move(ids)));
  }
  if (slices_ == 0) choose_shape(ring);
  std::rotate(groups.begin(), groups.begin() + up_to_ours, groups.end());
  for (std::uint32_t slice = 0; slice < slices_; ++slice) {
    std::vector<std::uint32_t> rotated = groups;
    std::rotate(rotated.begin(), rotated.begin() + slice * groups.size() / slices_, rotated.end());
    for (const std::uint32_t group : rotated) add_to_tree(slice, group);
  }
  join_tops();
  issue(out);
}

// Fixed by the first arrivals: how many nodes are to be expected, and whether all of them are there.
void Reduction::choose_shape(std::span<const NodeId> ring) {
  const auto nodes = static_cast<std::uint32_t>(ring.size() + (spec_.count - used_));
  const LinkCost link = worst_along(ring, links_);
  const SliceRange range = slice_range(source_size_, spec_.parts, spec_.part);
  const auto bytes = static_cast<double>(range.end - range.begin);
  const std::uint32_t width = limits_.reduce_width != 0 ? limits_.reduce_width : best_width(nodes, bytes, link);
  if (!whole_) shape_ = tree_children(nodes, width);
  slices_ = 1;
  const std::uint32_t most = std::min(nodes, limits_.max_slices);
  const bool can_slice =
      complete() && !whole_ && spec_.parts == 1 && most > 1 && source_size_ >= std::uint64_t{64} * most;
  const bool worth_it =
      allreduce_slices_seconds(nodes, most, bytes, link) < allreduce_whole_seconds(nodes, bytes, link);
  if (can_slice && (spec_.spread == Spread::kSlices || (spec_.spread == Spread::kByCost && worth_it))) {
    slices_ = most;
    shape_ = tree_children(nodes, 1);
  }
  in_order_.resize(slices_);
}

std::uint32_t Reduction::new_group(NodeRef node, std::vector<ObjectId> own) {
  groups_[next_group_] = {node, std::move(own), false};
  return next_group_++;
}

void Reduction::add_to_tree(std::uint32_t slice, std::uint32_t group) {
  std::vector<SlotNumber>& in_order = in_order_[slice];
  const SlotNumber number = next_slot_++;
  Slot& slot = slots_[number];
  slot.group = group;
  slot.slice = slice;
  if (in_order.size() < shape_.size()) {
    for (const std::uint32_t index : shape_[in_order.size()]) {
      const auto child = index < in_order.size() ? slots_.find(in_order[index]) : slots_.end();
      if (child == slots_.end() || child->second.parent != 0) continue;
      slot.children.push_back(child->first);
      child->second.parent = number;
    }
  }
  in_order.push_back(number);
  mark_dirty(number);
}

std::vector<Reduction::SlotNumber> Reduction::tops(std::uint32_t slice) const {
  std::vector<SlotNumber> found;
  for (const auto& [number, slot] : slots_)
    if (slot.slice == slice && slot.parent == 0) found.push_back(number);
  return found;
}

// With all sources there, each slice has one root, which takes all outputs that nobody else takes.
void Reduction::join_tops() {
  if (!complete()) return flatten_stars();
  for (std::uint32_t slice = 0; slice < slices_; ++slice) {
    std::vector<SlotNumber> all = tops(slice);
    std::ranges::reverse(all);
    const auto root =
        std::ranges::find_if(all, [&](SlotNumber top) { return !groups_.at(slots_.at(top).group).leaf_only; });
    if (root == all.end()) continue;  // nobody has room: refused() has seen to it
    mark_dirty(*root);
    for (const SlotNumber top : all) {
      if (top == *root) continue;
      slots_.at(top).parent = *root;
      slots_.at(*root).children.push_back(top);
    }
  }
}

// A root that is none any more keeps nobody below it, where nothing may be combined on the way.
void Reduction::flatten_stars() {
  if (!whole_) return;
  for (auto& [number, slot] : slots_) {
    if (slot.children.empty()) continue;
    mark_dirty(number);
    for (const SlotNumber child : slot.children) slots_.at(child).parent = 0;
    slot.children.clear();
  }
}

// --- orders --------------------------------------------------------------------------------------------------------------

SlotRole Reduction::role_of(const Slot& slot) const {
  const Group& group = groups_.at(slot.group);
  if (slot.parent == 0 && complete() && !group.leaf_only) return SlotRole::kRoot;
  // Somebody above pulls its sources as they are: rule 4, or because there is nothing to combine.
  const bool pin = group.leaf_only || whole_ || (group.own.size() == 1 && slot.children.empty());
  return pin ? SlotRole::kKeep : SlotRole::kInner;
}

// Rule 2.
void Reduction::mark_dirty(SlotNumber number) {
  while (number != 0 && dirty_.insert(number).second) number = slots_.at(number).parent;
}

void Reduction::issue(Output& out) {
  if (!running()) return;
  bool roots_change = false;
  for (const SlotNumber number : dirty_) {
    const auto it = slots_.find(number);
    roots_change =
        roots_change || (it != slots_.end() && (it->second.role == SlotRole::kRoot || it->second.parent == 0));
  }
  if (roots_change) {
    for (auto& [number, slot] : slots_) {
      if (slot.role == SlotRole::kRoot || (slot.parent == 0 && complete())) dirty_.insert(number);
    }
    target_version_ = make_version(generation_, next_target_++);
  }
  for (const SlotNumber number : dirty_) {
    const auto it = slots_.find(number);
    if (it == slots_.end()) continue;
    Slot& slot = it->second;
    slot.role = role_of(slot);
    slot.version = slot.role == SlotRole::kRoot ? target_version_ : random_.next_nonzero();
    slot.answered = slot.done = false;
  }
  const std::set<SlotNumber> dirty = std::move(dirty_);
  dirty_.clear();
  for (const SlotNumber number : dirty)
    if (slots_.contains(number)) order(number, out);
}

std::vector<SlotInput> Reduction::outputs_of(SlotNumber number) const {
  const Slot& slot = slots_.at(number);
  const Group& group = groups_.at(slot.group);
  if (slot.role != SlotRole::kKeep) return {{group.node, spec_.target, slot.version}};
  std::vector<SlotInput> outputs;
  for (const ObjectId& id : group.own) outputs.push_back({group.node, id, sources_.at(id).version});
  return outputs;
}

void Reduction::order(SlotNumber number, Output& out) {
  Slot& slot = slots_.at(number);
  const Group& group = groups_.at(slot.group);
  slot.ordered = true;
  SlotOrder order;
  order.target = spec_.target;
  order.slot = number;
  order.version = slot.version;
  order.role = slot.role;
  order.op = spec_.op;
  order.type = spec_.type;
  order.priority = spec_.priority;
  order.divide_by = spec_.op == ReduceOp::kMean && slot.role == SlotRole::kRoot ? spec_.count : 1;
  order.source_size = source_size_;
  order.slice = slices_ > 1 ? slot.slice : spec_.part;
  order.slices = slices_ > 1 ? slices_ : spec_.parts;
  const SliceRange range = slice_range(source_size_, spec_.parts, spec_.part);
  order.target_size = range.end - range.begin;
  order.target_slice = slot.slice;
  order.target_slices = slices_;
  order.meta = meta_;
  for (const ObjectId& id : group.own) order.own.push_back({id, sources_.at(id).version});
  for (const SlotNumber child : slot.children)
    for (const SlotInput& input : outputs_of(child)) order.inputs.push_back(input);
  out.sends.push_back({group.node, std::move(order)});
}

void Reduction::end_slot(SlotNumber number, Output& out) {
  const Slot& slot = slots_.at(number);
  if (slot.ordered)
    out.sends.push_back({groups_.at(slot.group).node, SlotEnd{spec_.target, number, slot.version, false}});
}

// --- ending --------------------------------------------------------------------------------------------------------------

// Rule 5.
void Reduction::commit_if_done(Output& out) {
  if (!running() || !complete() || slices_ == 0) return;
  std::map<SlotNumber, NodeRef> roots;
  for (const auto& [number, slot] : slots_) {
    if (slot.role != SlotRole::kRoot) continue;
    if (!slot.done) return;
    roots[number] = groups_.at(slot.group).node;
  }
  if (roots.size() != slices_) return;
  phase_ = ReducePhase::kDone;
  uncommitted_ = roots;
  for (const auto& [number, slot] : slots_) {
    if (!roots.contains(number)) end_slot(number, out);
    else out.sends.push_back({roots.at(number), SlotEnd{spec_.target, number, slot.version, true}});
  }
}

void Reduction::fail(Code code, std::string text, Output& out) {
  if (!running()) return;
  phase_ = ReducePhase::kFailed;
  error_ = {code, std::move(text)};
  for (const auto& [number, slot] : slots_) end_slot(number, out);
}

std::string Reduction::awaited() const {
  if (complete()) return "the sources are being combined";
  std::string names;
  std::size_t named = 0;
  std::size_t missing = 0;
  for (const ObjectId& id : source_order_) {
    if (sources_.at(id).state != SourceState::kAwaited && sources_.at(id).state != SourceState::kLost) continue;
    ++missing;
    if (named == limits_.max_named) continue;
    ++named;
    names += (names.empty() ? "" : ", ") + hoplite::described(id, names_.find(id));
  }
  const std::string arrived =
      std::to_string(used_ + arrived_.size()) + " of " + plural(spec_.count, "source") + " have arrived; ";
  if (names.empty()) return arrived + "no others have been named";
  return arrived + "awaited: " + names + (missing > named ? " and " + std::to_string(missing - named) + " more" : "");
}

ReduceReport Reduction::report() const {
  ReduceReport report;
  report.target = spec_.target;
  report.op = spec_.op;
  report.type = spec_.type;
  report.phase = phase_;
  report.code = error_.message.empty() ? Code::kOk : error_.code;
  report.text = running() ? awaited() : error_.message;
  report.coordinator = self_.id;
  report.count = spec_.count;
  report.attempts = attempts_;
  const SliceRange range = slice_range(source_size_, spec_.parts, spec_.part);
  report.size = range.end - range.begin;
  for (const ObjectId& id : source_order_) {
    const Source& source = sources_.at(id);
    const bool held = !complete() && std::ranges::count(arrived_, id) > 0;  // it counts, and waits for its place
    report.sources.push_back({id, held ? SourceState::kUsed : source.state, source.node.id, source.order});
  }
  std::map<SlotNumber, std::uint32_t> index;
  for (const auto& [number, slot] : slots_) index.emplace(number, static_cast<std::uint32_t>(index.size()));
  for (const auto& [number, slot] : slots_) {
    const Group& group = groups_.at(slot.group);
    report.slots.push_back({group.node.id, slot.slice, index.at(slot.parent == 0 ? number : slot.parent),
                            static_cast<std::uint32_t>(group.own.size()), slot.done});
  }
  report.names = names_.all();
  return report;
}

void Reduction::check_invariants() const {
  CHECK(sources_.size() == source_order_.size(), spec_.target, sources_.size(), source_order_.size());
  CHECK(used_ <= spec_.count, spec_.target, used_, spec_.count);
  CHECK((phase_ == ReducePhase::kFailed) == !error_.message.empty(), spec_.target, error_.message);
  CHECK(uncommitted_.empty() || phase_ == ReducePhase::kDone, spec_.target);
  if (!running()) return;
  CHECK(dirty_.empty(), spec_.target, dirty_.size());
  std::set<ObjectId> grouped;  // rule 1
  for (const auto& [number, group] : groups_)
    for (const ObjectId& id : group.own) {
      const Source& source = sources_.at(id);
      CHECK(grouped.insert(id).second, spec_.target, id);
      CHECK(source.state == SourceState::kUsed && source.node == group.node, spec_.target, id);
    }
  CHECK(grouped.size() == used_, spec_.target, grouped.size(), used_);
  for (const ObjectId& id : spares_) CHECK(!grouped.contains(id), spec_.target, id);
  for (const auto& [number, slot] : slots_) check_slot(number, slot);
  for (std::uint32_t slice = 0; slice < slices_ && complete(); ++slice)
    CHECK(tops(slice).size() == 1, spec_.target, slice, tops(slice).size());
}

void Reduction::check_slot(SlotNumber number, const Slot& slot) const {
  CHECK(number < next_slot_ && slot.slice < slices_ && groups_.contains(slot.group), spec_.target, number);
  CHECK(slot.ordered && slot.version != 0 && slot.role == role_of(slot), spec_.target, number);
  CHECK(slot.role != SlotRole::kRoot || slot.version == target_version_, spec_.target, number);  // rule 2
  CHECK(std::ranges::count(in_order_[slot.slice], number) == 1, spec_.target, number);
  CHECK(slot.children.empty() || !groups_.at(slot.group).leaf_only, spec_.target, number);  // rule 4
  CHECK(slot.parent == 0 || std::ranges::count(slots_.at(slot.parent).children, number) == 1, spec_.target, number);
  for (const SlotNumber child : slot.children)
    CHECK(slots_.at(child).parent == number && slots_.at(child).slice == slot.slice, spec_.target, number, child);
}

}  // namespace hoplite
