#include "transport/tcp/bulk_plane.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "kernels/kernels.h"

namespace hoplite::tcp {

BulkPlane::BulkPlane(const Environment& environment, const Identity& identity)
    : env_(environment), load_(environment.options.io_threads, 0) {
  const auto deliver = [this, alive = std::weak_ptr(alive_), &loop = env_.loop](BulkEvents events) {
    loop.post([this, alive, events = std::move(events)] {
      for (const BulkEvent& event : events) {
        if (alive.expired()) return;
        std::visit([this](const auto& e) { handle(e); }, event);
      }
    });
  };
  const auto wake_other = [this](std::uint32_t thread, const CopyPtr& copy) {
    threads_[thread]->run([copy](Worker& worker) { worker.wake(*copy); });
  };
  for (std::uint32_t i = 0; i < env_.options.io_threads; ++i) {
    const IoThread::Options options{
        i, env_.options.busy_poll, env_.options.limits, env_.limiter, env_.meters, env_.counters, deliver, wake_other};
    threads_.push_back(std::make_unique<IoThread>(options, identity));
  }
  for (auto& thread : threads_) thread->start();
}

// All threads stop before any of them is destroyed: they wake each other.
BulkPlane::~BulkPlane() {
  for (auto& thread : threads_) thread->stop();
}

// --- connections

void BulkPlane::adopt(UniqueFd fd, NodeRef child) {
  const ChannelId channel = ++channels_;
  // std::function must be copyable, a descriptor is not.
  auto shared = std::make_shared<UniqueFd>(std::move(fd));
  threads_[thread_of(channel)]->run(
      [shared, child, channel](Worker& worker) { worker.adopt(std::move(*shared), child, channel); });
}

std::uint32_t BulkPlane::thread_of(ChannelId channel) const {
  return static_cast<std::uint32_t>(channel % threads_.size());
}

void BulkPlane::rename(const Identity& identity) {
  for (auto& thread : threads_) thread->run([identity](Worker& worker) { worker.rename(identity); });
}

void BulkPlane::disconnect(NodeId node) {
  for (auto& thread : threads_) thread->run([node](Worker& worker) { worker.disconnect(node); });
}

// --- copies

BulkPlane::OpenCopy& BulkPlane::find(CopyKey copy) {
  const auto it = copies_.find(copy);
  CHECK(it != copies_.end() && !it->second.closing, "copy is not open:", copy);
  return it->second;
}

void BulkPlane::open_copy(const effect::OpenCopy& open) {
  const std::uint64_t size = open.object_size();
  CHECK(open.extent.end() <= env_.options.arena_bytes && open.slices > 0, open.copy, open.extent.end(),
        env_.options.arena_bytes, open.slices);
  if (open.only != kAllSlices) {
    const SliceRange range = slice_range(size, open.slices, open.only);
    CHECK(open.only < open.slices && open.extent.size == range.size(), open.copy, open.only, open.slices,
          open.extent.size);
  }
  auto shared = std::make_shared<Copy>(open.copy, env_.options.arena + open.extent.offset, size, open.slices, open.only,
                                       open.complete);
  CHECK(copies_.emplace(open.copy, OpenCopy{std::move(shared)}).second, "copy keys are used once:", open.copy);
}

void BulkPlane::grow_copy(CopyKey copy, std::uint64_t bytes) {
  Copy& shared = *find(copy).shared;
  CHECK(shared.slices() == 1 && bytes <= shared.size(), copy, shared.slices(), bytes);
  if (bytes <= shared.watermark(0)) return;
  shared.set_watermark(0, bytes);
  wake_threads(shared);
}

void BulkPlane::seal_copy(CopyKey copy, std::uint32_t slice) {
  Copy& shared = *find(copy).shared;
  if (slice == kAllSlices) {
    for (auto it = combines_.lower_bound({copy, 0}); it != combines_.end() && it->first.first == copy; ++it)
      CHECK(shared.watermark(it->first.second) == shared.range(it->first.second).end, "it is being combined:", copy);
    for (std::uint32_t i = 0; i < shared.slices(); ++i)
      if (shared.has(i)) shared.set_watermark(i, shared.range(i).end);
    shared.seal();
  } else {
    CHECK(shared.has(slice) && shared.watermark(slice) == shared.range(slice).end, copy, slice);
    shared.set_final(slice);
  }
  wake_threads(shared);
}

void BulkPlane::follow_copy(CopyKey copy) {
  Copy& shared = *find(copy).shared;
  shared.follow();
  // What grew between the caller's look at the watermark and this call raised no event.
  if (shared.begin_growth_event())
    post([this, held = shared.shared_from_this()] { handle(bulk_event::CopyGrown{held}); });
}

void BulkPlane::wake_threads(Copy& copy) {
  for (std::uint64_t following = copy.following_threads(); following != 0; following &= following - 1) {
    const auto thread = static_cast<std::uint32_t>(std::countr_zero(following));
    if (!copy.begin_wake(thread)) continue;
    threads_[thread]->run([shared = copy.shared_from_this()](Worker& worker) { worker.wake(*shared); });
  }
  if (copy.begin_growth_event())
    post([this, shared = copy.shared_from_this()] { handle(bulk_event::CopyGrown{shared}); });
}

ValidBytes BulkPlane::valid(CopyKey copy, std::uint32_t slice) const {
  const auto it = copies_.find(copy);
  if (it == copies_.end() || slice >= it->second.shared->slices()) return {};
  return {it->second.shared->range(slice), it->second.shared->watermark(slice)};
}

void BulkPlane::close_copy(CopyKey copy) {
  OpenCopy& open = find(copy);
  CHECK(open.readers == 0, "an input is closed before its combination has ended:", copy);
  open.closing = true;
  if (open.users == 0) return post([this, copy] { release(copy); });
  for (const auto& [transfer, user] : pulls_) {
    if (user.copy == copy) cancel_pull(transfer);
  }
  for (const auto& [serve, user] : serves_) {
    if (user.copy == copy) stop_serve(serve, Code::kUnavailable);
  }
  for (auto it = combines_.lower_bound({copy, 0}); it != combines_.end() && it->first.first == copy; ++it)
    threads_[it->second.thread]->run(
        [copy, slice = it->first.second](Worker& worker) { worker.stop_combine(copy, slice); });
}

void BulkPlane::release(CopyKey copy) {
  const auto it = copies_.find(copy);
  if (it == copies_.end() || !it->second.closing || it->second.users > 0) return;
  copies_.erase(it);
  env_.handler.on_copy_closed(copy);
}

// --- transfers

void BulkPlane::start_pull(NodeRef parent, const Address& address, CopyKey copy, const PullRequest& pull,
                           Duration patience) {
  OpenCopy& open = find(copy);
  const std::uint32_t thread = least_busy_thread();
  CHECK(!combines_.contains({copy, pull.slice}), "it is being combined:", copy, pull.slice);
  CHECK(pulls_.emplace(pull.transfer, User{thread, copy}).second, "transfer numbers are used once:", pull.transfer);
  ++open.users;
  ++load_[thread];
  threads_[thread]->run([parent, address, shared = open.shared, pull, patience](Worker& worker) {
    worker.start_pull(parent, address, shared, pull, patience);
  });
}

std::uint32_t BulkPlane::least_busy_thread() const {
  return static_cast<std::uint32_t>(std::min_element(load_.begin(), load_.end()) - load_.begin());
}

void BulkPlane::cancel_pull(TransferId transfer) {
  const auto it = pulls_.find(transfer);
  if (it == pulls_.end()) return;
  threads_[it->second.thread]->run([transfer](Worker& worker) { worker.cancel_pull(transfer); });
}

void BulkPlane::accept_pull(ChannelId channel, ServeId serve, CopyKey copy, const PullRequest& pull) {
  OpenCopy& open = find(copy);
  const std::uint32_t thread = thread_of(channel);
  CHECK(serves_.emplace(serve, User{thread, copy}).second, "serve numbers are used once:", serve);
  ++open.users;
  ++load_[thread];
  threads_[thread]->run([channel, serve, shared = open.shared, pull](Worker& worker) {
    worker.accept_pull(channel, serve, shared, pull);
  });
}

void BulkPlane::refuse_pull(ChannelId channel, TransferId transfer, Code code) {
  threads_[thread_of(channel)]->run(
      [channel, transfer, code](Worker& worker) { worker.refuse_pull(channel, transfer, code); });
}

void BulkPlane::stop_serve(ServeId serve, Code code) {
  const auto it = serves_.find(serve);
  if (it == serves_.end()) return;
  threads_[it->second.thread]->run([serve, code](Worker& worker) { worker.stop_serve(serve, code); });
}

// --- combinations

// A microsecond of arithmetic is done sooner than another thread is woken.
bool BulkPlane::takes_no_time(const Combination::Work& work) {
  constexpr std::uint64_t kFewBytes = 16 * kKiB;
  const SliceRange range = work.out->range(work.slice);
  return (range.end - range.begin) * work.inputs.size() <= kFewBytes && work.op != ReduceOp::kMedian &&
         std::ranges::all_of(work.inputs, [](const Combination::Input& input) { return input.copy->sealed(); });
}

void BulkPlane::combine_here(Combination::Work work) {
  const CopyPtr out = work.out;
  const std::uint32_t slice = work.slice;
  const bool final = work.final;
  Combination combination(std::move(work));
  combination.step(combination.work().out->size());
  CHECK(combination.complete());
  if (final) out->set_final(slice);
  wake_threads(*out);
  post([this, key = out->key(), slice] {
    const auto it = copies_.find(key);
    if (it != copies_.end() && !it->second.closing) env_.handler.on_combined(key, slice);
  });
}

void BulkPlane::combine(const effect::Combine& order) {
  Combination::Work work = work_of(order);
  if (takes_no_time(work)) return combine_here(std::move(work));
  const std::uint32_t thread = least_busy_thread();
  Combining combining{thread, {}};
  for (const effect::Combine::Input& input : order.inputs) {
    OpenCopy& open = find(input.copy);
    ++open.users;
    ++open.readers;
    combining.inputs.push_back(input.copy);
  }
  CHECK(combines_.emplace(std::pair{order.out, order.slice}, std::move(combining)).second, order.out, order.slice);
  ++find(order.out).users;
  ++load_[thread];
  threads_[thread]->run([work = std::move(work)](Worker& worker) { worker.start_combine(work); });
}

// The same with the copies themselves, after a look at whether it can be done.
Combination::Work BulkPlane::work_of(const effect::Combine& order) {
  const CopyPtr& out = find(order.out).shared;
  CHECK(out->has(order.slice) && !out->sealed() && !order.inputs.empty(), order.out, order.slice);
  const SliceRange range = out->range(order.slice);
  CHECK(out->watermark(order.slice) == range.begin, "it has bytes already:", order.out, order.slice);
  CHECK((range.end - range.begin) % size_of(order.type) == 0, range.end - range.begin, to_string(order.type));
  CHECK(supports(order.op, order.type), to_string(order.op), to_string(order.type));
  CHECK(order.divide_by == 1 || (order.divide_by > 1 && is_floating(order.type)), order.divide_by);
  Combination::Work work{out, order.slice, order.op, order.type, order.divide_by, order.final, {}};
  for (const effect::Combine::Input& input : order.inputs) {
    const CopyPtr& copy = find(input.copy).shared;
    CHECK(input.copy != order.out, "a copy is combined into itself:", order.out);
    CHECK(copy->sealed() || copy->has(input.slice), input.copy, input.slice);
    const SliceRange there = copy->sealed() ? copy->room() : copy->range(input.slice);
    CHECK(input.begin >= there.begin && input.begin + (range.end - range.begin) <= there.end, input.copy, input.begin);
    work.inputs.push_back({copy, input.slice, input.begin});
  }
  return work;
}

// --- what the threads report

void BulkPlane::post(std::function<void()> work) {
  env_.loop.post([alive = std::weak_ptr(alive_), work = std::move(work)] {
    if (!alive.expired()) work();
  });
}

void BulkPlane::handle(const bulk_event::PullAsked& event) {
  env_.handler.on_pull_asked(event.peer, event.channel, event.pull);
}

void BulkPlane::handle(const bulk_event::PullAccepted& event) { env_.handler.on_pull_accepted(event.transfer); }

void BulkPlane::handle(const bulk_event::PullSilent& event) { env_.handler.on_pull_silent(event.transfer); }

void BulkPlane::handle(const bulk_event::PullEnded& event) {
  const User user = pulls_.at(event.transfer);
  pulls_.erase(event.transfer);
  --load_[user.thread];
  --copies_.at(user.copy).users;
  env_.handler.on_pull_ended(event.transfer, event.how, event.valid);
  release(user.copy);
}

void BulkPlane::handle(const bulk_event::ServeEnded& event) {
  const User user = serves_.at(event.serve);
  serves_.erase(event.serve);
  --load_[user.thread];
  --copies_.at(user.copy).users;
  env_.handler.on_serve_ended(event.serve);
  release(user.copy);
}

void BulkPlane::handle(const bulk_event::CombineEnded& event) {
  const auto it = combines_.find({event.out, event.slice});
  CHECK(it != combines_.end(), event.out, event.slice);
  const Combining ended = std::move(it->second);
  combines_.erase(it);
  --load_[ended.thread];
  // Before the handler hears of it: then it may close them.
  for (const CopyKey input : ended.inputs) {
    OpenCopy& open = copies_.at(input);
    --open.users;
    --open.readers;
  }
  OpenCopy& out = copies_.at(event.out);
  --out.users;
  if (event.complete && !out.closing) env_.handler.on_combined(event.out, event.slice);
  release(event.out);
}

void BulkPlane::handle(const bulk_event::CopyGrown& event) {
  // First, so that growth from now on is a new event.
  event.copy->end_growth_event();
  const auto it = copies_.find(event.copy->key());
  if (it != copies_.end() && !it->second.closing) env_.handler.on_copy_grown(event.copy->key());
}

void BulkPlane::handle(const bulk_event::Refused& event) { env_.log.refused(env_.loop.now(), event.host, event.why); }

}  // namespace hoplite::tcp
