#include "reduce.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <span>
#include <thread>

#include "base/random.h"

namespace hoplite {
namespace {

using Clock = std::chrono::steady_clock;
using Number = std::uint32_t;  // sums wrap around, and are exact in any order
constexpr DType kType = DType::kU32;
constexpr auto kLook = std::chrono::milliseconds(100);
constexpr auto kRemoveTimeout = std::chrono::seconds(20);

Number element(std::size_t node, std::size_t i) { return static_cast<Number>(mix64((node + 1) << 40 | i)); }

// A get, which ends on the client's own thread.
class Awaited {
 public:
  void end(Result<View> view) {
    const std::lock_guard lock(mutex_);
    when_ = Clock::now();
    view_.emplace(std::move(view));
    ended_.notify_all();
  }
  bool wait_until(Clock::time_point time) {
    std::unique_lock lock(mutex_);
    return ended_.wait_until(lock, time, [&] { return view_.has_value(); });
  }
  // Once it has ended.
  Result<View>& view() { return *view_; }
  Clock::time_point when() const { return when_; }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  std::optional<Result<View>> view_;
  Clock::time_point when_;
};

// One array on each node, and what the first node makes of them.
class Round {
 public:
  Round(Attendants& nodes, const SumOptions& options) : nodes_(nodes), options_(options) {
    state_.array_bytes = options.array_bytes;
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      Part& part = state_.parts.emplace_back();
      part.node = node;
      part.id = nodes.at(node).new_id();
    }
    // Whose array comes first should not look as if it mattered.
    to_put_.resize(nodes.size());
    std::iota(to_put_.begin(), to_put_.end(), 0);
    Random random(nodes.size());
    for (std::size_t i = to_put_.size(); i > 1; --i) std::swap(to_put_[i - 1], to_put_[random.below(i)]);
  }

  Result<SumState> one_after_another();
  Result<SumState> by_reduce();

 private:
  double seconds_at(Clock::time_point time) const { return std::chrono::duration<double>(time - start_).count(); }
  std::size_t elements() const { return options_.array_bytes / sizeof(Number); }
  std::vector<ObjectId> ids() const;

  Result<void> put_next();
  Result<void> put_due();
  Result<void> begin();
  std::shared_ptr<Awaited> start_get(ObjectId id);
  // Puts what is due, looks and shows, until it has ended.
  Result<View> watch_until(const std::shared_ptr<Awaited>& end);
  bool look();
  void look_at_reduce();
  void take(const ReduceStatus& status);
  Result<void> check(std::span<const std::byte> sum) const;
  Result<SumState> finish();

