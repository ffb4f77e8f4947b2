#include "sim/random_run.h"

#include <algorithm>
#include <functional>

#include "sim/draw.h"
#include "sim/faults.h"
#include "sim/quiet_checks.h"
#include "sim/workload.h"

namespace hoplite::sim {

namespace {

class RandomRun {
 public:
  explicit RandomRun(const RunOptions& options)
      : plan_(plan_for(options)),
        random_(mix64(options.seed) ^ 0x6c6f6164ULL),
        world_(plan_),
        judge_(world_, ledger_, {plan_.patience, plan_.beat + Duration::s(1)}),  // a dial may take a second to fail
        clients_(world_, ledger_, judge_),
        workload_(world_, clients_, ledger_, judge_, plan_, random_),
        faults_(world_, judge_, plan_, random_) {
    if (world_.trace().on())
      world_.trace().say(world_.now(), "", "seed " + std::to_string(options.seed) + ": " + plan_.summary());
  }

  RunResult run() {
    using Phase = void (RandomRun::*)();  // each leaves early when there is a violation
    for (const Phase phase :
         {&RandomRun::build, &RandomRun::warm_up, &RandomRun::load_and_faults, &RandomRun::stop_faults,
          &RandomRun::finish_requests, &RandomRun::finish_reduces, &RandomRun::put_lost_again,
          &RandomRun::read_everything, &RandomRun::compare_directory, &RandomRun::expect_no_repairs,
          &RandomRun::delete_everything, &RandomRun::expect_nothing_left, &RandomRun::expect_quick_failovers})
      if (!failed()) (this->*phase)();
    return {world_.violation(), world_.digest(), world_.queue().executed(), world_.repairs(),
            clients_.failovers().ended()};
  }

 private:
  static RunPlan plan_for(const RunOptions& options) {
    RunPlan plan = draw_plan(options.seed, options.nodes);
    plan.trace = options.trace;
    return plan;
  }

  bool failed() const { return world_.violation().has_value(); }

  // Runs until `done`, at most the plan's patience; false if that was not enough.
  bool run_until_true(const std::function<bool()>& done) {
    const Time end = world_.now() + plan_.patience;
    while (!done()) {
      if (world_.now() >= end) return false;
      if (!world_.run_for(plan_.beat / 2)) return true;  // a violation is reported elsewhere
    }
    return true;
  }

  // --- safety

  void build() {
    std::vector<Address> addresses;
    for (NodeIndex node = 0; node < plan_.nodes; ++node)
      addresses.push_back({"10.0.0." + std::to_string(node + 1), 7411});
    for (NodeIndex node = 0; node < plan_.nodes; ++node) {
      NodeSpec spec{addresses[node], plan_.link, plan_.capacity, addresses};
      if (plan_.few_seeds) {
        spec.seeds.clear();
        if (node > 0) spec.seeds.push_back(addresses[random_.below(node)]);
      }
      world_.add_node(spec);
    }
    for (NodeIndex node = 0; node < plan_.nodes; ++node) {
      world_.start(node);
      if (random_.chance(0.3)) world_.run_for(plan_.beat / static_cast<std::int64_t>(1 + random_.below(8)));
    }
  }

  void warm_up() {
    if (plan_.warm_up && !run_until_true([this] { return members_converged(world_); }))
      world_.violate("members-converge", "the nodes did not find each other: " + members_of_all(world_));
    // From now on everybody has heard of everybody; those who start again must not depend on one address.
    std::vector<Address> all;
    for (NodeIndex node = 0; node < plan_.nodes; ++node) all.push_back(world_.spec(node).address);
    for (NodeIndex node = 0; node < plan_.nodes; ++node) world_.spec(node).seeds = all;
  }

