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

// What makes no sense, or is more than this node's limits allow.
std::optional<Error> Agent::Impl::check_here(const ReduceSpec& spec) const {
  if (spec.sources.size() <= limits_.max_sources && spec.parts <= limits_.max_slices) return check(spec);
  return Error{Code::kInvalidArgument, "a reduce may have " + std::to_string(limits_.max_sources) + " sources and " +
                                           std::to_string(limits_.max_slices) + " parts"};
}

// --- clients -------------------------------------------------------------------------------------------------------------

void Agent::Impl::on_client(ClientKey client, std::uint64_t request, client::Reduce& m) {
  m.spec.target = id_or_fresh(m.spec.target);
  if (const auto wrong = check_here(m.spec)) return fail(client, request, wrong->code, wrong->message);
  if (too_many_objects(client, request, m.spec.sources.size())) return;
  const ObjectId target = m.spec.target;
  ask_home({client, request}, target, -1, ReduceRequest{0, std::move(m.spec)});
}

void Agent::Impl::on_client(ClientKey client, std::uint64_t request, client::AddSources& m) {
  if (m.sources.size() > limits_.max_sources) return fail(client, request, Code::kInvalidArgument, "too many sources");
  if (const auto wrong = check_sources(m.target, m.sources)) return fail(client, request, wrong->code, wrong->message);
  ask_home({client, request}, m.target, -1, AddSources{0, m.target, std::move(m.sources)});
}

void Agent::Impl::on_client(ClientKey client, std::uint64_t request, client::GetReduce& m) {
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
    return end_errand(m.request, client::Reducing{m.target});
  }
  const std::string who = "object " + m.target.to_string() + " (home " + from.id.to_string() + ")";
  end_errand(m.request, client::Failed{m.code, m.text.empty() ? who : who + ": " + m.text});
}

// If it had ended well, there are bytes, and they are believed.
void Agent::Impl::lose_started(NodeRef coordinator) {
  std::vector<ObjectId> lost;
  for (const auto& [target, by] : started_.all())
    if (by == coordinator) lost.push_back(target);
  for (const ObjectId& target : lost) {
    remember(target, random_.next_nonzero(), coordinator_gone(coordinator));
    started_.erase(target);
  }
}

std::string Agent::Impl::coordinator_gone(NodeRef coordinator) {
  return "node " + coordinator.id.to_string() + ", which coordinated its reduce, died or was given up";
}

void Agent::Impl::on(NodeRef from, const ReduceAnswer& m) {
  const Errands::Errand* errand = errands_.find(m.request);
  if (errand != nullptr && errand->home == from) end_errand(m.request, client::Reduction{m.report});
}

// --- the coordinator -----------------------------------------------------------------------------------------------------

ReduceReport Agent::Impl::Coordinated::report() const {
  ReduceReport all = reduction.report();
  if (all.phase == ReducePhase::kDone) all.bytes = all.size;
  else if (version == reduction.target_version())
    for (const auto& [slot, there] : bytes) all.bytes += there;
  return all;
}

// Only roots make the target's version.
void Agent::Impl::Coordinated::note_progress(const SlotUpdate& update) {
  if (update.version != reduction.target_version()) return;
  if (std::exchange(version, update.version) != update.version) bytes.clear();
  bytes[update.slot] = update.bytes;
}

// A hop is half a round trip, as far as pings have shown; one that met a pause says nothing.
LinkCost Agent::Impl::link_cost() const {
  const auto measured = Duration::us(static_cast<std::int64_t>(membership_.typical_rtt_us() / 2));
  const bool plausible = measured >= kLeastHop && measured <= kMostHop;
  return {(plausible ? measured : limits_.hop_latency).seconds(), static_cast<double>(rate_estimate_)};
}

void Agent::Impl::on(NodeRef from, const ReduceRequest& m) {
  const ObjectId& target = m.spec.target;
  if (!is_home(from, target)) return;
  const auto answer = [&](Code code, std::string text) {
    send(from, ReduceReply{m.request, target, code, std::move(text)});
  };
  if (const auto wrong = check_here(m.spec)) return answer(wrong->code, wrong->message);
  // Asked again, maybe by one that was given up meanwhile: the number tells.
  const std::pair asked{from.id, m.request};
  if (const auto same = reductions_.find(target); same != reductions_.end() && same->second.asked == asked)
    return answer(Code::kOk, "");
  if (const Ended* ended = ended_.find(target); ended != nullptr && ended->asked == asked)
    return answer(Code::kOk, "");  // and it was quick
  if (records_.size() + m.spec.sources.size() > limits_.max_objects || reductions_.size() >= limits_.max_reduces)
    return answer(Code::kStoreFull, std::to_string(reductions_.size()) + " reduces are under way there, and " +
                                        std::to_string(records_.size()) + " objects known");
  Directory::Output homes;
  const Code code = directory_.reserve(now_, target, homes);
  flush(homes);
  if (code != Code::kOk) return answer(code, "");
  ended_.erase(target);
  Reduction::Options options{self(), m.spec, link_cost(), limits_, random_.next()};
  Coordinated& state =
      reductions_.emplace(target, Coordinated{Reduction(std::move(options)), asked, 0, {}, {}, false, {}, {}})
          .first->second;
  timers_.set(state.deadline, deadline_of(m.spec.timeout_ns), timer::ReduceDeadline{target});
  answer(Code::kOk, "");
  Reduction::Output out;
  state.reduction.start(out);
  carry_on(target, out);
}

