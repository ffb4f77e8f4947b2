// This node as the coordinator of reduces, and its clients' part in them.
//
// What is decided is decided in core/reduce; here it meets the homes of the sources, the directory, and the clients.
#include <algorithm>

#include "base/coverage.h"
#include "core/agent/impl.h"
#include "protocol/reduce_check.h"

namespace hoplite {

// --- clients -------------------------------------------------------------------------------------------------------------

void Agent::Impl::on_client(const RequestKey& key, ipc::Reduce& m) {
  m.spec.target = id_or_fresh(m.spec.target);
  if (const auto wrong = check_reduce(m.spec, limits_)) return clients_.fail(key, wrong->code, wrong->message);
  if (too_many_objects(key, m.spec.sources.size())) return;
  const ObjectId target = m.spec.target;
  ask_home(key, target, -1, ReduceRequest{0, std::move(m.spec)});
}

void Agent::Impl::on_client(const RequestKey& key, ipc::AddSources& m) {
  if (m.sources.size() > limits_.max_sources) return clients_.fail(key, Code::kInvalidArgument, "too many sources");
  if (const auto wrong = check_sources(m.target, m.sources)) return clients_.fail(key, wrong->code, wrong->message);
  ask_home(key, m.target, -1, AddSources{0, m.target, std::move(m.sources), std::move(m.names)});
}

void Agent::Impl::on_client(const RequestKey& key, ipc::GetReduce& m) {
  ask_home(key, m.target, -1, ReduceQuery{0, m.target});
}

void Agent::Impl::on(NodeRef from, const ReduceReply& m) {
  const Errands::Errand* errand = errands_.find(m.request);
  if (errand == nullptr) return;
  // A home of before that has accepted it may have made the target already, and then it is taken for the present one.
  if (errand->home != from && m.code != Code::kOk) return;
  // The home does not know yet what it should know.
  if (m.code == Code::kUnavailable) return errands_.send_at(m.request, out_.now() + limits_.retry_backoff);
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
    announcer_.remember(target, kNeverMade, coordinator_gone(coordinator));
    started_.erase(target);
  }
}

std::string Agent::Impl::coordinator_gone(NodeRef coordinator) {
  return "node " + coordinator.id.to_string() + ", which coordinated its reduce, has died or was declared dead";
}

void Agent::Impl::on(NodeRef from, const ReduceAnswer& m) {
  const Errands::Errand* errand = errands_.find(m.request);
  if (errand != nullptr && errand->home == from) end_errand(m.request, ipc::Reported{m.report});
}

// --- the coordinator -----------------------------------------------------------------------------------------------------

// A hop is half a round trip, as far as pings have shown; one that met a pause says nothing.
LinkCost Agent::Impl::typical_link() const {
  const auto measured = Duration::us(static_cast<std::int64_t>(membership_.typical_rtt_us() / 2));
  const bool plausible = measured >= limits_.least_hop && measured <= limits_.most_hop;
  return {(plausible ? measured : limits_.hop_latency).seconds(), static_cast<double>(rate_estimate_)};
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

// --- sources -------------------------------------------------------------------------------------------------------------

void Agent::Impl::watch(const ObjectId& source, const ObjectId& target, std::uint64_t welcome_bytes) {
  const Record& r = records_.add(source);
  notices_.watch(source, target, welcome_bytes);
  const Copy* copy = records_.copy_of(r);
  if (copy != nullptr && copy->is_complete()) return became_ready(r);
  notices_.ask(source);
}

void Agent::Impl::unwatch(const ObjectId& source, const ObjectId& target) { notices_.unwatch(source, target); }

void Agent::Impl::arrived(const Reduction::Arrival& arrival) {
  for (const ObjectId& target : notices_.take_watchers(arrival.id)) coordinator_.on_arrival(target, arrival);
}

}  // namespace hoplite
