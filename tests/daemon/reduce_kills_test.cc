// 200 reduces and allreduces among 8 daemons that are killed (kill -9) at random moments and started again at their
// addresses. Every get of a target ends: with the sum of exactly the sources that the report names, or with a true
// reason.
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>
#include <thread>

#include "reduce_fixture.h"

namespace hoplite::testing {
namespace {

constexpr std::size_t kDaemons = 8;
constexpr std::size_t kAtOnce = 8;  // reduces of one round
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kRounds = 6;  // there it is memory and threads that are tested
#else
constexpr std::size_t kRounds = 25;
#endif
constexpr char kRate[] = "120mbit";     // slow enough that kills hit transfers half-way
constexpr std::uint64_t kSpanMs = 700;  // of the kills in a round; its transfers last for about so long
constexpr auto kGetTimeout = 20s;       // nothing waits for so long unless something is wrong
constexpr auto kReduceTimeout = 50s;    // of the whole; the gets are over before
constexpr auto kHeardWithin = 300ms;    // a get reaches the coordinator, also on a busy machine
constexpr auto kUnknownAfter = 2s;
constexpr double kSmallest = 1024, kLargest = 8 << 20;

// HOPLITE_TEST_SEED chooses another run.
std::uint64_t seed() {
  const char* text = std::getenv("HOPLITE_TEST_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 2021;
}

// Element `e` of the source whose seed this is: nothing has to be kept to know what a sum should be.
template <typename T> T element(std::uint64_t seed, std::size_t e) {
  const std::uint64_t word = mix64(seed + e);
  if constexpr (std::is_integral_v<T>) return static_cast<T>(word);
  else return static_cast<T>(word >> 40) / static_cast<T>(1 << 23) - T{1};
}

using Clock = std::chrono::steady_clock;

struct Reading {
  std::size_t node = 0;
  Future<View> get;
  Clock::time_point asked = Clock::now();
};

struct Job {
  DType type = DType::kI64;
  std::size_t elements = 0;
  std::uint64_t seed = 0;
  std::size_t count = 0;
  Spread spread = Spread::kNone;  // kNone: a reduce, else an allreduce
  std::size_t caller = 0;
  std::size_t coordinator = 0;  // it has minted the target
  ObjectId target;
  std::vector<ObjectId> ids;
  std::vector<std::vector<std::size_t>> nodes;  // of each source: where it was put; a second one if the first died
  std::string puts;  // how they went, if not as they should; for whoever looks into a failure
  bool started = false;
  std::vector<Reading> readings;

  std::uint64_t seed_of(std::size_t source) const { return mix64(seed + source); }
  std::size_t bytes() const { return elements * size_of(type); }
};

// Whether the bytes begin with the sum of the sources in `mask`, and are nothing else.
template <typename T> bool is_sum(const Job& job, std::uint32_t mask, const T* values) {
  std::vector<std::uint64_t> seeds;
  for (std::size_t i = 0; i < job.ids.size(); ++i)
    if ((mask >> i & 1) != 0) seeds.push_back(job.seed_of(i));
  for (std::size_t e = 0; e < job.elements; ++e) {
    if constexpr (std::is_integral_v<T>) {
      std::uint64_t sum = 0;
      for (const std::uint64_t source : seeds) sum += static_cast<std::uint64_t>(element<T>(source, e));
      if (values[e] != static_cast<T>(sum)) return false;
    } else {
      double sum = 0;
      double magnitude = 0;
      for (const std::uint64_t source : seeds) {
        const auto value = static_cast<double>(element<T>(source, e));
        sum += value;
        magnitude += std::abs(value);
      }
      const double rounding = std::ldexp(magnitude * static_cast<double>(seeds.size()), -24);
      if (!(std::abs(static_cast<double>(values[e]) - sum) <= rounding)) return false;
    }
  }
  return true;
}

template <typename F> auto with_type(DType type, F&& call) {
  if (type == DType::kF32) return call(float{});
  if (type == DType::kI32) return call(std::int32_t{});
  return call(std::int64_t{});
}

// Which sources the bytes are the sum of, as a mask; 0: no such set has `count` of them.
std::uint32_t explain(const Job& job, const View& view) {
  if (view.size() != job.bytes()) return 0;
  return with_type(job.type, [&]<typename T>(T) {
    for (std::uint32_t mask = 1; mask < 1U << job.ids.size(); ++mask) {
      if (static_cast<std::size_t>(std::popcount(mask)) != job.count) continue;
      if (is_sum(job, mask, reinterpret_cast<const T*>(view.data()))) return mask;
    }
    return 0U;
  });
}

class ReduceKills : public ReduceFixture {
 protected:
  void SetUp() override {
    start_slow(kDaemons, kRate);
    for (std::size_t i = 0; i < kDaemons; ++i) daemons_.push_back(&cluster_[i]);
  }

  // --- drawing
  std::size_t any_node() { return random_.below(kDaemons); }
  Job draw_job() {
    static constexpr DType kTypes[] = {DType::kI64, DType::kI32, DType::kF32};
    Job job;
    job.type = kTypes[random_.below(3)];
    const double bytes = kSmallest * std::pow(kLargest / kSmallest, random_.uniform());
    job.elements = static_cast<std::size_t>(bytes) / size_of(job.type);
    job.seed = random_.next();
    const bool spares = random_.chance(0.5);
    job.count = spares ? random_.between(4, kDaemons - 1) : kDaemons;
    if (random_.chance(0.5)) job.spread = static_cast<Spread>(1 + random_.below(3));
    job.caller = any_node();
    job.coordinator = random_.chance(0.7) ? job.caller : any_node();
    job.target = clients_[job.coordinator].new_id();
    const bool one_each = random_.chance(0.75);
    for (std::size_t i = 0; i < kDaemons; ++i) {
      job.ids.push_back(clients_[any_node()].new_id());
      job.nodes.push_back({one_each ? i : any_node()});
    }
    return job;
  }

  // --- doing
  // On its node, or, if that one has died by now, on another one.
  void put_source(Job& job, std::size_t i) {
    with_type(job.type, [&]<typename T>(T) {
      std::vector<T> values(job.elements);
      for (std::size_t e = 0; e < job.elements; ++e) values[e] = element<T>(job.seed_of(i), e);
      const PutOptions options{
          .id = job.ids[i], .array = {job.type, {static_cast<std::uint64_t>(job.elements)}}, .timeout = kGetTimeout};
      for (std::size_t tries = 0; tries < kDaemons; ++tries) {
        const std::size_t node = job.nodes[i].back();
        const auto done = clients_[node].put(std::as_bytes(std::span(values)), options);
        if (!done.ok() || job.nodes[i].size() > 1)
          job.puts += "\n  put of " + job.ids[i].to_string() + " at " + names_[node] + ": " +
                      (done.ok() ? "done" : done.error().to_string());
        if (done.ok() || (job.nodes[i].size() > 1 && done.code() == Code::kExists)) return;
        ASSERT_EQ(done.code(), Code::kUnavailable) << done.error().to_string();
        ASSERT_TRUE(killed_[node]) << done.error().to_string();
        job.nodes[i].push_back((node + 1) % kDaemons);
      }
      FAIL() << "nobody takes it";
    });
  }
  void begin(Job& job) {
    ReduceOptions options;
    options.target = job.target;
    options.type = job.type;
    options.count = job.count;
    options.timeout = kReduceTimeout;
    options.spread = job.spread;
    Client& caller = clients_[job.caller];
    const auto begun = caller.reduce(job.ids, options);
    job.started = begun.ok();
    if (!begun.ok()) {
      ASSERT_TRUE(killed_[job.caller]) << begun.error().to_string();
      return;
    }
    std::set<std::size_t> readers = {any_node(), any_node()};
    if (job.spread != Spread::kNone)
      for (std::size_t i = 0; i < kDaemons; ++i) readers.insert(i);
    for (const std::size_t node : readers)
      job.readings.push_back({node, clients_[node].get_async(job.target, {.timeout = kGetTimeout})});
  }
  // All of them at once: puts and calls in any order.
  void begin_all(std::vector<Job>& jobs) {
    std::vector<std::pair<std::size_t, std::size_t>> steps;
    for (std::size_t j = 0; j < jobs.size(); ++j)
      for (std::size_t i = 0; i <= kDaemons; ++i) steps.emplace_back(j, i);
    for (std::size_t left = steps.size(); left > 1; --left) std::swap(steps[left - 1], steps[random_.below(left)]);
    for (const auto& [j, i] : steps) {
      if (i == kDaemons) ASSERT_NO_FATAL_FAILURE(begin(jobs[j])) << describe(jobs[j]);
      else ASSERT_NO_FATAL_FAILURE(put_source(jobs[j], i)) << describe(jobs[j]) << ", source " << i;
    }
  }

  // Kills some daemons, each at a moment of its own, from a thread of its own.
  std::thread start_killing() {
    std::map<std::uint64_t, std::size_t> moments;
    const std::size_t victims = random_.between(1, 2);
    while (moments.size() < victims) moments[random_.below(kSpanMs)] = any_node();
    return std::thread([this, moments] {
      std::uint64_t now = 0;
      for (const auto& [moment, node] : moments) {
        std::this_thread::sleep_for(std::chrono::milliseconds(moment - now));
        now = moment;
        if (killed_[node].exchange(true)) continue;
        killed_at_[node] = Clock::now();
        daemons_[node]->kill();
      }
    });
  }
  // A source whose only copy died together with its home before anybody else had heard of it has never been, as far as
  // those who live can know. The reduce waits for it, and so it is put again.
  void put_forgotten_again(Job& job) {
    const auto status = clients_[survivor()].reduce_status(job.target, 30s);
    if (!status.ok() || status->sources.size() != job.ids.size()) return;
    for (std::size_t i = 0; i < job.ids.size(); ++i) {
      const bool put_on_a_dead_node = std::ranges::any_of(job.nodes[i], [&](auto n) { return killed_[n].load(); });
      if (status->sources[i].state != SourceState::kAwaited || !put_on_a_dead_node) continue;
      job.nodes[i].push_back(survivor());
      put_source(job, i);
    }
  }
  // The coordinator may have died before it heard of this get; then nobody who lives need know that there was a reduce.
  bool may_be_unknown(const Job& job, const Reading& reading) {
    if (!killed_[job.coordinator] || killed_at_[job.coordinator].load() - reading.asked > kHeardWithin) return false;
    return !clients_[survivor()].reduce_status(job.target, 30s).ok();
  }
  // It may take its time, but it ends; nothing, if it need not.
  std::optional<Result<View>> end_of(Job& job, Reading& reading, Clock::time_point began) {
    while (!reading.get.wait_for(300ms)) {
      put_forgotten_again(job);
      const auto waited = Clock::now() - began;
      if (waited > kGetTimeout + 20s || (waited > kUnknownAfter && may_be_unknown(job, reading))) {
        reading.get.cancel();
        auto last = reading.get.get();
        if (last.code() == Code::kCancelled && waited <= kGetTimeout) return std::nullopt;
        return last;
      }
    }
    return reading.get.get();
  }
  void restart_killed() {
    for (std::size_t i = 0; i < kDaemons; ++i) {
      if (daemons_[i]->running()) continue;
      DaemonSetup setup;
      setup.listen = daemons_[i]->address();
      setup.arguments = {"--max-rate", kRate};
      daemons_[i] = &cluster_.start(setup);
      clients_[i] = daemons_[i]->connect();
    }
  }
  std::size_t survivor() const {
    std::size_t node = 0;
    while (killed_[node]) ++node;
    return node;
  }

  // --- judging
  std::string describe(const Job& job) const {
    std::string text = "seed " + std::to_string(seed()) + ", round " + std::to_string(round_) + ": " +
                       "reduce with spread " + std::to_string(static_cast<int>(job.spread)) + " of " +
                       std::to_string(job.count) + " of " + std::to_string(job.ids.size()) + " sources of " +
                       std::to_string(job.elements) + " " + std::string(to_string(job.type)) + " into " +
                       job.target.to_string() + ", coordinated by " + names_[job.coordinator] + "; killed:";
    for (std::size_t i = 0; i < kDaemons; ++i)
      if (killed_[i]) text += " " + names_[i];
    return text + job.puts;
  }
  std::string status_text(const Result<ReduceStatus>& status) const {
    if (!status.ok()) return status.error().to_string();
    std::string text = std::string(to_string(status->phase)) + ", attempts " + std::to_string(status->attempts);
    if (status->error) text += ", " + status->error->to_string();
    for (const auto& source : status->sources)
      text += "\n  " + source.id.to_string() + " " + std::string(to_string(source.state)) + " " + source.node;
    for (const auto& slot : status->slots)
      text += "\n  slice " + std::to_string(slot.slice) + " at " + slot.node + " of " + std::to_string(slot.sources) +
              (slot.parent ? " into " + std::to_string(*slot.parent) : " (root)") + (slot.done ? " done" : "");
    return text;
  }
  bool died(const std::string& name) const {
    for (std::size_t i = 0; i < kDaemons; ++i)
      if (killed_[i] && names_[i] == name) return true;
    return false;
  }
  bool enough_sources_live(const Job& job) const {
    const auto lives = [&](const auto& nodes) {
      return std::ranges::none_of(nodes, [&](auto n) { return killed_[n].load(); });
    };
    return static_cast<std::size_t>(std::ranges::count_if(job.nodes, lives)) >= job.count;
  }
  // On a machine that is starved of processors, live daemons may hold each other for dead: as good as a death.
  bool somebody_was_given_up() {
    for (std::size_t i = 0; i < kDaemons; ++i)
      if (daemons_[i]->log().find("was declared dead by others") != std::string::npos) return true;
    return false;
  }
  // Lost: the coordinator died, too few sources are left, or the result was on a node that died after the commit.
  bool may_be_lost(const Job& job, const Result<ReduceStatus>& status) const {
    if (killed_[job.coordinator]) return true;
    if (!status.ok()) return false;
    const auto root_died = [&](const auto& slot) { return !slot.parent && died(slot.node); };
    if (status->phase == ReducePhase::kDone) return std::ranges::any_of(status->slots, root_died);
    return status->phase == ReducePhase::kFailed && status->error->code == Code::kLost && !enough_sources_live(job);
  }
  void expect_true_reason(const Job& job, std::size_t reader, const Error& error, const Result<ReduceStatus>& status) {
    ++failed_[std::string(code_name(error.code))];
    if (error.code == Code::kUnavailable && killed_[reader]) return;
    EXPECT_EQ(error.code, Code::kLost) << error.to_string();
    EXPECT_TRUE(may_be_lost(job, status) || somebody_was_given_up()) << error.to_string();
    EXPECT_THAT(error.message, ::testing::HasSubstr(job.target.to_string()));
  }
  // The report, if there is one, names what was summed.
  void expect_agrees(const Job& job, std::uint32_t mask, const Result<ReduceStatus>& status) {
    if (!status.ok()) {
      EXPECT_TRUE(killed_[job.coordinator] || somebody_was_given_up());
      return;
    }
    EXPECT_EQ(status->phase, ReducePhase::kDone);
    ASSERT_EQ(status->sources.size(), job.ids.size());
    std::uint32_t used = 0;
    for (std::size_t i = 0; i < job.ids.size(); ++i) {
      EXPECT_EQ(status->sources[i].id, job.ids[i]);
      if (status->sources[i].state == SourceState::kUsed) used |= 1U << i;
    }
    EXPECT_EQ(used, mask) << "the report names others";
  }
  void check(Job& job) {
    if (!job.started) return;
    const auto began = Clock::now();
    std::optional<View> first;
    std::vector<std::pair<std::size_t, Error>> errors;
    for (Reading& reading : job.readings) {
      auto result = end_of(job, reading, began);
      if (!result) {
        ++failed_["unknown to all who live"];
        continue;
      }
      if (!result->ok()) {
        errors.emplace_back(reading.node, result->error());
        continue;
      }
      ++arrived_;
      const View view = std::move(**result);
      if (!first) first = view;
      EXPECT_TRUE(std::ranges::equal(first->bytes(), view.bytes())) << "node " << reading.node << " has other bytes";
    }
    const auto status = clients_[survivor()].reduce_status(job.target, 30s);
    if (status.ok()) mended_ += status->attempts;
    SCOPED_TRACE(describe(job) + "\n" + status_text(status));
    for (const auto& [node, error] : errors) {
      SCOPED_TRACE("at " + names_[node]);
      expect_true_reason(job, node, error, status);
    }
    if (!first) return;
    const std::uint32_t mask = explain(job, *first);
    EXPECT_NE(mask, 0U) << "it is the sum of no " << job.count << " of the sources";
    expect_agrees(job, mask, status);
  }

  void expect_nothing_left(std::vector<Job>& jobs) {
    for (const Job& job : jobs) {
      std::vector<ObjectId> ids = job.ids;
      ids.push_back(job.target);
      for (const ObjectId id : ids) {
        const auto removed = clients_[any_node()].remove(id, 60s);
        EXPECT_TRUE(removed.ok()) << describe(job) << ": " << removed.error().to_string();
      }
    }
    jobs.clear();
    for (std::size_t i = 0; i < kDaemons; ++i)
      EXPECT_TRUE(eventually([&] {
        const auto status = clients_[i].status();
        return status.ok() && status->used_bytes == 0;
      })) << "seed "
          << seed() << ", round " << round_ << ": " << node_name(i) << " keeps " << clients_[i].status()->used_bytes
          << " bytes";
  }

  void play_round() {
    for (std::size_t i = 0; i < kDaemons; ++i) {
      names_[i] = node_name(i);
      killed_[i] = false;
    }
    std::vector<Job> jobs;
    for (std::size_t i = 0; i < kAtOnce; ++i) jobs.push_back(draw_job());
    std::thread killer = start_killing();
    begin_all(jobs);
    killer.join();
    if (HasFatalFailure()) return;
    if (random_.chance(0.5)) restart_killed();  // while gets are under way
    for (Job& job : jobs) check(job);
    restart_killed();
    cluster_.wait_for_members(kDaemons);
    expect_nothing_left(jobs);
  }

  Random random_{seed()};
  std::vector<Daemon*> daemons_;
  std::array<std::string, kDaemons> names_;
  std::array<std::atomic<bool>, kDaemons> killed_ = {};  // in this round
  std::array<std::atomic<Clock::time_point>, kDaemons> killed_at_ = {};
  std::size_t round_ = 0;
  std::size_t arrived_ = 0;
  std::size_t mended_ = 0;
  std::map<std::string, int> failed_;  // by reason
};

TEST_F(ReduceKills, SumsAreExactOrMissingForATrueReason) {
  for (; round_ < kRounds && !HasFailure(); ++round_) play_round();
  std::printf("%zu results arrived, trees were mended %zu times", arrived_, mended_);
  for (const auto& [reason, count] : failed_) std::printf(", %d %s", count, reason.c_str());
  std::printf("\n");
  EXPECT_GT(arrived_, kRounds * kAtOnce) << "most must arrive, whatever happens";
  EXPECT_GT(mended_, 0U) << "no kill hit a reduce";
}

// Whoever waits for the target is told, also if no other node has a part of it, because nothing has been reduced yet.
TEST_F(ReduceKills, WhoWaitsForAResultIsToldThatItsCoordinatorDied) {
  const std::vector<std::size_t> elements = {0, 100, 100'000};  // of the source that is there; 0: none is
  for (std::size_t coordinator = 0; coordinator < elements.size(); ++coordinator) {
    SCOPED_TRACE(std::to_string(elements[coordinator]) + " elements");
    const std::vector ids = {clients_[6].new_id(), clients_[7].new_id()};
    const auto target = clients_[coordinator].reduce(ids, {.type = DType::kI64});
    ASSERT_TRUE(target.ok()) << target.error().to_string();
    if (elements[coordinator] > 0) put(6, ids[0], numbers<std::int64_t>(elements[coordinator], 1));
    auto get = clients_[7].get_async(*target, {.timeout = kGetTimeout});
    EXPECT_FALSE(get.wait_for(500ms)) << "a source is missing";
    cluster_[coordinator].kill();
    const auto view = get.get();
    ASSERT_FALSE(view.ok());
    EXPECT_EQ(view.code(), Code::kLost) << view.error().to_string();
    EXPECT_THAT(view.error().message, ::testing::HasSubstr(target->to_string()));
  }
}

// The same in the middle: the others have parts of it, and wait for more.
TEST_F(ReduceKills, WhoFollowsAResultIsToldThatItsCoordinatorDied) {
  for (std::size_t coordinator = 0; coordinator < 2; ++coordinator) {
    const bool all_get = coordinator == 0;
    SCOPED_TRACE(all_get ? "allreduce" : "reduce");
    const std::vector ids = {clients_[coordinator].new_id(), clients_[6].new_id(), clients_[7].new_id()};
    const std::vector<std::size_t> nodes = {coordinator, 6, 7};
    for (std::size_t i = 0; i < 3; ++i) put(nodes[i], ids[i], numbers<std::int64_t>(2'000'000, i));  // a second
    const ReduceOptions options = {.type = DType::kI64, .spread = all_get ? Spread::kWhole : Spread::kNone};
    Client& caller = clients_[coordinator];
    const auto target = caller.reduce(ids, options);
    ASSERT_TRUE(target.ok()) << target.error().to_string();
    std::vector<Future<View>> gets;
    for (const std::size_t node : {5UL, 6UL, 7UL})
      gets.push_back(clients_[node].get_async(*target, {.timeout = kGetTimeout}));
    ASSERT_TRUE(eventually([&] {
      const auto status = clients_[7].reduce_status(*target, 30s);
      return status.ok() && status->bytes > 0;
    }));
    cluster_[coordinator].kill();
    for (auto& get : gets) {
      const auto view = get.get();
      ASSERT_FALSE(view.ok());
      EXPECT_EQ(view.code(), Code::kLost) << view.error().to_string();
      EXPECT_THAT(view.error().message, ::testing::HasSubstr(target->to_string()));
    }
  }
}

}  // namespace
}  // namespace hoplite::testing
