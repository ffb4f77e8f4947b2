#include "dataplane/downlink.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace hoplite::dataplane {

void Downlink::add(Time now, TransferId transfer, Priority priority, Changes& out) {
  CHECK(pulls_.emplace(transfer, Pull{priority, false, now}).second, transfer);
  ++class_of(priority).pulls;
  decide(now, out);
}

void Downlink::remove(Time now, TransferId transfer, Changes& out) {
  const auto it = pulls_.find(transfer);
  CHECK(it != pulls_.end(), transfer);
  --class_of(it->second.priority).pulls;
  pulls_.erase(it);
  decide(now, out);
}

void Downlink::prioritize(Time now, TransferId transfer, Priority priority, Changes& out) {
  Pull& pull = pulls_.at(transfer);
  --class_of(pull.priority).pulls;
  pull.priority = priority;
  ++class_of(priority).pulls;
  decide(now, out);
}

void Downlink::received(Time now, TransferId transfer, std::uint64_t bytes, Changes& out) {
  if (of_one_class()) return;
  Pull& pull = pulls_.at(transfer);
  const bool flowed = flows(now, pull);
  pull.moved_at = now;
  if (!flowed) decide(now, out);
  if (any_held_) owe(pull.priority, bytes, out);
}

void Downlink::tick(Time now, Changes& out) {
  if (!of_one_class()) decide(now, out);
}

bool Downlink::of_one_class() const {
  return std::ranges::count_if(classes_, [](const Class& c) { return c.pulls > 0; }) <= 1 && !any_held_;
}

// Whoever is below the highest priority that flows is held. One that is held would flow, if it were let go.
void Downlink::decide(Time now, Changes& out) {
  if (of_one_class()) return;
  Priority top = Priority::kLow;
  for (const auto& [transfer, pull] : pulls_)
    if (pull.held || flows(now, pull)) top = std::max(top, pull.priority);
  any_held_ = false;
  for (auto& [transfer, pull] : pulls_) {
    const bool hold = pull.priority < top;
    any_held_ = any_held_ || hold;
    if (std::exchange(pull.held, hold) == hold) continue;
    if (!hold) pull.moved_at = now;
    out.emplace_back(transfer, hold ? Change::kHold : Change::kLetGo);
  }
}

void Downlink::owe(Priority received, std::uint64_t bytes, Changes& out) {
  const std::uint64_t due = options_.grant_bytes * (options_.least_share - 1);
  for (std::size_t i = 0; i < static_cast<std::size_t>(received); ++i) {
    Class& lower = classes_[i];
    if (lower.pulls == 0) continue;
    lower.owed_bytes += bytes;
    for (; lower.owed_bytes >= due; lower.owed_bytes -= due) grant(static_cast<Priority>(i), out);
  }
}

void Downlink::grant(Priority priority, Changes& out) {
  Class& to = class_of(priority);
  const auto after = pulls_.upper_bound(to.granted_last);
  const auto of_class = [&](const auto& item) { return item.second.priority == priority && item.second.held; };
  auto next = std::find_if(after, pulls_.end(), of_class);
  if (next == pulls_.end()) next = std::find_if(pulls_.begin(), after, of_class);
  if (next == pulls_.end() || !next->second.held) return;
  to.granted_last = next->first;
  out.emplace_back(next->first, Change::kGrant);
}

}  // namespace hoplite::dataplane
