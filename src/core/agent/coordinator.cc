#include "core/agent/coordinator.h"

#include <algorithm>

#include "base/check.h"
#include "base/coverage.h"
#include "protocol/reduce_check.h"

namespace hoplite {

std::optional<Error> check_reduce(const ReduceSpec& spec, const Limits& limits) {
  if (spec.sources.size() <= limits.max_sources && spec.parts <= limits.max_slices) return check(spec);
  return Error{Code::kInvalidArgument, "a reduce can have at most " + std::to_string(limits.max_sources) +
                                           " sources and " + std::to_string(limits.max_slices) + " parts"};
}

ReduceReport Coordinator::Running::report() const {
  ReduceReport all = reduction.report();
  if (all.phase == ReducePhase::kDone) all.bytes = all.size;
  else if (version == reduction.target_version())
    for (const auto& [slot, there] : bytes) all.bytes += there;
  return all;
}

// Only roots make the target's version.
void Coordinator::Running::note_progress(const SlotUpdate& update) {
  if (update.version != reduction.target_version()) return;
  if (std::exchange(version, update.version) != update.version) bytes.clear();
  bytes[update.slot] = update.bytes;
}

Coordinator::Coordinator(Parts parts, Host& host)
    : limits_(parts.limits),
      timers_(parts.timers),
      directory_(parts.directory),
      records_(parts.records),
      random_(parts.random),
      versions_(parts.versions),
      out_(parts.out),
      host_(host),
      ended_(parts.limits.max_reports) {}

// --- requests ------------------------------------------------------------------------------------------------------------

void Coordinator::on_request(NodeRef from, const ReduceRequest& m) {
  const ObjectId& target = m.spec.target;
  const auto answer = [&](Code code, std::string text) {
    out_.send(from, ReduceReply{m.request, target, code, std::move(text)});
  };
  // Asked again, maybe by one that was given up meanwhile: the number tells.
  const Asked asked{from.id, m.request};
  if (const auto same = running_.find(target); same != running_.end() && same->second.asked == asked)
    return answer(Code::kOk, "");
  if (const Ended* ended = ended_.find(target); ended != nullptr && ended->asked == asked)
    return answer(Code::kOk, "");  // and it was quick
  std::string why;
  if (const Code code = admit(m, why); code != Code::kOk) return answer(code, why);
  ended_.erase(target);
  const std::uint64_t generation = versions_.generation_at(out_.now(), directory_.newest_gone(target));
  Running& running =
      running_
          .emplace(target,
                   Running{Reduction({out_.self(), m.spec, host_.link_costs(), limits_, random_.next(), generation}),
                           asked,
                           0,
                           {},
                           {},
                           false,
                           {},
                           {}})
          .first->second;
  const Time deadline = m.spec.timeout_ns < 0 ? Time::never() : out_.now() + Duration{m.spec.timeout_ns};
  timers_.set(running.deadline, deadline, timer::ReduceDeadline{target});
  answer(Code::kOk, "");
  out_.emit(effect::Happened{effect::Happened::What::kReduceStarted, target, 0, ""});
  Reduction::Output out;
  running.reduction.start(out);
  carry_on(target, out);
}

// kOk: the target is reserved for it.
Code Coordinator::admit(const ReduceRequest& m, std::string& why) {
  if (const auto wrong = check_reduce(m.spec, limits_)) {
    why = wrong->message;
    return wrong->code;
  }
  const std::size_t objects = records_.size();
  if (objects + m.spec.sources.size() > limits_.max_objects || running_.size() >= limits_.max_reduces) {
    why = std::to_string(running_.size()) + " reduces are running there, and " + std::to_string(objects) +
          " objects are known";
    return Code::kStoreFull;
  }
  Directory::Output homes;
  const Code code = directory_.reserve(out_.now(), m.spec.target, homes);
  host_.flush(homes);
  return code;
}

void Coordinator::on_add_sources(NodeRef from, const AddSources& m) {
  const auto it = running_.find(m.target);
  if (it == running_.end())
    return out_.send(from,
                     ReduceReply{m.request, m.target, Code::kInvalidArgument, "no reduce with this target is running"});
  Running& running = it->second;
  Reduction::Output out;
  std::optional<Error> wrong;
  if (!running.added.contains({from.id, m.request})) {  // it may be asked again
    wrong = check_sources(m.target, m.sources);
    if (!wrong) wrong = running.reduction.add_sources(m.sources, m.names, out);
    if (!wrong) running.added.insert({from.id, m.request});
  }
  out_.send(from, ReduceReply{m.request, m.target, wrong ? wrong->code : Code::kOk, wrong ? wrong->message : ""});
  carry_on(m.target, out);
}

void Coordinator::on_query(NodeRef from, const ReduceQuery& m) {
  const auto it = running_.find(m.target);
  if (it != running_.end()) return out_.send(from, ReduceAnswer{m.request, it->second.report()});
  if (const ReduceReport* report = ended(m.target)) return out_.send(from, ReduceAnswer{m.request, *report});
  const auto refuse = [&](Code code, std::string text) {
    out_.send(from, ReduceReply{m.request, m.target, code, std::move(text)});
  };
  Directory::Output homes;
  const bool known = directory_.knows(out_.now(), m.target, homes);
  host_.flush(homes);
  if (!known) return refuse(Code::kUnavailable, "");
  const std::string lost = directory_.why_lost(m.target);
  if (!lost.empty()) return refuse(Code::kLost, lost);
  refuse(Code::kInvalidArgument, "its home does not know of a reduce with this target");
}

const ReduceReport* Coordinator::ended(const ObjectId& target) const {
  const Ended* ended = ended_.find(target);
  return ended == nullptr ? nullptr : &ended->report;
}

void Coordinator::cancel(const ObjectId& target, Code code, const std::string& why) {
  tell(target, [&](Reduction& reduction, Reduction::Output& out) { reduction.fail(code, why, out); });
}

// --- what happens to running reduces -------------------------------------------------------------------------------------

void Coordinator::on_update(NodeRef from, const SlotUpdate& m) {
  const auto it = running_.find(m.target);
  if (it == running_.end()) {
    const Ended* ended = ended_.find(m.target);
    const bool committed = ended != nullptr && ended->report.phase == ReducePhase::kDone &&
                           ended->version == m.version && m.state == SlotState::kDone;
    if (m.state != SlotState::kEnded) out_.send(from, SlotEnd{m.target, m.slot, m.version, committed});
    return;
  }
  it->second.note_progress(m);
  tell(m.target, [&](Reduction& reduction, Reduction::Output& out) { reduction.on_update(from, m, out); });
}

void Coordinator::on_arrival(const ObjectId& target, const Reduction::Arrival& arrival) {
  tell(target, [&](Reduction& reduction, Reduction::Output& out) { reduction.on_arrival(out_.now(), arrival, out); });
}

void Coordinator::on_missing(const ObjectId& target, const ObjectId& source, Code code, const std::string& why) {
  tell(target, [&](Reduction& reduction, Reduction::Output& out) { reduction.on_missing(source, code, why, out); });
}

void Coordinator::on_death(NodeRef node) {
  tell_all([&](Reduction& reduction, Reduction::Output& out) { reduction.on_dead(node, out); });
}

void Coordinator::ask_again(NodeRef node) {
  tell_all([&](Reduction& reduction, Reduction::Output&) { reduction.ask_again(node); });
}

void Coordinator::on_timer(const timer::ReduceDue& t) {
  tell(t.target, [](Reduction&, Reduction::Output&) {});  // it ticks
}

void Coordinator::on_timer(const timer::ReduceDeadline& t) {
  const std::string awaited = running_.at(t.target).reduction.awaited();
  cancel(t.target, Code::kTimedOut, awaited);
}

void Coordinator::tell(const ObjectId& target, const std::function<void(Reduction&, Reduction::Output&)>& what) {
  const auto it = running_.find(target);
  if (it == running_.end()) return;
  Reduction::Output out;
  what(it->second.reduction, out);
  carry_on(target, out);
}

void Coordinator::tell_all(const std::function<void(Reduction&, Reduction::Output&)>& what) {
  std::vector<ObjectId> targets;
  for (const auto& [target, running] : running_) targets.push_back(target);
  for (const ObjectId& target : targets) tell(target, what);
}

// Carries out what the reduction has decided. Orders first: what is watched may have arrived long ago, and leads to more.
void Coordinator::carry_on(const ObjectId& target, Reduction::Output& out) {
  Running& running = running_.at(target);
  Reduction& reduction = running.reduction;
  reduction.tick(out_.now(), out);
  Directory::Output homes;
  directory_.expect(target, reduction.target_version(), homes);
  host_.flush(homes);
  for (Reduction::Outgoing& outgoing : out.sends) out_.send(outgoing.to, std::move(outgoing.message));
  timers_.set(running.timer, reduction.next_wakeup(), timer::ReduceDue{target});
  if (reduction.phase() == ReducePhase::kDone && !running.committed) {
    running.committed = true;
    timers_.cancel(running.deadline);
    Directory::Output committed;
    directory_.commit(target, reduction.target_version(), committed);
    host_.flush(committed);
  }
  if (reduction.over()) return finish(target);
  if (out.watch.empty()) return;
  const std::uint64_t welcome_bytes = host_.welcome_bytes(reduction.spec().count);
  for (const ObjectId& source : out.watch) {
    if (!running_.contains(target)) return;  // one that was there already has ended it
    host_.watch(source, target, welcome_bytes);
  }
}

void Coordinator::finish(const ObjectId& target) {
  const Running running = take(target);
  ReduceReport report = running.report();
  Directory::Output homes;
  if (report.phase == ReducePhase::kFailed) {
    COVERAGE_MARK(reduce_failed);
    out_.emit(effect::Happened{effect::Happened::What::kReduceFailed, target, report.size, report.text});
    directory_.fail_waiters(target, report.code, report.text, homes);
  } else {
    COVERAGE_MARK(reduce_committed);
    out_.emit(effect::Happened{effect::Happened::What::kReduceDone, target, report.size, ""});
  }
  directory_.release(out_.now(), target, homes);
  host_.flush(homes);
  unwatch_all(report);
  ended_.put(target, {std::move(report), running.reduction.target_version(), running.asked});
}

Coordinator::Running Coordinator::take(const ObjectId& target) {
  const auto it = running_.find(target);
  CHECK(it != running_.end(), target);
  Running running = std::move(it->second);
  running_.erase(it);
  timers_.cancel(running.timer);
  timers_.cancel(running.deadline);
  return running;
}

void Coordinator::unwatch_all(const ReduceReport& report) {
  for (const SourceReport& source : report.sources) host_.unwatch(source.id, report.target);
}

// A node joined that is the target's home now: readers ask there, so the coordinator cannot stay here. Only named targets
// can move; whoever wants a reduce to survive joins has its target minted.
void Coordinator::give_up_moved() {
  std::vector<ObjectId> moved;
  for (const auto& [target, running] : running_)
    if (records_.home(target) != out_.self() && running.reduction.phase() != ReducePhase::kDone)
      moved.push_back(target);
  for (const ObjectId& target : moved) {
    COVERAGE_MARK(home_of_a_reduce_moved);
    const Version version = running_.at(target).reduction.target_version();
    const std::string why = "node " + records_.home(target).id.to_string() +
                            " joined and is its home now, before its reduce had ended; reduce again";
    cancel(target, Code::kLost, why);
    host_.remember_lost(target, version, why);
  }
}

void Coordinator::forget_all() {
  while (!running_.empty()) {
    const ObjectId target = running_.begin()->first;
    const Running running = take(target);
    unwatch_all(running.reduction.report());
    host_.remember_lost(target, running.reduction.target_version(), "the other nodes declared its coordinator dead");
  }
}

bool Coordinator::is_running() const {
  return std::ranges::any_of(running_,
                             [](const auto& item) { return item.second.reduction.phase() == ReducePhase::kRunning; });
}

void Coordinator::check_invariants() const {
  CHECK(running_.size() <= limits_.max_reduces, running_.size());
  CHECK(ended_.all().size() <= limits_.max_reports, ended_.all().size());
  for (const auto& [target, running] : running_) {
    CHECK(!running.reduction.over(), target);
    running.reduction.check_invariants();
    CHECK(running.committed == (running.reduction.phase() == ReducePhase::kDone), target);
    CHECK(!running.committed || !running.deadline, target);
  }
}

}  // namespace hoplite
