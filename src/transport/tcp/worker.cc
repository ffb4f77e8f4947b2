#include "transport/tcp/worker.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace hoplite::tcp {
namespace {

constexpr Duration kIdleLife = Duration::s(60);  // a connection that is used now and then need not be dialled again
constexpr Duration kIdleCheckEvery = Duration::s(10);

Duration tick_of(const Limits& limits) {
  return std::max(Duration::ms(1), std::min(limits.starved_every, limits.stall_after) / 2);
}

}  // namespace

Worker::Worker(Environment environment, Identity identity)
    : env_(std::move(environment)),
      identity_(std::move(identity)),
      tick_every_(tick_of(env_.limits)),
      combiner_(env_.loop, env_.index, *this) {
  env_.loop.after_batch([this, alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) after_batch();
  });
}

Worker::~Worker() {
  env_.loop.cancel(tick_timer_);
  env_.loop.cancel(idle_timer_);
}

BulkContext Worker::context() {
  return {env_.loop, *this, identity_, env_.limits, env_.limiter, env_.meters, env_.counters};
}

// --- commands

void Worker::adopt(UniqueFd fd, NodeRef child, ChannelId channel) {
  children_.emplace(channel, std::make_unique<ServeConnection>(context(), std::move(fd), child, channel));
}

void Worker::start_pull(NodeRef parent, const Address& address, const CopyPtr& copy, const PullRequest& pull,
                        Duration patience) {
  auto& connection = parents_[parent];
  if (connection && connection->broken()) replaced_.push_back(std::move(connection));
  if (!connection) connection = std::make_unique<PullConnection>(context(), parent, address);
  pulls_[pull.transfer] = connection.get();
  connection->start(copy, pull, patience);
  set_tick();
}

void Worker::cancel_pull(TransferId transfer) {
  if (const auto it = pulls_.find(transfer); it != pulls_.end()) it->second->cancel(transfer);
}

void Worker::accept_pull(ChannelId channel, ServeId serve, const CopyPtr& copy, const PullRequest& pull) {
  const auto it = children_.find(channel);
  if (it == children_.end() || it->second->broken()) return emit(bulk_event::ServeEnded{serve});
  it->second->accept(serve, copy, pull);
  set_tick();
}

void Worker::refuse_pull(ChannelId channel, TransferId transfer, Code code) {
  const auto it = children_.find(channel);
  if (it != children_.end() && !it->second->broken()) it->second->refuse(transfer, code);
}

void Worker::stop_serve(ServeId serve, Code code) {
  if (const auto it = serves_.find(serve); it != serves_.end()) it->second.connection->stop(it->second.transfer, code);
}

void Worker::start_combine(Combination::Work work) { combiner_.start(std::move(work)); }

void Worker::stop_combine(CopyKey out, std::uint32_t slice) { combiner_.stop(out, slice); }

void Worker::wake(Copy& copy) {
  copy.end_wake(env_.index);
  go_on_with(copy);
}

void Worker::disconnect(NodeId node) {
  for (auto& [parent, connection] : parents_) {
    if (parent.id == node) connection->break_off();
  }
  for (auto& [channel, connection] : children_) {
    if (connection->child().id == node) connection->break_off();
  }
}

void Worker::rename(Identity identity) {
  for (auto& [parent, connection] : parents_) connection->break_off();
  for (auto& [channel, connection] : children_) connection->break_off();
  identity_ = std::move(identity);
}

// --- what connections and combinations report

void Worker::copy_advanced(Copy& copy) {
  const std::uint64_t own = std::uint64_t{1} << env_.index;
  std::uint64_t following = copy.following_threads();
  if (following & own) go_on_with(copy);
  for (following &= ~own; following != 0; following &= following - 1) {
    const auto thread = static_cast<std::uint32_t>(std::countr_zero(following));
    if (copy.begin_wake(thread)) env_.wake_other(thread, copy.shared_from_this());
  }
  if (copy.begin_growth_event()) emit(bulk_event::CopyGrown{copy.shared_from_this()});
}

// Serves first: the children need what this node passes on as it is, and do not wait for its arithmetic. Connections that
// break on the way are destroyed after the batch, so pointers stay good. A combination reports its own progress from inside
// the last call, when the scratch is free again.
void Worker::go_on_with(const Copy& copy) {
  if (const auto it = followers_.find(copy.key()); it != followers_.end()) {
    following_ = it->second;
    for (const ServePlace& place : following_) place.connection->refresh(place.transfer);
    for (const ServePlace& place : following_) place.connection->pump();
  }
  combiner_.input_advanced(copy);
}

void Worker::pull_ended(TransferId transfer) { pulls_.erase(transfer); }

void Worker::serve_began(ServeConnection& connection, TransferId transfer, ServeId serve, Copy& copy) {
  const ServePlace place{&connection, transfer};
  serves_.emplace(serve, place);
  auto& followers = followers_[copy.key()];
  followers.push_back(place);
  if (followers.size() == 1) copy.set_serving(env_.index, true);
}

void Worker::serve_ended(ServeConnection& connection, TransferId transfer, ServeId serve, Copy& copy) {
  serves_.erase(serve);
  const auto it = followers_.find(copy.key());
  CHECK(it != followers_.end(), copy.key());
  std::erase(it->second, ServePlace{&connection, transfer});
  if (!it->second.empty()) return;
  followers_.erase(it);
  copy.set_serving(env_.index, false);
}

// --- housekeeping

void Worker::after_batch() {
  if (std::exchange(any_broken_, false)) {
    std::erase_if(parents_, [](const auto& entry) { return entry.second->broken(); });
    std::erase_if(children_, [](const auto& entry) { return entry.second->broken(); });
    replaced_.clear();
  }
  // Spinning without transfers would only take a processor from those who have work.
  if (env_.busy_poll) env_.loop.set_busy_poll(!pulls_.empty() || !serves_.empty() || combiner_.busy());
  if (!events_.empty()) env_.deliver(std::exchange(events_, {}));
}

void Worker::set_tick() {
  if (idle_timer_ == 0) idle_timer_ = env_.loop.at(env_.loop.now() + kIdleCheckEvery, [this] { close_idle(); });
  if (tick_timer_ != 0) return;
  last_tick_ = env_.loop.now();
  tick_timer_ = env_.loop.at(last_tick_ + tick_every_, [this] { tick(); });
}

void Worker::tick() {
  tick_timer_ = 0;
  const Time now = env_.loop.now();
  const Duration late = now - last_tick_ - tick_every_;
  for (auto& [parent, connection] : parents_) {
    if (late > tick_every_) connection->forgive_silence(late);  // we were stopped, or without a processor
    connection->tick(now);
  }
  for (auto& [channel, connection] : children_) {
    if (connection->has_serves()) connection->tick(now);
  }
  if (!pulls_.empty() || !serves_.empty()) set_tick();
}

void Worker::close_idle() {
  idle_timer_ = 0;
  const Time now = env_.loop.now();
  for (auto& [parent, connection] : parents_) {
    if (!connection->has_pulls() && now - connection->idle_since() >= kIdleLife) connection->break_off();
  }
  if (!parents_.empty()) idle_timer_ = env_.loop.at(now + kIdleCheckEvery, [this] { close_idle(); });
}

}  // namespace hoplite::tcp