void Agent::Impl::on(NodeRef from, const AddSources& m) {
  if (!is_home(from, m.target)) return;
  const auto it = reductions_.find(m.target);
  if (it == reductions_.end())
    return send(from, ReduceReply{m.request, m.target, Code::kInvalidArgument, "no reduce into it is under way"});
  Coordinated& state = it->second;
  Reduction::Output out;
  std::optional<Error> wrong;
  if (!state.added.contains({from.id, m.request})) {  // it may be asked again
    wrong = check_sources(m.target, m.sources);
    if (!wrong) wrong = state.reduction.add_sources(m.sources, out);
    if (!wrong) state.added.insert({from.id, m.request});
  }
  send(from, ReduceReply{m.request, m.target, wrong ? wrong->code : Code::kOk, wrong ? wrong->message : ""});
  carry_on(m.target, out);
}

void Agent::Impl::on(NodeRef from, const ReduceQuery& m) {
  if (!is_home(from, m.target)) return;
  const auto it = reductions_.find(m.target);
  if (it != reductions_.end()) return send(from, ReduceAnswer{m.request, it->second.report()});
  const Ended* ended = ended_.find(m.target);
  if (ended != nullptr) return send(from, ReduceAnswer{m.request, ended->report});
  Directory::Output homes;
  const bool known = directory_.knows(now_, m.target, homes);
  flush(homes);
  if (!known) return send(from, ReduceReply{m.request, m.target, Code::kUnavailable, ""});
  const std::string lost = directory_.why_lost(m.target);
  if (!lost.empty()) return send(from, ReduceReply{m.request, m.target, Code::kLost, lost});
  send(from, ReduceReply{m.request, m.target, Code::kInvalidArgument, "its home knows of no reduce into it"});
}

void Agent::Impl::on(NodeRef from, const SlotUpdate& m) {
  const auto it = reductions_.find(m.target);
  if (it == reductions_.end()) {
    const Ended* ended = ended_.find(m.target);
    const bool committed = ended != nullptr && ended->report.phase == ReducePhase::kDone &&
                           ended->version == m.version && m.state == SlotState::kDone;
    if (m.state != SlotState::kEnded) send(from, SlotEnd{m.target, m.slot, m.version, committed});
    return;
  }
  it->second.note_progress(m);
  Reduction::Output out;
  it->second.reduction.on_update(from, m, out);
  carry_on(m.target, out);
}

// Carries out what the reduction has decided. Orders first: what is watched may have arrived long ago, and leads to more.
void Agent::Impl::carry_on(const ObjectId& target, Reduction::Output& out) {
  Coordinated& state = reductions_.at(target);
  Reduction& reduction = state.reduction;
  reduction.tick(now_, out);
  Directory::Output homes;
  directory_.expect(target, reduction.target_version(), homes);
  flush(homes);
  for (Reduction::Outgoing& send_one : out.sends) send(send_one.to, std::move(send_one.message));
  timers_.set(state.timer, reduction.next_wakeup(), timer::Reduction{target});
  if (reduction.phase() == ReducePhase::kDone && !state.committed) {
    state.committed = true;
    timers_.cancel(state.deadline);
    directory_.commit(target, reduction.target_version());
  }
  if (reduction.over()) return finish(target);
  if (out.watch.empty()) return;
  const std::uint64_t inline_bytes = star_bytes(reduction.spec().count, link_cost(), limits_.inline_bytes);
  for (const ObjectId& source : out.watch) {
    if (!reductions_.contains(target)) return;  // one that was there already has ended it
    watch(source, target, inline_bytes);
  }
}

void Agent::Impl::finish(const ObjectId& target) {
  Coordinated state = std::move(reductions_.at(target));
  reductions_.erase(target);
  timers_.cancel(state.timer);
  timers_.cancel(state.deadline);
  ReduceReport report = state.report();
  Directory::Output homes;
  if (report.phase == ReducePhase::kFailed) {
    COVERAGE_MARK(reduce_failed);
    directory_.fail_waiters(target, report.code, report.text, homes);
  } else {
    COVERAGE_MARK(reduce_committed);
  }
  directory_.release(now_, target, homes);
  flush(homes);
  unwatch_all(report);
  ended_.put(target, {std::move(report), state.reduction.target_version(), state.asked});
}