  void load_and_faults() {
    const Time begin = world_.now();
    std::vector<std::pair<Time, bool>> moments;  // false: an operation, true: a fault
    const auto a_moment = [&] { return begin + Duration{static_cast<std::int64_t>(random_.below(plan_.safety.ns))}; };
    for (std::uint32_t i = 0; i < plan_.operations; ++i) moments.push_back({a_moment(), false});
    for (std::uint32_t i = 0; i < plan_.faults; ++i) moments.push_back({a_moment(), true});
    // Clients come in bursts: several ask within the time of a message.
    for (std::size_t i = 1; i < moments.size(); ++i)
      if (!moments[i].second && random_.chance(0.4))
        moments[i].first =
            moments[i - 1].first + Duration{static_cast<std::int64_t>(random_.below(plan_.link.latency.ns * 3))};
    std::sort(moments.begin(), moments.end());
    for (const auto& [when, is_fault] : moments) {
      if (!world_.run_until(std::max(when, world_.now()))) return;
      if (is_fault) faults_.strike();
      else workload_.operate();
    }
    world_.run_until(std::max(world_.now(), begin + plan_.safety));
  }

  // --- liveness

  void stop_faults() {
    faults_.end_all();
    // The first of all seeds is the only one that forms a cluster when the others are gone.
    if (world_.running_nodes().size() <= 1 && !world_.running(0)) world_.start(0);
    world_.trace().say(world_.now(), "", "faults have stopped");
    // A verdict may still be on its way from a probe that the faults swallowed.
    const Limits& limits = plan_.limits;
    world_.run_for(plan_.beat + limits.ping_timeout + limits.indirect_timeout + plan_.network.dial_timeout);
    if (!run_until_true([this] { return members_converged(world_); }))
      world_.violate("members-converge", "after the faults: " + members_of_all(world_));
  }

  ClientKey somebody() { return clients_.on(some_running_node()); }

  NodeIndex some_running_node() {
    for (int tries = 0; tries < 1000; ++tries)
      if (const auto node = static_cast<NodeIndex>(random_.below(world_.size())); world_.running(node)) return node;
    return kNobody;
  }

  // Whether a get there can have memory, also if the free memory is in pieces.
  bool has_room_for(NodeIndex node, const ObjectId& id) {
    std::uint64_t largest = 0;
    for (const PutNumber put : ledger_.about(id).puts) largest = std::max(largest, ledger_.puts[put].size);
    return world_.agent(node).status().pinned + 2 * round_up(largest, 4096) <= world_.capacity(node) / 2;
  }

  void expect_ended(const std::vector<RequestNumber>& requests, const std::string& after_what) {
    const auto all_ended = [&] {
      // Who has read gives its view back: in a tight store the others wait for that.
      for (const RequestNumber number : requests)
        if (ledger_.requests[number].ended && ledger_.requests[number].held != 0)
          clients_.release(ledger_.requests[number].held);
      return std::all_of(requests.begin(), requests.end(), [&](RequestNumber r) { return ledger_.requests[r].ended; });
    };
    if (run_until_true(all_ended)) return;
    for (const RequestNumber number : requests)
      if (!ledger_.requests[number].ended)
        world_.violate("everything-finishes", judge_.describe(number) + " does not end " + after_what);
  }

  void finish_requests() {
    workload_.finish_writing();
    clients_.release_all();
    clients_.end_disconnected();
    // Those that can finish must; the others wait for what nobody will do, and are cancelled.
    const auto can_finish = [this](const std::set<ObjectId>& available) {
      std::vector<RequestNumber> numbers;
      for (RequestNumber number = 1; number < ledger_.requests.size(); ++number) {
        const RequestRecord& request = ledger_.requests[number];
        if (request.ended) continue;
        const bool bounded = request.deadline != Time::never() || request.kind == Ask::kRemove ||
                             request.kind == Ask::kSeal || request.kind == Ask::kReduce || request.kind == Ask::kReport;
        const bool readable =
            request.kind == Ask::kGet && available.contains(request.id) && has_room_for(request.node, request.id);
        if (bounded || readable) numbers.push_back(number);
      }
      return numbers;
    };
    world_.run_for(plan_.beat);
    Time longest = world_.now();
    for (const RequestRecord& request : ledger_.requests)
      if (!request.ended && request.deadline != Time::never()) longest = std::max(longest, request.deadline);
    if (!world_.run_until(longest)) return;
    expect_ended(can_finish(judge_.available()), "after the faults");
    if (failed()) return;
    std::vector<RequestNumber> rest;
    for (RequestNumber number = 1; number < ledger_.requests.size(); ++number)
      if (!ledger_.requests[number].ended && !ledger_.requests[number].wait_if_lost)
        rest.push_back(number), clients_.cancel(number);
    expect_ended(rest, "though it was cancelled");
    clients_.release_all();
    judge_.settled();
  }

