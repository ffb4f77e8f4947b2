// Pulling from parents and serving children.
//
// No cycles, whatever the homes say: a copy takes children only once it is attached or complete itself, a child is never
// ahead of its parent, and one that has children of its own must be strictly behind (unless the parent is where the bytes
// come into being).
#include <algorithm>

#include "base/check.h"
#include "base/coverage.h"
#include "core/agent/impl.h"

namespace hoplite {
namespace {
// Pulls that wait at one copy for it to be attached; more are refused and ask again.
constexpr std::size_t kMaxParkedPulls = 64;
constexpr std::uint64_t kWorthMeasuring = kMiB;
constexpr std::uint32_t kMostSilences = 6;  // patience is doubled that often
}  // namespace

void Agent::Impl::open_in_data_plane(Copy& copy) {
  if (copy.open) return;
  copy.open = true;
  const bool complete = copy.state == CopyState::kComplete;
  emit(effect::OpenCopy{copy.key, copy.extent, copy.slice_count(), complete});
  if (!complete && copy.written > 0) emit(effect::GrowCopy{copy.key, copy.written});
}

bool Agent::Impl::has_children(const Copy& copy) const { return copy.serves > 0 || parked_pulls_.contains(copy.id); }

// Those that are parked do not count: they depend on nothing yet, so they cannot be part of a cycle.
bool Agent::Impl::has_children(const Copy& copy, std::uint32_t slice) const {
  return slice < copy.slices.size() && copy.slices[slice].children > 0;
}

// Valid bytes from the front of the object.
std::uint64_t Agent::Impl::front_bytes(const Copy& copy) const {
  if (copy.state == CopyState::kComplete) return copy.extent.size;
  if (copy.state == CopyState::kWriting && !copy.combined) return copy.written;
  std::uint64_t front = 0;
  for (std::uint32_t i = 0; i < copy.slices.size(); ++i) {
    const SliceFetch& slice = copy.slices[i];
    front = slice.done ? slice.end : std::max(progress_.valid(copy.key, i).front(), slice.watermark);
    if (front < slice.end) break;
  }
  return front;
}

// --- as a child ----------------------------------------------------------------------------------------------------------

// Where one parent after the other is silent, our own link is full, and asking again makes it fuller.
Duration Agent::Impl::patience(std::uint32_t silences) const {
  return limits_.stall_after * (std::int64_t{1} << std::min(silences, kMostSilences));
}

// False: there is no way to this parent.
bool Agent::Impl::start_pull(Record& record, Copy& copy, std::uint32_t slice, NodeRef parent) {
  SliceFetch& fetch = copy.slices[slice];
  fetch.parent = parent;
  const Address* address = membership_.address_of(parent.id);
  if (address == nullptr || parent.id == self().id || copy.closing) {
    record.avoid.push_back(parent.id);
    return false;
  }
  fetch.transfer = next_transfer_++;
  fetch.attached = false;
  pulls_[fetch.transfer] = {copy.key, slice};
  ++copy.pulls;
  membership_.touch(now_, parent.id);
  PullRequest pull{fetch.transfer,
                   copy.id,
                   copy.version,
                   slice,
                   copy.slice_count(),
                   fetch.watermark,
                   has_children(copy, slice),
                   Priority::kNormal,
                   0,
                   false,
                   copy.id};
  emit(effect::StartPull{parent, *address, copy.key, pull, patience(fetch.silences)});
  return true;
}

void Agent::Impl::on(const event::PullAccepted& e) {
  const auto it = pulls_.find(e.transfer);
  if (it == pulls_.end()) return;
  Copy& copy = *table_.find(it->second.copy);
  if (const auto feed = feeds_.find(copy.key); feed != feeds_.end()) {
    feed_at(feed->second).failures = 0;
    return;
  }
  if (!copy.current) return;
  copy.slices[it->second.slice].attached = true;
  if (Record* r = find(copy.id)) r->attempts = 0;
  reconsider_parked(copy.id);
}

void Agent::Impl::on(const event::PullSilent& e) {
  const auto it = pulls_.find(e.transfer);
  if (it == pulls_.end()) return;
  COVERAGE_MARK(parent_fell_silent);
  const PullState& pull = it->second;
  Copy& copy = *table_.find(pull.copy);
  if (const auto feed = feeds_.find(pull.copy); feed != feeds_.end()) ++feed_at(feed->second).silences;
  else if (copy.current) ++copy.slices[pull.slice].silences;
  emit(effect::CancelPull{e.transfer});  // PullEnded tells how far it got; then the home is asked for another parent
}

void Agent::Impl::on(const event::PullEnded& e) {
  const auto it = pulls_.find(e.transfer);
  if (it == pulls_.end()) return;
  const PullState pull = it->second;
  pulls_.erase(it);
  Copy& copy = *table_.find(pull.copy);
  --copy.pulls;
  if (const auto feed = feeds_.find(copy.key); feed != feeds_.end()) return feed_ended(feed->second, e);
  if (!copy.current) {
    collect(pull.copy);
    return try_room();
  }
  SliceFetch& slice = copy.slices[pull.slice];
  slice.transfer = 0;
  slice.attached = false;
  if (e.valid.front() > slice.watermark) slice.silences = 0;
  slice.watermark = std::clamp(e.valid.front(), slice.watermark, slice.end);
  Record& r = records_.at(copy.id);
  if (e.how == PullEnd::kComplete) {
    CHECK(slice.watermark == slice.end, copy.id.to_string(), slice.watermark, slice.end);
    slice.done = true;
    if (std::ranges::all_of(copy.slices, &SliceFetch::done)) return complete_fetch(r, copy);
    return reconsider_parked(copy.id);
  }
  if (r.gets.empty() && !has_children(copy) && !copy.kept) return abandon_if_unwanted(r);
  if (std::ranges::find(r.avoid, slice.parent.id) == r.avoid.end()) r.avoid.push_back(slice.parent.id);
  // The first retries are immediate: a parent died, and every millisecond counts. After that, patience.
  if (++r.attempts <= 3) return send_want(r);
  COVERAGE_MARK(fetch_backs_off);
  want_later(r, limits_.retry_backoff * std::min<std::int64_t>(r.attempts, 25));
}

// At what rate the fetch went, KiB/s; 0 if that says little about links: small objects, and those that were still written.
std::uint32_t Agent::Impl::pace_kib(const Copy& copy) const {
  if (copy.extent.size < kWorthMeasuring || !copy.complete_at_start) return 0;
  const double seconds = std::max((now_ - copy.fetch_started).seconds(), 1e-6);
  const double rate_kib = std::clamp(static_cast<double>(copy.extent.size) / seconds / 1024, 1.0, 4e9);
  return static_cast<std::uint32_t>(rate_kib);
}

void Agent::Impl::complete_fetch(Record& record, Copy& copy) {
  copy.state = CopyState::kComplete;
  copy.committed = true;
  copy.combined = copy.kept = false;
  record.fetch = Fetch::kIdle;
  record.avoid.clear();
  timers_.cancel(record.want_timer);
  emit(effect::SealCopy{copy.key});
  table_.touch(copy);
  announce(record, pace_kib(copy));
  fulfil_gets(record);
  became_ready(record);
  reconsider_parked(copy.id);
}

// --- as a parent ---------------------------------------------------------------------------------------------------------

void Agent::Impl::on(const event::PullAsked& e) {
  // A peer that we have not heard of yet is welcome: it proved that it belongs here.
  const bool known = membership_.address_of(e.peer.id) != nullptr;
  if (known && !membership_.is_alive(e.peer))
    return emit(effect::RefusePull{e.channel, e.pull.transfer, Code::kUnavailable});
  consider_pull({e.peer, e.channel, e.pull, now_});
}

void Agent::Impl::consider_pull(const ParkedPull& asked) {
  const PullRequest& pull = asked.pull;
  const auto refuse = [&] { emit(effect::RefusePull{asked.channel, pull.transfer, Code::kUnavailable}); };
  Record* r = find(pull.id);
  Copy* copy = r == nullptr ? nullptr : current_copy(*r);
  if (pull.slices == 0 || pull.slices > limits_.max_slices || pull.slice >= pull.slices) return refuse();
  if (copy == nullptr || copy->version != pull.version) {
    if (const auto exported = exports_.find({pull.id, pull.version}); exported != exports_.end())
      return serve_export(*table_.find(exported->second.copy), asked);
    if (pull.slot) return park(asked);  // its order is on the way
  }
  // The child may be faster than the home's word to us: what we have asked for, we may get.
  if (copy == nullptr && r != nullptr && r->fetch == Fetch::kAsking) return park(asked);
  if (copy == nullptr || copy->version != pull.version) {
    COVERAGE_MARK(pull_refused_no_such_copy);
    send(home(pull.id), Withdraw{pull.id, pull.version});  // somebody believes that we have it
    return refuse();
  }
  if (copy->closing || copy->serves >= 2 * limits_.max_children * pull.slices) return refuse();
  const SliceRange range = slice_range(copy->extent.size, pull.slices, pull.slice);
  if (pull.offset < range.begin || pull.offset > range.end) return refuse();
  if (copy->state == CopyState::kComplete) return accept_pull(*copy, asked);
  if (pull.slices != copy->slice_count()) return refuse();

  const bool writing = copy->state == CopyState::kWriting && !copy->combined;
  const bool attached = writing ? r->put && r->put->claimed : copy->slices[pull.slice].attached;
  const bool done = !writing && copy->slices[pull.slice].done;
  if (done) return accept_pull(*copy, asked);
  if (!attached) return park(asked);
  const std::uint64_t here = writing ? copy->written : progress_.valid(copy->key, pull.slice).front();
  // Where the bytes come into being there is no parent, so no cycle: it need not be ahead already.
  const bool source = writing || copy->slices[pull.slice].combined;
  if (here < pull.offset || (pull.has_children && here == pull.offset && !source)) {
    COVERAGE_MARK(pull_refused_not_ahead);
    return refuse();
  }
  accept_pull(*copy, asked);
}

void Agent::Impl::park(const ParkedPull& asked) {
  auto& parked = parked_pulls_[asked.pull.id];
  // A child that asks again has given up what it asked before.
  std::erase_if(parked, [&](const ParkedPull& p) {
    return p.peer.id == asked.peer.id && p.pull.slice == asked.pull.slice && p.pull.version == asked.pull.version;
  });
  if (parked.size() >= kMaxParkedPulls)
    return emit(effect::RefusePull{asked.channel, asked.pull.transfer, Code::kUnavailable});
  COVERAGE_MARK(pull_parked);
  parked.push_back(asked);
  if (!parked_timer_) timers_.set(parked_timer_, now_ + park_for(), timer::Parked{});
}

// Longer than a child waits that has others to ask.
Duration Agent::Impl::park_for() const { return limits_.stall_after * 8; }

// Nobody tells us when a child gives up what it has asked for. One that still waits asks again, here or elsewhere.
void Agent::Impl::refuse_stale_pulls() {
  parked_timer_.reset();
  Time oldest = Time::never();
  for (auto& [id, parked] : parked_pulls_) {
    std::erase_if(parked, [&](const ParkedPull& asked) {
      if (asked.since + park_for() > now_) return false;
      COVERAGE_MARK(parked_pull_refused);
      emit(effect::RefusePull{asked.channel, asked.pull.transfer, Code::kUnavailable});
      return true;
    });
    for (const ParkedPull& asked : parked) oldest = std::min(oldest, asked.since);
  }
  std::erase_if(parked_pulls_, [](const auto& item) { return item.second.empty(); });
  if (oldest != Time::never()) timers_.set(parked_timer_, oldest + park_for(), timer::Parked{});
}

void Agent::Impl::accept_pull(Copy& copy, const ParkedPull& asked) {
  open_in_data_plane(copy);
  const ServeId serve = next_serve_++;
  serves_[serve] = {copy.key, asked.pull.slice, asked.peer};
  ++copy.serves;
  if (asked.pull.slice < copy.slices.size()) ++copy.slices[asked.pull.slice].children;
  table_.touch(copy);
  emit(effect::AcceptPull{asked.channel, serve, copy.key, asked.pull});
}

// The copy was attached, or became complete.
void Agent::Impl::reconsider_parked(const ObjectId& id) {
  const auto it = parked_pulls_.find(id);
  if (it == parked_pulls_.end()) return;
  const std::vector<ParkedPull> parked = std::move(it->second);
  parked_pulls_.erase(it);
  for (const ParkedPull& asked : parked) consider_pull(asked);
}

void Agent::Impl::refuse_parked(const ObjectId& id) {
  const auto it = parked_pulls_.find(id);
  if (it == parked_pulls_.end()) return;
  for (const ParkedPull& asked : it->second)
    emit(effect::RefusePull{asked.channel, asked.pull.transfer, Code::kUnavailable});
  parked_pulls_.erase(it);
}

void Agent::Impl::on(const event::ServeEnded& e) {
  const auto it = serves_.find(e.serve);
  if (it == serves_.end()) return;
  const auto [key, slice, child] = it->second;
  serves_.erase(it);
  Copy& copy = *table_.find(key);
  --copy.serves;
  if (slice < copy.slices.size() && copy.slices[slice].children > 0) --copy.slices[slice].children;
  if (!copy.current) {
    collect(key);
  } else if (copy.state == CopyState::kGrowing) {
    abandon_if_unwanted(records_.at(copy.id));
  }
  try_room();
}

void Agent::Impl::on(const event::CopyClosed& e) {
  Copy* copy = table_.find(e.copy);
  if (copy == nullptr) return;
  copy->open = copy->closing = false;
  collect(e.copy);
  if (const auto used = used_by_.find(e.copy); used != used_by_.end()) {
    const std::vector<CopyKey> inputs = std::move(used->second);
    used_by_.erase(used);
    for (const CopyKey input : inputs) release_hold(input);
  }
  try_room();
}

}  // namespace hoplite