  Attendants& nodes_;
  const SumOptions& options_;
  SumState state_;
  std::vector<std::size_t> to_put_;  // the last one is the next
  std::vector<std::uint64_t> sent_before_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_put_ = start_;
  ObjectId target_;
};

std::vector<ObjectId> Round::ids() const {
  std::vector<ObjectId> ids;
  for (const Part& part : state_.parts) ids.push_back(part.id);
  return ids;
}

Result<void> Round::put_next() {
  Part& part = state_.parts[to_put_.back()];
  to_put_.pop_back();
  PutOptions put;
  put.id = part.id;
  put.array = {kType, {elements()}};
  put.timeout = options_.timeout;
  auto writer = nodes_.at(part.node).create(options_.array_bytes, put);
  if (!writer) return writer.error();
  std::byte* out = writer->buffer().data();
  for (std::size_t i = 0; i < elements(); ++i) {
    const Number number = element(part.node, i);
    std::memcpy(out + i * sizeof number, &number, sizeof number);
  }
  last_put_ = Clock::now();
  part.put_s = std::max(seconds_at(last_put_), 0.0);
  if (auto sealed = writer->seal(options_.timeout); !sealed) return sealed.error();
  return {};
}

// At most one, so that the picture goes on.
Result<void> Round::put_due() {
  if (to_put_.empty()) return {};
  const std::size_t already = state_.parts.size() - to_put_.size();
  if (seconds_at(Clock::now()) < options_.apart.count() * static_cast<double>(already)) return {};
  return put_next();
}

Result<void> Round::begin() {
  if (options_.apart.count() == 0) {
    while (!to_put_.empty())
      if (auto put = put_next(); !put) return put;
    for (Part& part : state_.parts) part.put_s = 0;
  }
  for (const Part& part : state_.parts) {
    const auto status = nodes_.at(part.node).status();
    if (!status) return status.error();
    sent_before_.push_back(status->bytes_out);
  }
  start_ = last_put_ = Clock::now();
  return {};
}

std::shared_ptr<Awaited> Round::start_get(ObjectId id) {
  auto awaited = std::make_shared<Awaited>();
  nodes_.at(0).get_async(id, {.timeout = options_.timeout}).then([awaited](Result<View> view) {
    awaited->end(std::move(view));
  });
  return awaited;
}

Result<View> Round::watch_until(const std::shared_ptr<Awaited>& end) {
  for (auto next_look = Clock::now(); !end->wait_until(next_look); next_look = Clock::now() + kLook) {
    if (auto put = put_due(); !put) return put.error();
    if (!look()) return Error{Code::kCancelled, "interrupted"};
  }
  return std::move(end->view());
}

bool Round::look() {
  state_.seconds = seconds_at(Clock::now());
  for (Part& part : state_.parts) {
    if (part.killed) continue;
    const auto status = nodes_.at(part.node).status();
    if (status) part.sent = status->bytes_out - sent_before_[part.node];
  }
  if (!target_.is_nil()) look_at_reduce();
  return options_.watch(state_);
}

void Round::look_at_reduce() {
  const auto status = nodes_.at(0).reduce_status(target_);
  if (!status) return;  // the get will say what is wrong
  take(*status);
  // The coordinator hears now and then how far the root is; the root itself knows.
  for (const Place& place : state_.places) {
    if (place.parent || state_.parts[place.node].killed) continue;
    const auto objects = nodes_.at(place.node).objects();
    if (!objects) continue;
    for (const ObjectStatus& object : *objects)
      if (object.id == target_) state_.reduced = object.bytes;
  }
}

void Round::take(const ReduceStatus& status) {
  state_.reduced = status.bytes;
  for (std::size_t i = 0; i < state_.parts.size() && i < status.sources.size(); ++i)
    state_.parts[i].state = status.sources[i].state;
  state_.places.clear();
  for (const ReduceStatus::Slot& slot : status.slots)
    state_.places.push_back(
        {static_cast<std::size_t>(std::max(nodes_.index_of(slot.node), 0)), slot.parent, slot.done});
}

Result<void> Round::check(std::span<const std::byte> sum) const {
  const std::vector<std::size_t> used = state_.used_nodes();
  if (used.size() != (options_.first == 0 ? state_.parts.size() : options_.first))
    return Error{Code::kInternal, "the report names " + std::to_string(used.size()) + " arrays"};
  if (sum.size() != options_.array_bytes) return Error{Code::kInternal, "the sum has the wrong size"};
  for (std::size_t i = 0; i < elements(); ++i) {
    Number expected = 0;
    for (const std::size_t node : used) expected += element(node, i);
    Number actual = 0;
    std::memcpy(&actual, sum.data() + i * sizeof actual, sizeof actual);
    if (actual != expected)
      return Error{Code::kInternal, "number " + std::to_string(i) + " of the sum is not that of the arrays"};
  }
  return {};
}

Result<SumState> Round::finish() {
  look();
  const bool deaths =
      std::any_of(state_.parts.begin(), state_.parts.end(), [](const Part& part) { return part.killed; });
  if (deaths) return std::move(state_);
  for (const Part& part : state_.parts)
    if (auto removed = nodes_.at(0).remove(part.id, kRemoveTimeout); !removed) return removed.error();
  if (target_.is_nil()) return std::move(state_);
  if (auto removed = nodes_.at(0).remove(target_, kRemoveTimeout); !removed) return removed.error();
  return std::move(state_);
}

Result<SumState> Round::one_after_another() {
  if (auto begun = begin(); !begun) return begun.error();
  std::vector<Number> sum(elements(), 0);
  for (Part& part : state_.parts) {
    const auto view = watch_until(start_get(part.id));
    if (!view) return view.error();
    if (view->size() != options_.array_bytes) return Error{Code::kInternal, "an array has the wrong size"};
    for (std::size_t i = 0; i < sum.size(); ++i) {
      Number number = 0;
      std::memcpy(&number, view->data() + i * sizeof number, sizeof number);
      sum[i] += number;
    }
    part.state = SourceState::kUsed;
    state_.reduced = options_.array_bytes * (part.node + 1) / state_.parts.size();
  }
  state_.finished = seconds_at(Clock::now());
  if (auto right = check(std::as_bytes(std::span(sum))); !right) return right.error();
  return finish();
}

Result<SumState> Round::by_reduce() {
  if (auto begun = begin(); !begun) return begun.error();
  ReduceOptions reduce;
  reduce.type = kType;
  if (options_.first > 0) reduce.count = options_.first;
  reduce.timeout = options_.timeout;
  const auto target = nodes_.at(0).reduce(ids(), reduce);
  if (!target) return target.error();
  target_ = *target;
  const auto end = start_get(target_);
  const auto view = watch_until(end);
  if (!view) return view.error();
  state_.finished = std::chrono::duration<double>(end->when() - last_put_).count();
  const auto status = nodes_.at(0).reduce_status(target_);
  if (!status) return status.error();
  take(*status);
  if (auto right = check(view->bytes()); !right) return right.error();
  return finish();
}

}  // namespace

std::vector<std::size_t> SumState::used_nodes() const {
  std::vector<std::size_t> nodes;
  for (const Part& part : parts)
    if (part.state == SourceState::kUsed) nodes.push_back(part.node);
  return nodes;
}

Result<SumState> sum_one_after_another(Attendants& nodes, const SumOptions& options) {
  return Round(nodes, options).one_after_another();
}

Result<SumState> sum_by_reduce(Attendants& nodes, const SumOptions& options) {
  return Round(nodes, options).by_reduce();
}

}  // namespace hoplite