  // A reduce that its coordinator still knows ends as soon as enough sources are there.
  void finish_reduces() {
    std::vector<RequestNumber> reports;
    const NodeIndex node = some_running_node();
    if (node == kNobody) return;
    for (const auto& [id, record] : ledger_.objects) {
      if (ledger_.is_reduced(record) && record.removes.empty())
        reports.push_back(clients_.report(clients_.on(node), id));
    }
    expect_ended(reports, "though faults have stopped");
    // Whoever fills a slot needs room for what it combines, and what is put again needs some, too.
    bool roomy = !plan_.tight;
    for (const NodeIndex i : world_.running_nodes())
      roomy = roomy && world_.agent(i).status().pinned * 3 < world_.capacity(i);
    if (failed() || !roomy) return;
    std::set<ObjectId> missing;
    std::vector<RequestNumber> reads;
    const std::set<ObjectId> available = judge_.available();
    for (const RequestNumber number : reports) {
      const auto report = ledger_.requests[number].report;
      if (!report || report->phase == ReducePhase::kDone || report->phase == ReducePhase::kFailed) continue;
      if (touched_by_deletes(report->target, 0)) continue;
      for (const SourceReport& source : report->sources)
        if (!available.contains(source.id)) missing.insert(source.id);
      reads.push_back(clients_.get(somebody(), {report->target}));
    }
    // A home may believe for a while in a writer whose last word was lost.
    for (int round = 0; round < 4 && !missing.empty() && !failed(); ++round) {
      if (round > 0) world_.run_for(plan_.limits.announce_every * 2);
      put_sources(missing);
    }
    expect_ended(reads, "though enough sources of its reduce are there");
  }

  std::vector<RequestNumber> seal_all(const std::vector<RequestNumber>& puts) {
    std::vector<RequestNumber> seals;
    for (const RequestNumber put : puts)
      if (const RequestNumber seal = clients_.seal(put, kNoTimeout); seal != 0) seals.push_back(seal);
    expect_ended(seals, "though faults have stopped");
    return seals;
  }

  // Those that were refused stay in `ids`.
  void put_sources(std::set<ObjectId>& ids) {
    std::vector<RequestNumber> puts;
    for (const ObjectId& id : ids) puts.push_back(clients_.create(somebody(), id, size_of_source(id), kNoTimeout));
    expect_ended(puts, "though there is room");
    for (const RequestNumber seal : seal_all(puts))
      if (ledger_.requests[seal].code == Code::kOk) ids.erase(ledger_.requests[seal].id);
  }

  // A delete of what nobody knew leaves no trace: the source may come, or not.
  bool touched_by_deletes(const ObjectId& id, int depth) const {
    const ObjectRecord& record = ledger_.about(id);
    if (!record.removes.empty() || depth > 8) return true;
    return std::ranges::any_of(record.puts, [&](PutNumber put) {
      const auto& reduce = ledger_.puts[put].reduce;
      return reduce && std::ranges::any_of(reduce->sources, [&](const ObjectId& source) {
               return touched_by_deletes(source, depth + 1);
             });
    });
  }

