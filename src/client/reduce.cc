// Reduces and gathers, as the user sees them.
#include "hoplite/reduce.h"

#include <algorithm>
#include <limits>

#include "base/enum_names.h"
#include "base/limits.h"
#include "client/states.h"
#include "protocol/names.h"
#include "protocol/reduce_check.h"

namespace hoplite {
namespace {

using client::Call;
using client::Deadline;
using client::Group;
using client::Link;
using client::Sending;
using client::Subject;

// As many as fit, so that people's words never make a request too long.
std::vector<std::string> kept(const std::vector<std::string>& names) {
  Names fitting(Limits{}.max_names_bytes);
  for (const std::string& name : names) fitting.add(name);
  return fitting.all();
}

constexpr auto to_target = client::from_reply<ipc::Reducing, &ipc::Reducing::target>;

ReduceSpec to_spec(ObjectIds sources, const ReduceOptions& options) {
  constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();
  ReduceSpec spec;
  spec.target = options.target;
  spec.sources.assign(sources.begin(), sources.end());
  spec.op = options.op;
  spec.type = options.type;
  spec.count = static_cast<std::uint32_t>(std::min(options.count.value_or(sources.size()), kMost));
  spec.wait_if_lost = options.on_lost == OnLost::kWait;
  spec.more_follow = options.more_sources_follow;
  spec.priority = options.priority;
  spec.part = options.part;
  spec.parts = std::max(options.parts, 1U);
  spec.names = kept(options.names);
  return spec;
}

Future<ObjectId> start_reduce(const Link& connection, ObjectIds sources, const ReduceOptions& options, Spread spread,
                              Sending sending) {
  ReduceSpec spec = to_spec(sources, options);
  spec.spread = spread;
  if (spec.target.is_nil()) spec.target = connection->new_id();  // so that an error can name it
  const Subject subject{"reduce", spec.target};
  if (const auto wrong = check(spec))
    return client::start_ended<to_target>(connection, subject.error(wrong->code, wrong->message));
  const auto deadline = Deadline::after(options.timeout);
  spec.timeout_ns = deadline.left_ns();
  return client::start<to_target>(connection, client::new_call(subject, deadline), ipc::Reduce{std::move(spec)},
                                  sending);
}

Spread to_all(const ReduceOptions& options) {
  return options.spread == Spread::kNone ? Spread::kByCost : options.spread;
}

// --- several calls as one

template <auto Convert>
auto start_group(const Link& connection, const Subject& subject, const Deadline& deadline, Group group,
                 std::span<const ipc::Request> requests, Sending sending) {
  const auto whole = client::new_call(subject, deadline);
  whole->group = std::make_unique<Group>(std::move(group));
  connection->submit_group(whole, requests, sending);
  return client::Access::future<Convert>(connection, whole);
}

// Each part's reply, converted.
template <typename T, auto Convert>
Result<std::vector<T>> to_all_parts(const Link& connection, const Call& call, Result<ipc::Reply> reply) {
  if (!reply) return reply.error();
  std::vector<T> all;
  std::optional<Error> failed;
  for (const auto& part : call.group->calls) {
    auto one = Convert(connection, *part, *std::move(part->result));
    if (one) all.push_back(*std::move(one));
    else if (!failed) failed = one.error();
  }
  if (failed) return *failed;
  return all;
}
constexpr auto to_views = to_all_parts<View, client::to_view>;
constexpr auto to_targets = to_all_parts<ObjectId, to_target>;

Future<std::vector<ObjectId>> start_scatter(const Link& connection, ObjectIds sources, const ReduceOptions& options,
                                            Sending sending) {
  const auto refused = [&](Code code, const std::string& why) {
    return client::start_ended<to_targets>(connection, Subject{"reduce_scatter", {}}.error(code, why));
  };
  if (!options.target.is_nil() || options.part != 0)
    return refused(Code::kInvalidArgument,
                   "it creates every part under a new target, so neither a part nor a target can be chosen");
  if (options.count.value_or(sources.size()) != sources.size() || options.more_sources_follow)
    return refused(Code::kInvalidArgument, "it always uses all sources: otherwise each part might use different ones");
  ReduceSpec spec = to_spec(sources, options);
  if (options.parts == 0) spec.parts = static_cast<std::uint32_t>(std::max<std::size_t>(sources.size(), 1));
  if (const auto wrong = check(spec)) return refused(wrong->code, wrong->message);

  const auto deadline = Deadline::after(options.timeout);
  spec.timeout_ns = deadline.left_ns();
  Group group;
  group.ends = Group::Ends::kWithTheLast;
  std::vector<ipc::Request> requests;
  for (spec.part = 0; spec.part < spec.parts; ++spec.part) {
    spec.target = connection->new_id();
    group.calls.push_back(client::new_call({"reduce", spec.target}, deadline));
    requests.emplace_back(ipc::Reduce{spec});
  }
  return start_group<to_targets>(connection, {"reduce_scatter", {}}, deadline, std::move(group), requests, sending);
}

Future<std::vector<View>> start_gather(const Link& connection, ObjectIds ids, const GetOptions& options,
                                       Sending sending) {
  const auto deadline = Deadline::after(options.timeout);  // one for all
  Group group;
  std::vector<ipc::Request> requests;
  for (const ObjectId id : ids) {
    const Subject subject{"get", id};
    if (auto ok = client::check_id(subject); !ok) return client::start_ended<to_views>(connection, ok.error());
    group.calls.push_back(client::new_get_call(id, options, deadline));
    requests.emplace_back(client::get_request(id, options, deadline));
  }
  return start_group<to_views>(connection, {"gather", {}}, deadline, std::move(group), requests, sending);
}

// --- what is said of a reduce

Result<void> to_nothing(const Link& connection, const Call& call, Result<ipc::Reply> reply) {
  const auto target = to_target(connection, call, std::move(reply));
  return target ? Result<void>() : target.error();
}

Future<void> start_add(const Link& connection, ObjectId target, ObjectIds sources, const Timeout& timeout,
                       const std::vector<std::string>& names, Sending sending) {
  const Subject subject{"add_sources", target};
  if (const auto wrong = check_sources(target, sources); wrong && !target.is_nil())
    return client::start_ended<to_nothing>(connection, subject.error(wrong->code, wrong->message));
  return client::start_about<to_nothing>(
      connection, subject, timeout, ipc::AddSources{target, {sources.begin(), sources.end()}, kept(names)}, sending);
}

ReduceStatus to_status(const ipc::Reported& reported) {
  const ReduceReport& report = reported.report;
  ReduceStatus status;
  Names names(report.names.size() * kMaxNameBytes);
  for (const std::string& name : report.names) names.add(name);
  status.target = report.target;
  status.name = names.find(report.target);
  status.op = report.op;
  status.type = report.type;
  status.phase = report.phase;
  if (report.phase == ReducePhase::kFailed)
    status.error = Error{report.code == Code::kOk ? Code::kInternal : report.code, report.text};
  status.coordinator = name_of(report.coordinator);
  status.count = report.count;
  status.attempts = report.attempts;
  status.size = report.size;
  status.bytes = report.bytes;
  for (const SourceReport& source : report.sources)
    status.sources.push_back(
        {source.id, source.state, name_of(source.node), source.order, std::string(names.find(source.id))});
  for (std::size_t i = 0; i < report.slots.size(); ++i) {
    const SlotReport& slot = report.slots[i];
    const bool root = slot.parent == i || slot.parent >= report.slots.size();
    status.slots.push_back({name_of(slot.node), slot.slice,
                            root ? std::nullopt : std::optional<std::size_t>(slot.parent), slot.sources, slot.done});
  }
  return status;
}

Future<ReduceStatus> start_query(const Link& connection, ObjectId target, const Timeout& timeout, Sending sending) {
  return client::start_about<client::from_reply<ipc::Reported, to_status>>(connection, {"reduce_status", target},
                                                                           timeout, ipc::GetReduce{target}, sending);
}

}  // namespace

Result<ObjectId> Client::reduce(ObjectIds sources, const ReduceOptions& options) {
  return start_reduce(connection_, sources, options, options.spread, Sending::kByWaiter).get();
}

Future<ObjectId> Client::reduce_async(ObjectIds sources, const ReduceOptions& options) {
  return start_reduce(connection_, sources, options, options.spread, Sending::kBatched);
}

Result<ObjectId> Client::allreduce(ObjectIds sources, const ReduceOptions& options) {
  return start_reduce(connection_, sources, options, to_all(options), Sending::kByWaiter).get();
}

Future<ObjectId> Client::allreduce_async(ObjectIds sources, const ReduceOptions& options) {
  return start_reduce(connection_, sources, options, to_all(options), Sending::kBatched);
}

Result<std::vector<ObjectId>> Client::reduce_scatter(ObjectIds sources, const ReduceOptions& options) {
  return start_scatter(connection_, sources, options, Sending::kByWaiter).get();
}

Future<std::vector<ObjectId>> Client::reduce_scatter_async(ObjectIds sources, const ReduceOptions& options) {
  return start_scatter(connection_, sources, options, Sending::kBatched);
}

Result<void> Client::add_sources(ObjectId target, ObjectIds sources, Timeout timeout,
                                 const std::vector<std::string>& names) {
  return start_add(connection_, target, sources, timeout, names, Sending::kByWaiter).get();
}

Future<void> Client::add_sources_async(ObjectId target, ObjectIds sources, Timeout timeout,
                                       const std::vector<std::string>& names) {
  return start_add(connection_, target, sources, timeout, names, Sending::kBatched);
}

Result<ReduceStatus> Client::reduce_status(ObjectId target, Timeout timeout) {
  return start_query(connection_, target, timeout, Sending::kByWaiter).get();
}

Future<ReduceStatus> Client::reduce_status_async(ObjectId target, Timeout timeout) {
  return start_query(connection_, target, timeout, Sending::kBatched);
}

Result<std::vector<View>> Client::gather(ObjectIds ids, const GetOptions& options) {
  return start_gather(connection_, ids, options, Sending::kByWaiter).get();
}

Future<std::vector<View>> Client::gather_async(ObjectIds ids, const GetOptions& options) {
  return start_gather(connection_, ids, options, Sending::kBatched);
}

std::size_t ReduceStatus::awaited() const {
  const auto used = std::count_if(sources.begin(), sources.end(),
                                  [](const Source& source) { return source.state == SourceState::kUsed; });
  return count - std::min(count, static_cast<std::size_t>(used));
}

std::string_view to_string(ReducePhase phase) {
  static constexpr std::string_view kNames[] = {"waiting", "running", "done", "failed"};
  return name_in(kNames, phase);
}

std::string_view to_string(SourceState state) {
  static constexpr std::string_view kNames[] = {"awaited", "spare", "used", "lost", "deleted", "failed"};
  return name_in(kNames, state);
}

}  // namespace hoplite
