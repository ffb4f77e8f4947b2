#include "core/agent/pulls.h"

#include <algorithm>

#include "base/check.h"
#include "base/coverage.h"

namespace hoplite {

void Pulls::set_owner(CopyKey copy, Owner owner) { courses_[copy].owner = owner; }

void Pulls::forget(CopyKey copy) { courses_.erase(copy); }

void Pulls::start(CopyUse use, Start start, Effects& out) {
  const auto course = courses_.find(use.key());
  CHECK(course != courses_.end(), use.key());
  Way& way = course->second.ways[start.pull.slice];
  CHECK(way.transfer == 0, use.key(), start.pull.slice, way.transfer);
  way.transfer = start.pull.transfer = next_++;
  way.parent = start.parent;
  way.front = start.pull.offset;
  const CopyKey copy = use.key();
  running_[way.transfer] = {std::move(use), start.pull.slice, start.pull.priority};
  out.emplace_back(
      effect::StartPull{start.parent, std::move(start.address), copy, start.pull, patience(course->second, way)});
}

// Where one parent after the other is silent, our own link is full, and asking again makes it fuller. An input has nobody
// else to be pulled from: silence only tells of a connection that died without a word.
Duration Pulls::patience(const Course& course, const Way& way) const {
  const std::int64_t stalls = std::int64_t{1} << std::min(way.silences, limits_.stall_doublings);
  const bool input = std::holds_alternative<InputOf>(course.owner);
  return limits_.stall_after * stalls * (input ? limits_.input_stalls : 1);
}

Duration Pulls::pause_after(std::uint32_t failures) const {
  if (failures <= limits_.quick_retries) return {};
  return limits_.retry_backoff * std::min<std::int64_t>(failures, limits_.slowest_retry);
}

void Pulls::prioritize(CopyKey copy, std::uint32_t slice, Priority priority, Effects& out) {
  const TransferId transfer = transfer_of(copy, slice);
  if (transfer == 0) return;
  if (std::exchange(running_.at(transfer).priority, priority) != priority)
    out.emplace_back(effect::PrioritizePull{transfer, priority});
}

Priority Pulls::priority(CopyKey copy, std::uint32_t slice) const {
  const TransferId transfer = transfer_of(copy, slice);
  CHECK(transfer != 0, copy, slice);
  return running_.at(transfer).priority;
}

TransferId Pulls::transfer_of(CopyKey copy, std::uint32_t slice) const {
  const auto course = courses_.find(copy);
  if (course == courses_.end()) return 0;
  const auto way = course->second.ways.find(slice);
  return way == course->second.ways.end() ? 0 : way->second.transfer;
}

NodeRef Pulls::last_parent(CopyKey copy, std::uint32_t slice) const {
  const auto course = courses_.find(copy);
  if (course == courses_.end()) return {};
  const auto way = course->second.ways.find(slice);
  return way == course->second.ways.end() ? NodeRef{} : way->second.parent;
}

// nullptr: it is over, or nobody's any more.
Pulls::Way* Pulls::way_of(TransferId transfer, Course** course) {
  const auto running = running_.find(transfer);
  if (running == running_.end()) return nullptr;
  const auto it = courses_.find(running->second.use.key());
  if (it == courses_.end()) return nullptr;
  Way& way = it->second.ways.at(running->second.slice);
  CHECK(way.transfer == transfer, way.transfer, transfer);
  if (course != nullptr) *course = &it->second;
  return &way;
}

// --- events --------------------------------------------------------------------------------------------------------------

std::optional<Pulls::Accepted> Pulls::on_accepted(TransferId transfer) {
  Course* course = nullptr;
  Way* way = way_of(transfer, &course);
  if (way == nullptr) return std::nullopt;
  way->failures = 0;
  const Running& running = running_.at(transfer);
  return Accepted{course->owner, running.use.key(), running.slice};
}

void Pulls::on_silent(TransferId transfer, Effects& out) {
  if (!running_.contains(transfer)) return;
  COVERAGE_MARK(parent_fell_silent);
  if (Way* way = way_of(transfer)) ++way->silences;
  out.emplace_back(effect::CancelPull{transfer});
}

std::optional<Pulls::Ended> Pulls::on_ended(const event::PullEnded& e) {
  Course* course = nullptr;
  Way* way = way_of(e.transfer, &course);
  const auto it = running_.find(e.transfer);
  if (it == running_.end()) return std::nullopt;
  const Running running = std::move(it->second);
  running_.erase(it);
  if (way == nullptr) return std::nullopt;
  way->transfer = 0;
  if (e.valid.front() > way->front) way->silences = 0;
  if (e.how != PullEnd::kComplete) ++way->failures;
  return Ended{course->owner, running.use.key(), running.slice, way->parent, e.how, e.valid, way->failures};
}

void Pulls::check_invariants() const {
  std::size_t owned = 0;
  for (const auto& [copy, course] : courses_)
    for (const auto& [slice, way] : course.ways) {
      if (way.transfer == 0) continue;
      const auto running = running_.find(way.transfer);
      CHECK(running != running_.end(), copy, slice, way.transfer);
      CHECK(running->second.use.key() == copy && running->second.slice == slice, copy, slice, way.transfer);
      ++owned;
    }
  CHECK(owned <= running_.size(), owned, running_.size());
}

}  // namespace hoplite