  std::uint64_t size_of_source(const ObjectId& id) const {
    for (const PutRecord& put : ledger_.puts)
      if (put.reduce && std::ranges::count(put.reduce->sources, id) > 0) return put.size;
    return 0;
  }

  // A node that was left alone waits a while for others before it calls anything lost; until then an id "exists".
  void retry_refused(std::vector<RequestNumber>& puts) {
    const std::size_t first = puts.size();
    std::vector<ObjectId> refused;
    for (std::size_t i = 0; i < first; ++i)
      if (ledger_.requests[puts[i]].code == Code::kExists) refused.push_back(ledger_.requests[puts[i]].id);
    if (refused.empty()) return;
    world_.run_for(Duration::s(4));
    for (const ObjectId& id : refused)
      puts.push_back(clients_.create(somebody(), id, 100 + random_.below(200), kNoTimeout));
    expect_ended(puts, "though there is room");
  }

  // What is lost can be put again, and those who chose to wait go on.
  void put_lost_again() {
    const std::set<ObjectId> available = judge_.available();
    std::vector<RequestNumber> waiting, puts;
    const auto end = static_cast<RequestNumber>(ledger_.requests.size());  // not the puts that follow
    for (RequestNumber number = 1; number < end; ++number) {
      const RequestRecord request = ledger_.requests[number];
      if (request.ended) continue;
      const bool deleted = !ledger_.about(request.id).removes.empty();
      const bool reduced = ledger_.is_reduced(ledger_.about(request.id));
      if (request.kind != Ask::kGet || available.contains(request.id) || deleted || reduced || plan_.tight) {
        clients_.cancel(number);
      } else {
        // Large enough to be told apart, and a put of its own for each get: the first wins.
        puts.push_back(clients_.create(somebody(), request.id, 100 + random_.below(200), kNoTimeout));
      }
      waiting.push_back(number);
    }
    expect_ended(puts, "though there is room");
    retry_refused(puts);
    seal_all(puts);
    expect_ended(waiting, "though its object was put again");
    clients_.release_all();
  }

  void read_everything() {
    const std::set<ObjectId> available = judge_.available();
    for (const auto& [id, record] : ledger_.objects)
      for (const PutNumber put : record.puts) {
        const Time done = ledger_.puts[put].done;
        if (done == Time::never() || !record.removes.empty() || !judge_.calm_since(ledger_.puts[put].began)) continue;
        if ((!record.bare || *record.bare < done) && !available.contains(id))
          world_.violate("done-is-readable", "put " + std::to_string(put) + " of " + judge_.object(id) +
                                                 " was confirmed, and no complete copy is left though no holder died");
      }
    std::vector<RequestNumber> reads;
    for (const ObjectId& id : available) {
      if (!ledger_.objects.contains(id)) continue;  // its client was gone before it could tell the name
      for (int i = 0; i < 2; ++i) {
        const NodeIndex node = some_running_node();
        reads.push_back(clients_.get(clients_.on(node), {id, plan_.patience.ns / 2, false, random_.chance(0.2)}));
      }
    }
    expect_ended(reads, "though a complete copy exists");
    if (!failed()) judge_reads(reads);
  }

  void judge_reads(const std::vector<RequestNumber>& reads) {
    std::map<ObjectId, RequestNumber> first;
    for (const RequestNumber number : reads) {
      const RequestRecord& read = ledger_.requests[number];
      const bool no_room = read.code == Code::kStoreFull || (plan_.reduces && read.code == Code::kTimedOut);
      if (no_room && plan_.tight) continue;  // reduces that are under way keep what they have combined
      if (read.code == Code::kDeleted && !ledger_.about(read.id).removes.empty()) continue;
      if (!read.got)
        return world_.violate("done-is-readable", judge_.describe(number) + " failed though a complete copy exists: " +
                                                      std::string(code_name(read.code)) + ", " + read.message + "; " +
                                                      leftovers(world_, read.node));
      const auto [it, fresh] = first.try_emplace(read.id, number);
      const PutNumber before = *ledger_.requests[it->second].got;
      if (before != *read.got && ledger_.puts[*read.got].size >= 8)
        return world_.violate("readers-agree", judge_.describe(it->second) + " read put " + std::to_string(before) +
                                                   ", " + judge_.describe(number) + " read put " +
                                                   std::to_string(*read.got));
    }
    clients_.release_all();
  }

