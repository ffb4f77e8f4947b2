#include "core/agent/serves.h"

#include <algorithm>

#include "base/check.h"
#include "base/coverage.h"

namespace hoplite {

Serves::Verdict Serves::judge(const PullRequest& pull, const Source& source) {
  const SliceRange range = slice_range(source.object_bytes, pull.slices, pull.slice);
  if (pull.offset < range.begin || pull.offset > range.end) return Verdict::kRefuse;
  if (source.here == Source::Here::kWhole) return Verdict::kAccept;
  if (pull.slices != source.slices) return Verdict::kRefuse;
  const bool empty = pull.slices == 1 && !source.ticket.home.id.is_nil() && source.front == range.begin;
  const bool in_order = empty && !pull.has_children && pull.ticket.follows(source.ticket);
  if (source.here == Source::Here::kNotYet) {
    if (!in_order || pull.offset > source.front) return Verdict::kPark;
    COVERAGE_MARK(child_before_parent);
    return Verdict::kAccept;
  }
  // Where the bytes come into being there is no parent, so no cycle: it need not be ahead already.
  const bool must_be_ahead = pull.has_children && source.here != Source::Here::kProduced;
  const bool level = source.front == pull.offset && !must_be_ahead && (!empty || in_order);
  const bool ahead = source.front > pull.offset || level;
  if (!ahead) COVERAGE_MARK(pull_refused_not_ahead);
  return ahead ? Verdict::kAccept : Verdict::kRefuse;
}

void Serves::refuse(const Asked& asked, Effects& out) {
  out.emplace_back(effect::RefusePull{asked.channel, asked.pull.transfer, Code::kUnavailable});
}

// --- accepted ------------------------------------------------------------------------------------------------------------

void Serves::accept(CopyUse use, const Asked& asked, Effects& out) {
  const PullRequest& pull = asked.pull;
  if (use.copy().users(CopyUser::kServe) > 2 * limits_.max_children * pull.slices) return refuse(asked, out);
  const ServeId serve = next_++;
  const CopyKey copy = use.key();
  by_slice_[{copy, pull.slice}].push_back(serve);
  serves_[serve] = {std::move(use), pull.slice, asked.peer, pull.priority};
  out.emplace_back(effect::AcceptPull{asked.channel, serve, copy, pull});
}

std::optional<Serves::Served> Serves::end(ServeId serve) {
  const auto it = serves_.find(serve);
  if (it == serves_.end()) return std::nullopt;
  const Served served{it->second.use.key(), it->second.slice};
  serves_.erase(it);
  const auto siblings = by_slice_.find(served);
  CHECK(siblings != by_slice_.end() && std::erase(siblings->second, serve) == 1, serve, served.copy, served.slice);
  if (siblings->second.empty()) by_slice_.erase(siblings);
  return served;
}

std::uint32_t Serves::children(CopyKey copy, std::uint32_t slice) const {
  const auto it = by_slice_.find({copy, slice});
  return it == by_slice_.end() ? 0 : static_cast<std::uint32_t>(it->second.size());
}

// --- priorities ----------------------------------------------------------------------------------------------------------

std::optional<Serves::Served> Serves::prioritize(ServeId serve, Priority priority) {
  const auto it = serves_.find(serve);
  if (it == serves_.end()) return std::nullopt;
  it->second.priority = priority;
  return Served{it->second.use.key(), it->second.slice};
}

Priority Serves::highest(CopyKey copy, std::uint32_t slice) const {
  Priority highest = Priority::kLow;
  const auto it = by_slice_.find({copy, slice});
  if (it == by_slice_.end()) return highest;
  for (const ServeId serve : it->second) highest = std::max(highest, serves_.at(serve).priority);
  return highest;
}

// --- parked --------------------------------------------------------------------------------------------------------------

void Serves::park(Time now, const Asked& asked, Effects& out) {
  std::vector<Asked>& parked = parked_[asked.pull.id];
  // A child that asks again has given up what it asked before.
  std::erase_if(parked, [&](const Asked& p) {
    return p.peer.id == asked.peer.id && p.pull.slice == asked.pull.slice && p.pull.version == asked.pull.version;
  });
  if (parked.size() >= limits_.max_parked_pulls) return refuse(asked, out);
  COVERAGE_MARK(pull_parked);
  parked.push_back(asked);
  if (!stale_timer_) timers_.set(stale_timer_, now + park_for(), timer::Parked{});
}

std::vector<Serves::Asked> Serves::take_parked(const ObjectId& id) {
  const auto it = parked_.find(id);
  if (it == parked_.end()) return {};
  std::vector<Asked> parked = std::move(it->second);
  parked_.erase(it);
  return parked;
}

void Serves::refuse_parked(const ObjectId& id, Effects& out) {
  for (const Asked& asked : take_parked(id)) refuse(asked, out);
}

// Nobody tells us when a child gives up what it has asked for. One that still waits asks again, here or elsewhere.
std::vector<ObjectId> Serves::refuse_stale(Time now, Effects& out) {
  stale_timer_.reset();
  std::vector<ObjectId> ids;
  Time oldest = Time::never();
  for (auto& [id, parked] : parked_) {
    std::erase_if(parked, [&](const Asked& asked) {
      if (asked.since + park_for() > now) return false;
      COVERAGE_MARK(parked_pull_refused);
      refuse(asked, out);
      ids.push_back(asked.pull.id);
      return true;
    });
    for (const Asked& asked : parked) oldest = std::min(oldest, asked.since);
  }
  std::erase_if(parked_, [](const auto& item) { return item.second.empty(); });
  if (oldest != Time::never()) timers_.set(stale_timer_, oldest + park_for(), timer::Parked{});
  return ids;
}

void Serves::check_invariants() const {
  std::size_t counted = 0;
  for (const auto& [served, serves] : by_slice_) {
    CHECK(!serves.empty(), served.copy, served.slice);
    for (const ServeId serve : serves)
      CHECK(serves_.at(serve).use.key() == served.copy && serves_.at(serve).slice == served.slice, serve, served.copy);
    counted += serves.size();
  }
  CHECK(counted == serves_.size(), counted, serves_.size());
  for (const auto& [id, parked] : parked_)
    CHECK(!parked.empty() && parked.size() <= limits_.max_parked_pulls, id, parked.size());
  CHECK(parked_.empty() || stale_timer_, parked_.size());
}

}  // namespace hoplite
