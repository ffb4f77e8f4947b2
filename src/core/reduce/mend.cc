// The part of a reduction that mends: deaths, sources that are gone, nodes without room.
#include <algorithm>
#include <utility>

#include "base/coverage.h"
#include "core/reduce/reduction.h"

namespace hoplite {

void Reduction::on_update(NodeRef from, const SlotUpdate& update, Output& out) {
  const auto it = slots_.find(update.slot);
  const bool ours = it != slots_.end() && groups_.at(it->second.group).node == from && running();
  if (const auto root = uncommitted_.find(update.slot); root != uncommitted_.end() && root->second == from) {
    if (update.state == SlotState::kEnded) uncommitted_.erase(root);
    else out.sends.push_back({from, SlotEnd{spec_.target, update.slot, target_version_, true}});
    return;
  }
  if (!ours && update.state != SlotState::kEnded)  // we do not need it any more
    out.sends.push_back({from, SlotEnd{spec_.target, update.slot, update.version, false}});
  if (!ours) return;
  if (it->second.version != update.version) {
    // The order for the new one is on its way; or an older one has overtaken it.
    if (std::exchange(it->second.answered, false)) order(update.slot, out);
    return;
  }
  it->second.answered = true;
  if (update.state == SlotState::kRefused) return refused(update.slot, update, out);
  if (update.state == SlotState::kEnded) {  // it was given up there, for a reason that we have not heard of
    mark_dirty(update.slot);
    return issue(out);
  }
  it->second.done = it->second.done || update.state == SlotState::kDone;
  commit_if_done(out);
}

void Reduction::refused(SlotNumber number, const SlotUpdate& update, Output& out) {
  const std::uint32_t group = slots_.at(number).group;
  ++attempts_;
  const bool final =
      update.code == Code::kDeleted || update.code == Code::kExists || update.code == Code::kInvalidArgument;
  if (final) return fail(update.code, update.text, out);
  if (update.code == Code::kStoreFull) {
    COVERAGE_MARK(slot_without_room_became_leaf);
    make_leaf(group);
    const bool room_somewhere = std::ranges::any_of(groups_, [](const auto& g) { return !g.second.leaf_only; });
    if (!room_somewhere) return fail(Code::kStoreFull, update.text, out);
  } else if (const auto source = sources_.find(update.culprit);
             source != sources_.end() && std::ranges::count(groups_.at(group).own, update.culprit) > 0) {
    COVERAGE_MARK(slot_lost_its_source);
    if (groups_.at(group).own.size() == 1) {
      remove_group(group, out);
    } else {
      --used_;
      std::erase(groups_.at(group).own, update.culprit);
      lose_source(update.culprit, out);
      for (const auto& [other, slot] : slots_)
        if (slot.group == group) mark_dirty(other);
    }
  } else {
    // An input is not where it was ordered: whoever has that slot makes it again.
    mark_dirty(number);
    for (const SlotNumber child : slots_.at(number).children) mark_dirty(child);
  }
  settle(out);
}

// Spares take the places that are free, and everybody hears what has changed.
void Reduction::settle(Output& out) {
  if (!complete()) {
    arrived_.insert(arrived_.end(), spares_.begin(), spares_.end());
    spares_.clear();
  }
  join_tops();
  plan_arrivals(out);
  issue(out);
}

void Reduction::on_dead(NodeRef node, Output& out) {
  std::erase_if(uncommitted_, [&](const auto& item) { return item.second == node; });
  if (!running()) return;
  for (std::deque<ObjectId>* list : {&spares_, &arrived_}) {
    const std::deque<ObjectId> before = *list;
    for (const ObjectId& id : before)
      if (sources_.at(id).node == node) lose_source(id, out);
  }
  std::vector<std::uint32_t> dead;
  for (const auto& [number, group] : groups_)
    if (group.node == node) dead.push_back(number);
  if (dead.empty()) return;
  ++attempts_;
  for (const std::uint32_t group : dead) remove_group(group, out);
  settle(out);
  std::erase_if(out.sends, [&](const Outgoing& send) { return send.to == node; });
}

void Reduction::ask_again(NodeRef node) {
  for (auto& [number, slot] : slots_)
    if (groups_.at(slot.group).node == node) slot.answered = false;  // then tick() repeats its order
}

// It may have another copy somewhere: look again.
void Reduction::lose_source(const ObjectId& id, Output& out) {
  Source& source = sources_.at(id);
  source = Source{};
  std::erase(spares_, id);
  std::erase(arrived_, id);
  out.watch.push_back(id);
}

void Reduction::remove_group(std::uint32_t number, Output& out) {
  COVERAGE_MARK(group_removed);
  const Group group = groups_.at(number);
  used_ -= static_cast<std::uint32_t>(group.own.size());
  for (const ObjectId& id : group.own) lose_source(id, out);
  const std::optional<std::uint32_t> spare = group_of_spares(group.own.size());
  std::vector<SlotNumber> gone;
  for (const auto& [slot_number, slot] : slots_)
    if (slot.group == number) gone.push_back(slot_number);
  for (const SlotNumber slot : gone) {
    end_slot(slot, out);
    replace_slot(slot, spare);
  }
  groups_.erase(number);
}

// Spares of one node, as a new group; their turn has come.
std::optional<std::uint32_t> Reduction::group_of_spares(std::size_t at_most) {
  if (spares_.empty()) return std::nullopt;
  COVERAGE_MARK(spare_took_a_slot);
  const NodeRef node = sources_.at(spares_.front()).node;
  std::vector<ObjectId> own;
  for (auto it = spares_.begin(); it != spares_.end() && own.size() < at_most;) {
    if (sources_.at(*it).node != node) {
      ++it;
      continue;
    }
    sources_.at(*it).state = SourceState::kUsed;
    own.push_back(*it);
    it = spares_.erase(it);
  }
  used_ += static_cast<std::uint32_t>(own.size());
  return new_group(node, std::move(own));
}

// Rule 3.
void Reduction::replace_slot(SlotNumber number, std::optional<std::uint32_t> by) {
  const Slot old = slots_.at(number);
  slots_.erase(number);
  dirty_.erase(number);
  std::vector<SlotNumber> moved = old.children;
  if (by) {
    const SlotNumber fresh = next_slot_++;
    Slot& slot = slots_[fresh];
    slot.group = *by;
    slot.slice = old.slice;
    slot.parent = old.parent;
    slot.children = std::exchange(moved, {fresh});
    for (const SlotNumber child : slot.children) slots_.at(child).parent = fresh;
    std::ranges::replace(in_order_[old.slice], number, fresh);
  } else {
    for (const SlotNumber child : moved) slots_.at(child).parent = old.parent;
    std::erase(in_order_[old.slice], number);
  }
  if (old.parent != 0) {
    std::vector<SlotNumber>& siblings = slots_.at(old.parent).children;
    std::erase(siblings, number);
    siblings.insert(siblings.end(), moved.begin(), moved.end());
    mark_dirty(old.parent);
  }
  if (by) mark_dirty(moved.front());
}

// Rule 4: its children's outputs go to whoever takes its sources.
void Reduction::make_leaf(std::uint32_t group) {
  groups_.at(group).leaf_only = true;
  for (auto& [number, slot] : slots_) {
    if (slot.group != group) continue;
    mark_dirty(number);
    for (const SlotNumber child : slot.children) {
      slots_.at(child).parent = slot.parent;
      if (slot.parent != 0) slots_.at(slot.parent).children.push_back(child);
      else mark_dirty(child);  // a new top may have to become the root
    }
    slot.children.clear();
  }
}

}  // namespace hoplite
