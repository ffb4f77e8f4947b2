#include "dataplane/lane.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"

namespace hoplite::dataplane {
namespace {

Duration tick_of(const Limits& limits) {
  return std::max(Duration::ms(1), std::min({limits.starved_every, limits.stall_after, limits.urgent_idle_after}) / 2);
}

}  // namespace

Lane::Lane(const Options& options, Host& host, LinkDialler& dialler)
    : options_(options),
      host_(host),
      dialler_(dialler),
      tick_every_(tick_of(options.limits)),
      combiner_(options.index, *this),
      downlink_({options.limits.urgent_idle_after, options.limits.shared_frame_bytes, options.limits.least_share}),
      uplink_({options.limits.urgent_idle_after, options.limits.shared_frame_bytes, options.limits.least_share}) {}

// --- commands

void Lane::adopt(NodeRef child, ChannelId channel, const MakeLink& make) {
  auto downstream = std::make_unique<Downstream>(static_cast<Downstream::Host&>(*this), child, channel, options_.limits,
                                                 options_.turn_bytes, make);
  children_.emplace(channel, std::move(downstream));
}

void Lane::start_pull(const effect::StartPull& start, const BufferPtr& buffer) {
  auto& upstream = parents_[start.parent];
  if (upstream && upstream->broken()) replaced_.push_back(std::move(upstream));
  if (!upstream)
    upstream = std::make_unique<Upstream>(static_cast<Upstream::Host&>(*this), dialler_, start.parent, start.address,
                                          options_.limits);
  const TransferId transfer = start.pull.transfer;
  CHECK(pulls_.emplace(transfer, upstream.get()).second, "transfer numbers are used once", transfer);
  downlink_.add(now(), transfer, start.pull.priority, changes_);
  upstream->start(buffer, start.pull, start.patience);
  change_pulls();
}

void Lane::cancel_pull(TransferId transfer) {
  if (const auto it = pulls_.find(transfer); it != pulls_.end()) it->second->cancel(transfer);
  change_pulls();
}

void Lane::prioritize_pull(TransferId transfer, Priority priority) {
  const auto it = pulls_.find(transfer);
  if (it == pulls_.end()) return;  // it has ended
  it->second->prioritize(transfer, priority);
  downlink_.prioritize(now(), transfer, priority, changes_);
  change_pulls();
}

// The changes may end pulls (a link breaks when it is told), and that makes more changes.
void Lane::change_pulls() {
  while (!changes_.empty()) {
    const Downlink::Changes changes = std::exchange(changes_, {});
    for (const auto& [transfer, change] : changes) {
      const auto it = pulls_.find(transfer);
      if (it == pulls_.end()) continue;
      if (change == Downlink::Change::kHold) it->second->limit(transfer, 0);
      if (change == Downlink::Change::kGrant) it->second->limit(transfer, downlink_.options().grant_bytes);
      if (change == Downlink::Change::kLetGo) it->second->let_go(transfer);
    }
  }
}

void Lane::accept_pull(const effect::AcceptPull& accept, const BufferPtr& buffer) {
  const auto it = children_.find(accept.channel);
  const bool there = it != children_.end() && !it->second->broken();
  if (!there || !it->second->accept(accept.serve, buffer, accept.pull))
    events_.emplace_back(event::ServeEnded{accept.serve});
}

void Lane::refuse_pull(const effect::RefusePull& refuse) {
  const auto it = children_.find(refuse.channel);
  if (it != children_.end() && !it->second->broken()) it->second->refuse(refuse.transfer, refuse.code);
}

void Lane::stop_serve(ServeId serve, Code code) {
  if (const auto it = serves_.find(serve); it != serves_.end()) it->second.at->stop(it->second.transfer, code);
}

void Lane::wake(Buffer& buffer) {
  buffer.end_wake(options_.index);
  go_on_with(buffer);
}

void Lane::disconnect(NodeId node) {
  for (auto& [parent, upstream] : parents_)
    if (parent.id == node) upstream->break_off();
  for (auto& [channel, downstream] : children_)
    if (downstream->child().id == node) downstream->break_off();
}

void Lane::disconnect_all() {
  for (auto& [parent, upstream] : parents_) upstream->break_off();
  for (auto& [channel, downstream] : children_) downstream->break_off();
}

// --- what links and combinations report

void Lane::buffer_advanced(Buffer& buffer) {
  const std::uint64_t own = std::uint64_t{1} << options_.index;
  std::uint64_t following = buffer.following_lanes();
  if (following & own) go_on_with(buffer);
  for (following &= ~own; following != 0; following &= following - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(following));
    if (buffer.begin_wake(lane)) host_.wake(lane, buffer.shared_from_this());
  }
  if (buffer.begin_growth_report()) events_.emplace_back(BufferGrown{buffer.shared_from_this()});
}

