#include "sim/plane.h"

#include <algorithm>
#include <cstring>

namespace hoplite::sim {

using dataplane::Lane;

Plane::Plane(const Environment& environment, NodeIndex node, const Options& options)
    : env_(environment),
      node_(node),
      process_(environment.hosts.process(node)),
      options_(options),
      data_({options.arena.empty() ? nullptr : options.arena.data(), options.capacity, options.lanes}, *this) {
  for (std::uint32_t i = 0; i < options.lanes; ++i) {
    const Lane::Options lane{i, env_.limits, env_.limits.max_frame_bytes};
    lanes_.push_back(
        std::make_unique<Lane>(lane, static_cast<Lane::Host&>(*this), static_cast<dataplane::LinkDialler&>(*this)));
  }
}

ChannelId Plane::adopt(NodeRef child, const dataplane::MakeLink& make) {
  const auto [channel, lane] = data_.new_channel();
  lanes_[lane]->adopt(child, channel, make);
  settle();
  return channel;
}

void Plane::run(std::uint32_t lane, std::function<void(Lane&)> command) {
  command(*lanes_[lane]);
  settle();
}

void Plane::settle() {
  Time next = Time::never();
  for (const auto& lane : lanes_) {
    lane->settle();
    next = std::min(next, lane->next_wakeup());
  }
  if (next >= timer_at_) return;
  timer_at_ = std::max(next, now());
  later(timer_at_, &Plane::timer_due);
}

void Plane::timer_due() {
  if (now() < timer_at_) return;  // an earlier one has run since, and set this one anew
  timer_at_ = Time::never();
  for (const auto& lane : lanes_)
    if (lane->next_wakeup() <= now()) lane->on_time();
  settle();
}

bool Plane::is_pulling(TransferId transfer) const {
  return std::ranges::any_of(lanes_, [&](const auto& lane) { return lane->is_pulling(transfer); });
}

bool Plane::is_serving(ServeId serve) const {
  return std::ranges::any_of(lanes_, [&](const auto& lane) { return lane->is_serving(serve); });
}

void Plane::later(Time when, void (Plane::*what)()) {
  struct Call {
    Plane* plane;
    Hosts* hosts;
    ProcessId process;
    void (Plane::*what)();
    void operator()() const {
      if (hosts->alive(process) && !hosts->defer(process.node, *this)) (plane->*what)();
    }
  };
  env_.queue.at(when, Call{this, &env_.hosts, process_, what});
}

void Plane::wake(std::uint32_t lane, dataplane::BufferPtr buffer) {
  wakes_.emplace_back(lane, std::move(buffer));
  later(now(), &Plane::take_wake);
}

void Plane::take_wake() {
  const auto [lane, buffer] = std::move(wakes_.front());
  wakes_.pop_front();
  lanes_[lane]->wake(*buffer);
  settle();
}

void Plane::deliver(dataplane::LaneEvents events) {
  const Duration delay{static_cast<std::int64_t>(env_.random.below(options_.post_delay.ns + 1))};
  last_post_ = std::max(last_post_, now() + delay);
  events_.push_back(std::move(events));
  later(last_post_, &Plane::take_events);
}

void Plane::take_events() {
  const dataplane::LaneEvents events = std::move(events_.front());
  events_.pop_front();
  scribble_for(events);
  data_.take(events);
}

// A receiver may be in the middle of a recv() into the extent until it says that the pull has ended, and a thread in the
// middle of the arithmetic.
void Plane::scribble_for(const dataplane::LaneEvents& events) {
  if (options_.arena.empty()) return;
  for (const dataplane::LaneEvent& event : events) {
    const auto* ended = std::get_if<event::PullEnded>(&event);
    if (ended != nullptr && ended->how != PullEnd::kComplete)
      scribble(data_.buffer_of_pull(ended->transfer), ended->valid);
    const auto* stopped = std::get_if<dataplane::CombineEnded>(&event);
    if (stopped != nullptr && !stopped->complete) {
      const dataplane::Buffer* out = data_.find_buffer(stopped->out);
      scribble(out, out->valid(stopped->slice));
    }
  }
}

void Plane::scribble(const dataplane::Buffer* buffer, const ValidBytes& valid) {
  const std::uint64_t length = env_.random.below(std::min<std::uint64_t>(valid.missing(), 64) + 1);
  std::memset(buffer->at(valid.front()), 0xEE, length);
}

}  // namespace hoplite::sim
