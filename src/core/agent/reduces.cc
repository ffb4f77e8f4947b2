// This node as the coordinator of reduces, and its clients' part in them.
//
// What is decided is decided in core/reduce; here it meets the homes of the sources, the directory, and the clients.
#include <algorithm>

#include "base/coverage.h"
#include "core/agent/impl.h"
#include "protocol/reduce_check.h"

namespace hoplite {
namespace {

constexpr Duration kLeastHop = Duration::us(5);
constexpr Duration kMostHop = Duration::ms(100);

}  // namespace

// --- clients -------------------------------------------------------------------------------------------------------------

void Agent::Impl::on_client(ClientKey client, std::uint64_t request, ipc::Reduce& m) {
  m.spec.target = id_or_fresh(m.spec.target);
  if (const auto wrong = check_reduce(m.spec, limits_)) return fail(client, request, wrong->code, wrong->message);
  if (too_many_objects(client, request, m.spec.sources.size())) return;
  const ObjectId target = m.spec.target;
  ask_home({client, request}, target, -1, ReduceRequest{0, std::move(m.spec)});
}

void Agent::Impl::on_client(ClientKey client, std::uint64_t request, ipc::AddSources& m) {
  if (m.sources.size() > limits_.max_sources) return fail(client, request, Code::kInvalidArgument, "too many sources");
  if (const auto wrong = check_sources(m.target, m.sources)) return fail(client, request, wrong->code, wrong->message);
  ask_home({client, request}, m.target, -1, AddSources{0, m.target, std::move(m.sources)});
}

void Agent::Impl::on_client(ClientKey client, std::uint64_t request, ipc::GetReduce& m) {
  ask_home({client, request}, m.target, -1, ReduceQuery{0, m.target});
}

void Agent::Impl::on(NodeRef from, const ReduceReply& m) {
  const Errands::Errand* errand = errands_.find(m.request);
  if (errand == nullptr) return;
  // A home of before that has accepted it may have made the target already, and then it is taken for the present one.
  if (errand->home != from && m.code != Code::kOk) return;
  // The home does not know yet what it should know.
  if (m.code == Code::kUnavailable) return errands_.send_at(m.request, now_ + limits_.retry_backoff);
  if (m.code == Code::kOk) {
    // As long as no source has come, nobody but its coordinator and its asker may know of a reduce.
    if (std::holds_alternative<ReduceRequest>(errand->message)) started_.put(m.target, from);
    return end_errand(m.request, ipc::Reducing{m.target});
  }
  const std::string who = "object " + m.target.to_string() + " (home " + from.id.to_string() + ")";
  end_errand(m.request, ipc::Failed{m.code, m.text.empty() ? who : who + ": " + m.text});
}

// If it had ended well, there are bytes, and they are believed.
void Agent::Impl::lose_started(NodeRef coordinator) {
  std::vector<ObjectId> lost;
  for (const auto& [target, by] : started_.all())
    if (by == coordinator) lost.push_back(target);
  for (const ObjectId& target : lost) {
    remember_lost(target, 0, coordinator_gone(coordinator));
    started_.erase(target);
  }
}

std::string Agent::Impl::coordinator_gone(NodeRef coordinator) {
  return "node " + coordinator.id.to_string() + ", which coordinated its reduce, died or was given up";
}

void Agent::Impl::on(NodeRef from, const ReduceAnswer& m) {
  const Errands::Errand* errand = errands_.find(m.request);
  if (errand != nullptr && errand->home == from) end_errand(m.request, ipc::Reported{m.report});
}

// --- the coordinator -----------------------------------------------------------------------------------------------------

// A hop is half a round trip, as far as pings have shown; one that met a pause says nothing.
LinkCost Agent::Impl::typical_link() const {
  const auto measured = Duration::us(static_cast<std::int64_t>(membership_.typical_rtt_us() / 2));
  const bool plausible = measured >= kLeastHop && measured <= kMostHop;
  return {(plausible ? measured : limits_.hop_latency).seconds(), static_cast<double>(rate_estimate_)};
}

Reduction Agent::Impl::make_reduction(const ReduceSpec& spec) {
  return Reduction({self(), spec, link_costs(), limits_, random_.next()});
}

std::uint64_t Agent::Impl::welcome_bytes(std::uint32_t count) const {
  return star_bytes(count, typical_link(), limits_.tree_work.seconds(), limits_.inline_bytes);
}

void Agent::Impl::on(NodeRef from, const ReduceRequest& m) {
  if (is_home(from, m.spec.target)) coordinator_.on_request(from, m);
}
void Agent::Impl::on(NodeRef from, const AddSources& m) {
  if (is_home(from, m.target)) coordinator_.on_add_sources(from, m);
}
void Agent::Impl::on(NodeRef from, const ReduceQuery& m) {
  if (is_home(from, m.target)) coordinator_.on_query(from, m);
}

// A fact needs a version: where nobody has made one, any will do that no bytes have.
void Agent::Impl::remember_lost(const ObjectId& target, Version version, const std::string& why) {
  remember(target, version != 0 ? version : random_.next_nonzero(), why);
}

// --- sources -------------------------------------------------------------------------------------------------------------

void Agent::Impl::watch(const ObjectId& source, const ObjectId& target, std::uint64_t welcome_bytes) {
  Record& r = record(source);
  r.watchers.insert(target);
  r.watch_inline = std::max(r.watch_inline, welcome_bytes);
  const Copy* copy = current_copy(r);
  if (copy != nullptr && copy->is_complete()) return became_ready(r);
  send_notify(r);
}

void Agent::Impl::unwatch(const ObjectId& source, const ObjectId& target) {
  Record* r = find(source);
  if (r == nullptr || r->watchers.erase(target) == 0 || r->wants_notice()) return;
  timers_.cancel(r->notify_timer);
  r->notify_request = 0;
  r->watch_inline = 0;
  send(r->home, Unwant{source, WantMode::kNotify});
  touched_.insert(source);
}

// Not again for those that were told; a reduce that loses it asks again.
void Agent::Impl::arrived(Record& record, const Reduction::Arrival& arrival) {
  record.watch_inline = 0;
  record.notify_if_put_again = false;
  for (const ObjectId& target : std::exchange(record.watchers, {})) coordinator_.on_arrival(target, arrival);
}

void Agent::Impl::went_missing(const Record& record, Code code, const std::string& why) {
  const std::set<ObjectId> watchers = record.watchers;
  for (const ObjectId& target : watchers) coordinator_.on_missing(target, record.id, code, why);
}

}  // namespace hoplite