// Serves first: the children need what this node passes on as it is, and do not wait for its arithmetic. Links that break on
// the way are destroyed in `settle`, so pointers stay good. A combination reports its own progress from inside the last call,
// when the scratch is free again.
void Lane::go_on_with(const Buffer& buffer) {
  if (const auto it = followers_.find(buffer.key()); it != followers_.end()) {
    following_ = it->second;
    for (const ServePlace& place : following_) place.at->refresh(place.transfer);
    for (const ServePlace& place : following_) place.at->pump();
  }
  combiner_.input_advanced(buffer);
}

void Lane::pull_received(TransferId transfer, std::uint64_t bytes) {
  downlink_.received(now(), transfer, bytes, changes_);
  if (!changes_.empty()) change_pulls();
}

void Lane::pull_ended(TransferId transfer, PullEnd how, const ValidBytes& valid) {
  pulls_.erase(transfer);
  downlink_.remove(now(), transfer, changes_);
  events_.emplace_back(event::PullEnded{transfer, how, valid});
}

void Lane::pull_asked(NodeRef child, ChannelId channel, const PullRequest& pull) {
  events_.emplace_back(event::PullAsked{child, channel, pull});
}

void Lane::serve_began(Downstream& at, TransferId transfer, ServeId serve, Buffer& buffer) {
  const ServePlace place{&at, transfer};
  serves_.emplace(serve, place);
  auto& followers = followers_[buffer.key()];
  followers.push_back(place);
  if (followers.size() == 1) buffer.set_serving(options_.index, true);
}

void Lane::serve_prioritized(ServeId serve, Priority priority) {
  events_.emplace_back(event::ServePrioritized{serve, priority});
}

void Lane::serve_ended(Downstream& at, TransferId transfer, ServeId serve, Buffer& buffer) {
  serves_.erase(serve);
  const auto it = followers_.find(buffer.key());
  CHECK(it != followers_.end(), buffer.key());
  std::erase(it->second, ServePlace{&at, transfer});
  if (it->second.empty()) {
    followers_.erase(it);
    buffer.set_serving(options_.index, false);
  }
  events_.emplace_back(event::ServeEnded{serve});
}

void Lane::combine_ended(CopyKey out, std::uint32_t slice, bool complete) {
  events_.emplace_back(CombineEnded{out, slice, complete});
}

// --- housekeeping

void Lane::settle() {
  change_pulls();
  while (uplink_.take_released())
    for (auto& [channel, downstream] : children_) downstream->pump();
  if (std::exchange(any_broken_, false)) {
    std::erase_if(parents_, [](const auto& entry) { return entry.second->broken(); });
    std::erase_if(children_, [](const auto& entry) { return entry.second->broken(); });
    replaced_.clear();
  }
  const bool moving = !pulls_.empty() || !serves_.empty();
  if (!moving) tick_at_ = Time::never();
  else if (tick_at_ == Time::never()) tick_at_ = now() + tick_every_;
  if (parents_.empty()) idle_check_at_ = Time::never();
  else if (idle_check_at_ == Time::never()) idle_check_at_ = now() + options_.limits.idle_link_life / 4;
  if (!events_.empty()) host_.deliver(std::exchange(events_, {}));
}

Time Lane::next_wakeup() const { return combiner_.postponed() ? Time{} : std::min(tick_at_, idle_check_at_); }

void Lane::on_time() {
  if (combiner_.postponed()) combiner_.go_on();
  if (now() >= tick_at_) tick();
  if (now() >= idle_check_at_) close_idle();
}

void Lane::tick() {
  const Duration late = now() - tick_at_;
  tick_at_ = now() + tick_every_;
  for (auto& [parent, upstream] : parents_) {
    if (late > tick_every_) upstream->forgive_silence(late);  // we were stopped, or without a processor
    upstream->tick();
  }
  for (auto& [channel, downstream] : children_)
    if (downstream->has_serves()) downstream->tick();
  downlink_.tick(now(), changes_);
  change_pulls();
}

void Lane::close_idle() {
  idle_check_at_ = Time::never();  // settle() sets it again
  for (auto& [parent, upstream] : parents_)
    if (!upstream->has_pulls() && now() - upstream->idle_since() >= options_.limits.idle_link_life)
      upstream->break_off();
}

}  // namespace hoplite::dataplane