void Agent::Impl::cancel_reduction(const ObjectId& target, Code code, const std::string& why) {
  const auto it = reductions_.find(target);
  if (it == reductions_.end()) return;
  Reduction::Output out;
  it->second.reduction.fail(code, why, out);
  carry_on(target, out);
}

void Agent::Impl::reductions_lose(NodeRef node) {
  for_each_reduction([&](Reduction& reduction, Reduction::Output& out) { reduction.on_dead(node, out); });
}

void Agent::Impl::reductions_ask_again(NodeRef node) {
  for_each_reduction([&](Reduction& reduction, Reduction::Output&) { reduction.ask_again(node); });
}

void Agent::Impl::for_each_reduction(const std::function<void(Reduction&, Reduction::Output&)>& tell) {
  std::vector<ObjectId> targets;
  for (const auto& [target, state] : reductions_) targets.push_back(target);
  for (const ObjectId& target : targets) {
    const auto it = reductions_.find(target);
    if (it == reductions_.end()) continue;
    Reduction::Output out;
    tell(it->second.reduction, out);
    carry_on(target, out);
  }
}

// A node joined that is the target's home now: readers ask there, so the coordinator cannot stay here. Only named targets
// can move; whoever wants a reduce to survive joins has its target minted.
void Agent::Impl::give_up_moved_reductions() {
  std::vector<ObjectId> moved;
  for (const auto& [target, state] : reductions_)
    if (home(target) != self() && state.reduction.phase() != ReducePhase::kDone) moved.push_back(target);
  for (const ObjectId& target : moved) {
    COVERAGE_MARK(home_of_a_reduce_moved);
    const Version version = reductions_.at(target).reduction.target_version();
    const std::string why = "node " + home(target).id.to_string() +
                            " joined and is its home now, before its reduce had ended; reduce again";
    cancel_reduction(target, Code::kLost, why);
    remember(target, version != 0 ? version : random_.next_nonzero(), why);
  }
}

// We were given up: for the others, what we coordinated is lost, and what we filled has been dropped.
void Agent::Impl::forget_reductions() {
  while (!reductions_.empty()) {
    const ObjectId target = reductions_.begin()->first;
    Coordinated state = std::move(reductions_.begin()->second);
    reductions_.erase(reductions_.begin());
    timers_.cancel(state.timer);
    timers_.cancel(state.deadline);
    unwatch_all(state.reduction.report());
    const Version version = state.reduction.target_version();
    remember(target, version != 0 ? version : random_.next_nonzero(), "its coordinator was given up by the others");
  }
  slots_.drop_all();
}

// --- sources -------------------------------------------------------------------------------------------------------------

void Agent::Impl::watch(const ObjectId& source, const ObjectId& target, std::uint64_t inline_bytes) {
  Record& r = record(source);
  r.watchers.insert(target);
  r.watch_inline = std::max(r.watch_inline, inline_bytes);
  const Copy* copy = current_copy(r);
  if (copy != nullptr && copy->is_complete()) return became_ready(r);
  send_notify(r);
}

// Not again for those that were told; a reduce that loses it asks again.
void Agent::Impl::arrived(Record& record, const Reduction::Arrival& arrival) {
  const std::set<ObjectId> watchers = std::move(record.watchers);
  record.watchers.clear();
  record.watch_inline = 0;
  record.notify_if_put_again = false;
  for (const ObjectId& target : watchers) {
    const auto it = reductions_.find(target);
    if (it == reductions_.end()) continue;
    Reduction::Output out;
    it->second.reduction.on_arrival(now_, arrival, out);
    carry_on(target, out);
  }
}

void Agent::Impl::went_missing(Record& record, Code code, const std::string& why) {
  const std::set<ObjectId> watchers = record.watchers;
  const ObjectId id = record.id;
  for (const ObjectId& target : watchers) {
    const auto it = reductions_.find(target);
    if (it == reductions_.end()) continue;
    Reduction::Output out;
    it->second.reduction.on_missing(id, code, why, out);
    carry_on(target, out);
  }
}

void Agent::Impl::unwatch_all(const ReduceReport& report) {
  for (const SourceReport& source : report.sources) {
    Record* r = find(source.id);
    if (r == nullptr || r->watchers.erase(report.target) == 0 || r->wants_notice()) continue;
    timers_.cancel(r->notify_timer);
    r->notify_request = 0;
    r->watch_inline = 0;
    send(r->home, Unwant{source.id, WantMode::kNotify});
    touched_.insert(source.id);
  }
}

}  // namespace hoplite
