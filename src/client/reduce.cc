// Reduces and gathers, as the user sees them.
#include "hoplite/reduce.h"

#include <algorithm>
#include <condition_variable>
#include <limits>
#include <mutex>

#include "client/states.h"
#include "protocol/reduce_check.h"

namespace hoplite {
namespace {

using client::Call;
using client::Connection;
using client::Deadline;
using client::Subject;

// To take back what was started, when another part of it failed.
constexpr auto kTakeBackTimeout = std::chrono::seconds(5);

ReduceSpec to_spec(std::span<const ObjectId> sources, const ReduceOptions& options, Spread spread) {
  constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();
  ReduceSpec spec;
  spec.target = options.target;
  spec.sources.assign(sources.begin(), sources.end());
  spec.op = options.op;
  spec.type = options.type;
  spec.count = static_cast<std::uint32_t>(std::min(options.count.value_or(sources.size()), kMost));
  spec.wait_if_lost = options.on_lost == OnLost::kWait;
  spec.more_follow = options.more_sources_follow;
  spec.spread = spread;
  spec.part = options.part;
  spec.parts = std::max(options.parts, 1U);
  return spec;
}

Spread spread_of(AllReduceMethod method) {
  switch (method) {
    case AllReduceMethod::kByCost: return Spread::kByCost;
    case AllReduceMethod::kWhole: return Spread::kWhole;
    case AllReduceMethod::kSlices: return Spread::kSlices;
  }
  return Spread::kByCost;
}

Result<ObjectId> to_target(const Subject& subject, Result<client::Reply> reply) {
  if (!reply) return reply.error();
  const auto* reducing = std::get_if<client::Reducing>(&*reply);
  if (reducing == nullptr) return client::unexpected(subject);
  return reducing->target;
}

// The target must be known: so that an error can name it.
Result<ObjectId> start(Connection& connection, ReduceSpec spec, const Timeout& timeout) {
  const Subject subject{"reduce", spec.target};
  if (const auto wrong = check(spec)) return subject.error(wrong->code, wrong->message);
  const auto deadline = Deadline::after(timeout);
  spec.timeout_ns = deadline.left_ns();
  return to_target(subject, connection.ask(subject, client::Reduce{std::move(spec)}, deadline));
}

ReduceStatus::Phase phase_of(ReducePhase phase) {
  switch (phase) {
    case ReducePhase::kWaiting: return ReduceStatus::Phase::kWaiting;
    case ReducePhase::kRunning: return ReduceStatus::Phase::kRunning;
    case ReducePhase::kDone: return ReduceStatus::Phase::kDone;
    case ReducePhase::kFailed: return ReduceStatus::Phase::kFailed;
  }
  return ReduceStatus::Phase::kWaiting;
}

ReduceStatus::Source::State state_of(SourceState state) {
  using State = ReduceStatus::Source::State;
  switch (state) {
    case SourceState::kAwaited: return State::kAwaited;
    case SourceState::kSpare: return State::kSpare;
    case SourceState::kUsed: return State::kUsed;
    case SourceState::kLost: return State::kLost;
    case SourceState::kDeleted: return State::kDeleted;
  }
  return State::kAwaited;
}

ReduceStatus to_status(const ReduceReport& report) {
  ReduceStatus status;
  status.target = report.target;
  status.op = report.op;
  status.type = report.type;
  status.phase = phase_of(report.phase);
  if (report.phase == ReducePhase::kFailed)
    status.error = Error{report.code == Code::kOk ? Code::kInternal : report.code, report.text};
  status.coordinator = name_of(report.coordinator);
  status.count = report.count;
  status.attempts = report.attempts;
  status.size = report.size;
  status.bytes = report.bytes;
  for (const SourceReport& source : report.sources)
    status.sources.push_back({source.id, state_of(source.state), name_of(source.node), source.order});
  for (std::size_t i = 0; i < report.slots.size(); ++i) {
    const SlotReport& slot = report.slots[i];
    const bool root = slot.parent == i || slot.parent >= report.slots.size();
    status.slots.push_back({name_of(slot.node), slot.slice,
                            root ? std::nullopt : std::optional<std::size_t>(slot.parent), slot.sources, slot.done});
  }
  return status;
}

// What several gets under way come to. Outlives the call: gets that were cancelled still report here.
struct Gathering {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<View> views;
  std::size_t missing = 0;
  std::optional<Error> failed;