  void compare_directory() {
    std::string wrong;
    const auto agrees = [&] { return (wrong = directory_disagreement(world_)).empty(); };
    if (!run_until_true(agrees)) world_.violate("directory-agrees", wrong);
  }

  // Every home is told everything once more in the course of a run. Where nothing was lost, that must tell it nothing new. (An
  // announcement may cross the word that an eviction is granted.)
  void expect_no_repairs() {
    if (plan_.hazard != Hazard::kNone || world_.any_evicted()) return;
    for (const NodeIndex node : world_.running_nodes())
      if (const std::uint64_t repairs = world_.agent(node).repairs(); repairs > 0)
        world_.violate("repairs-have-reasons", node_name(node) + " heard " + std::to_string(repairs) +
                                                   " facts from full announcements only, though nothing was lost");
  }

  // Where nobody is held back (pauses, partitions, slow links, full stores), what a failover waits for is known: the verdict on
  // the dead, or the silence and the dial that tell of it; the home, which may be new and is asked again; parents that are tried
  // in turn; and all others' turns at the links. Each of them once, since the last fault.
  void expect_quick_failovers() {
    if (plan_.hazard == Hazard::kAll || plan_.tight) return;
    const Limits& limits = plan_.limits;
    const Duration verdict = limits.ping_every + limits.ping_timeout + limits.indirect_timeout;
    const Duration noticed = verdict + limits.stall_after + plan_.network.dial_timeout;
    const Duration asked = limits.want_refresh + limits.request_retry + limits.retry_backoff * limits.slowest_retry;
    const double link = std::min(plan_.link.up, plan_.link.down);
    const Duration turns = Duration::from_seconds(static_cast<double>(plan_.max_size) / link) * plan_.nodes;
    const Duration bound = noticed + asked + turns;
    for (const Failover& failover : clients_.failovers().ended())
      if (failover.undisturbed > bound)
        world_.violate("failovers-are-quick", node_name(failover.child.node) + " took " +
                                                  format_duration(failover.undisturbed) + " to go on with " +
                                                  judge_.object(failover.object) + "; " + format_duration(bound) +
                                                  " are allowed");
  }

  void delete_everything() {
    std::set<ObjectId> ids = ids_with_copies(world_);
    for (const auto& [id, record] : ledger_.objects) ids.insert(id);
    std::vector<RequestNumber> removes;
    if (some_running_node() == kNobody) return;
    for (const ObjectId& id : ids) removes.push_back(clients_.remove(somebody(), id, plan_.patience.ns));
    expect_ended(removes, "though faults have stopped");
    for (const RequestNumber number : removes)
      if (!failed() && ledger_.requests[number].code != Code::kOk)
        world_.violate("everything-finishes", judge_.describe(number) + " failed: " + ledger_.requests[number].message);
  }

  void expect_nothing_left() {
    std::string left;
    const auto nothing_left = [&] {
      // A create that had queued for room may be granted only now.
      while (!ledger_.writing.empty()) clients_.abort(ledger_.writing.begin()->first);
      return (left = leftovers(world_)).empty();
    };
    if (!run_until_true(nothing_left)) world_.violate("memory-returns", left);
  }

  RunPlan plan_;
  Random random_;
  Ledger ledger_;
  World world_;
  Judge judge_;
  Clients clients_;
  Workload workload_;
  Faults faults_;
};

}  // namespace

RunResult run_random(const RunOptions& options) { return RandomRun(options).run(); }

}  // namespace hoplite::sim