  void arrived(std::size_t i, Result<View> view) {
    const std::lock_guard lock(mutex);
    if (failed) return;
    if (view) views[i] = *std::move(view);
    else failed = view.error();
    --missing;
    if (failed) views.clear();
    if (failed || missing == 0) changed.notify_all();
  }
};

}  // namespace

Result<ObjectId> Client::reduce(std::span<const ObjectId> sources, const ReduceOptions& options) {
  auto spec = to_spec(sources, options, Spread::kNone);
  if (spec.target.is_nil()) spec.target = new_id();
  return start(*connection_, std::move(spec), options.timeout);
}

Result<ObjectId> Client::allreduce(std::span<const ObjectId> sources, const AllReduceOptions& options) {
  auto spec = to_spec(sources, options, spread_of(options.method));
  if (spec.target.is_nil()) spec.target = new_id();
  return start(*connection_, std::move(spec), options.timeout);
}

Result<std::vector<ObjectId>> Client::reduce_scatter(std::span<const ObjectId> sources, const ReduceOptions& options) {
  const Subject all{"reduce_scatter", {}};
  if (!options.target.is_nil() || options.part != 0)
    return all.error(Code::kInvalidArgument, "it makes every part, each with a fresh target; neither can be chosen");
  if (options.count.value_or(sources.size()) != sources.size() || options.more_sources_follow)
    return all.error(Code::kInvalidArgument, "all sources count: each part would choose other ones");
  auto spec = to_spec(sources, options, Spread::kNone);
  if (options.parts == 0) spec.parts = static_cast<std::uint32_t>(std::max<std::size_t>(sources.size(), 1));
  if (const auto wrong = check(spec)) return all.error(wrong->code, wrong->message);

  const auto deadline = Deadline::after(options.timeout);
  spec.timeout_ns = deadline.left_ns();
  std::vector<std::shared_ptr<Call>> calls;
  for (spec.part = 0; spec.part < spec.parts; ++spec.part) {
    spec.target = new_id();
    calls.push_back(std::make_shared<Call>());
    calls.back()->subject = {"reduce", spec.target};
    calls.back()->deadline = deadline;
    connection_->submit(calls.back(), client::Reduce{spec});
  }
  std::vector<ObjectId> targets;
  std::optional<Error> failed;
  for (const auto& call : calls) {
    const auto target = to_target(call->subject, connection_->wait(*call));
    if (target) targets.push_back(*target);
    else if (!failed) failed = target.error();
  }
  if (!failed) return targets;
  for (const ObjectId target : targets) (void)remove(target, kTakeBackTimeout);
  return *failed;
}

Result<void> Client::add_sources(ObjectId target, std::span<const ObjectId> sources, Timeout timeout) {
  const Subject subject{"add_sources", target};
  if (target.is_nil()) return subject.error(Code::kInvalidArgument, "the id of the target is nil");
  if (const auto wrong = check_sources(target, sources)) return subject.error(wrong->code, wrong->message);
  const client::AddSources request{target, {sources.begin(), sources.end()}};
  const auto done = to_target(subject, connection_->ask(subject, request, Deadline::after(timeout)));
  if (!done) return done.error();
  return {};
}

Result<ReduceStatus> Client::reduce_status(ObjectId target, Timeout timeout) {
  const Subject subject{"reduce_status", target};
  if (target.is_nil()) return subject.error(Code::kInvalidArgument, "the id of the target is nil");
  const auto reply = connection_->ask(subject, client::GetReduce{target}, Deadline::after(timeout));
  if (!reply) return reply.error();
  const auto* reduction = std::get_if<client::Reduction>(&*reply);
  if (reduction == nullptr) return client::unexpected(subject);
  return to_status(reduction->report);
}

Result<std::vector<View>> Client::gather(std::span<const ObjectId> ids, const GetOptions& options) {
  const auto gathering = std::make_shared<Gathering>();
  gathering->views.resize(ids.size());
  gathering->missing = ids.size();
  const auto deadline = Deadline::after(options.timeout);  // one for all
  std::vector<std::uint64_t> requests;
  for (std::size_t i = 0; i < ids.size(); ++i)
    requests.push_back(get_async(ids[i], {deadline.left(), options.on_lost},
                                 [gathering, i](Result<View> view) { gathering->arrived(i, std::move(view)); }));
  connection_->send_queued();
  std::unique_lock lock(gathering->mutex);
  gathering->changed.wait(lock, [&] { return gathering->failed || gathering->missing == 0; });
  if (!gathering->failed) return std::move(gathering->views);
  lock.unlock();  // cancelled gets report, too
  for (const std::uint64_t request : requests) cancel(request);
  return *gathering->failed;
}

std::size_t ReduceStatus::awaited() const {
  const auto used = std::count_if(sources.begin(), sources.end(),
                                  [](const Source& source) { return source.state == Source::State::kUsed; });
  return count - std::min(count, static_cast<std::size_t>(used));
}

const char* reduce_phase_name(ReduceStatus::Phase phase) {
  switch (phase) {
    case ReduceStatus::Phase::kWaiting: return "waiting";
    case ReduceStatus::Phase::kRunning: return "running";
    case ReduceStatus::Phase::kDone: return "done";
    case ReduceStatus::Phase::kFailed: return "failed";
  }
  return "";
}

const char* source_state_name(ReduceStatus::Source::State state) {
  switch (state) {
    case ReduceStatus::Source::State::kAwaited: return "awaited";
    case ReduceStatus::Source::State::kSpare: return "spare";
    case ReduceStatus::Source::State::kUsed: return "used";
    case ReduceStatus::Source::State::kLost: return "lost";
    case ReduceStatus::Source::State::kDeleted: return "deleted";
  }
  return "";
}

}  // namespace hoplite
