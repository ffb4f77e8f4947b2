#include "sim/draw.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace hoplite::sim {
namespace {

template <typename T>
T one_of(Random& random, std::initializer_list<T> choices) {
  return choices.begin()[random.below(choices.size())];
}

// Between low and high, each order of magnitude as likely as another.
double log_uniform(Random& random, double low, double high) { return low * std::pow(high / low, random.uniform()); }

Duration scaled(Duration beat, Random& random, double low, double high) {
  return Duration::from_seconds(beat.seconds() * log_uniform(random, low, high));
}

std::uint32_t draw_nodes(Random& random) {
  // Most bugs need two to four nodes, and small runs are quick; but some need many.
  if (random.chance(0.05)) return 1;
  if (random.chance(0.75)) return static_cast<std::uint32_t>(random.between(2, 4));
  return static_cast<std::uint32_t>(random.between(5, 12));
}

void draw_paces(RunPlan& plan, Random& random) {
  Limits& limits = plan.limits;
  const Duration beat = plan.beat;
  limits.ping_every = beat;
  limits.ping_timeout = scaled(beat, random, 1, 2);
  limits.indirect_timeout = scaled(beat, random, 1, 2.5);
  limits.gossip_every = scaled(beat, random, 2, 5);
  limits.sync_every = scaled(beat, random, 8, 25);
  limits.announce_every = scaled(beat, random, 20, 60);
  limits.rejoin_every = scaled(beat, random, 4, 10);
  limits.want_refresh = scaled(beat, random, 4, 16);
  limits.waiting_after = scaled(beat, random, 0.001, 0.3);
  limits.request_retry = scaled(beat, random, 2, 6);
  limits.stall_after = scaled(beat, random, 0.5, 2);
  limits.starved_every = limits.stall_after / 5;
  limits.retry_backoff = scaled(beat, random, 0.02, 0.3);
  limits.urgent_idle_after = scaled(beat, random, 0.05, 0.5);
  limits.idle_link_life = scaled(beat, random, 1, 200);
  limits.drain = random.chance(0.3) ? Duration{} : scaled(beat, random, 0.5, 8);
  limits.hop_latency = scaled(beat, random, 0.0005, 0.05);
  limits.least_hop = scaled(beat, random, 0.00005, 0.0005);
  limits.most_hop = scaled(beat, random, 0.1, 2);
  plan.network.dial_timeout = plan.links.dial_timeout = scaled(beat, random, 2, 5);
  plan.network.retransmit = plan.links.retransmit = scaled(beat, random, 0.1, 2);
  plan.links.trickle = limits.starved_every;
}

void draw_bounds(RunPlan& plan, Random& random) {
  Limits& limits = plan.limits;
  limits.inline_bytes = one_of<std::uint64_t>(random, {0, 16, 64, 256, 1024, 4096});
  limits.facts_per_message = one_of<std::uint32_t>(random, {1, 2, 3, 8, 512});
  limits.slice_bytes = one_of<std::uint64_t>(random, {0, 0, 64, 200, 1000, 4096});
  limits.max_slices = one_of<std::uint32_t>(random, {1, 2, 3, 8});
  limits.crowd = one_of<std::uint32_t>(random, {1, 4, 64});
  limits.max_children = one_of<std::uint32_t>(random, {1, 2, 3, 16});
  limits.max_relays = one_of<std::uint32_t>(random, {1, 2, 64});
  limits.max_passes = one_of<std::uint32_t>(random, {1, 64});
  limits.indirect_probes = one_of<std::uint32_t>(random, {1, 2, 3});
  limits.gossip_fanout = one_of<std::uint32_t>(random, {1, 2, 3});
  limits.gossip_repeats = one_of<std::uint32_t>(random, {1, 2, 4});
  limits.max_gossip_updates = one_of<std::uint32_t>(random, {2, 8, 64});
  limits.least_share = one_of<std::uint32_t>(random, {2, 5, 20});
  limits.max_asked_pulls = one_of<std::uint32_t>(random, {1, 4, 4096});
}

// Everything else. From a stream of its own: what is added here changes no other choice.
void draw_rare_limits(RunPlan& plan, std::uint64_t seed) {
  Random random(mix64(seed) ^ 0x6c696d697473ULL);
  Limits& limits = plan.limits;
  // Small enough to matter in some runs.
  limits.settle_backoffs = one_of<std::uint32_t>(random, {1, 2, 4});
  limits.room_backoffs = one_of<std::uint32_t>(random, {1, 5, 10});
  limits.forgive_backoffs = one_of<std::uint32_t>(random, {2, 5, 10});
  limits.output_backoffs = one_of<std::uint32_t>(random, {2, 10, 20});
  limits.quick_retries = one_of<std::uint32_t>(random, {0, 1, 3});
  limits.slowest_retry = one_of<std::uint32_t>(random, {5, 10, 25});
  limits.stall_doublings = one_of<std::uint32_t>(random, {0, 2, 6});
  limits.input_stalls = one_of<std::uint32_t>(random, {2, 8});
  limits.parked_stalls = one_of<std::uint32_t>(random, {2, 8});
  limits.input_refusals = one_of<std::uint32_t>(random, {6, 8, 16});
  limits.max_cut_off = one_of<std::uint32_t>(random, {1, 2, 64});
  limits.max_ferry_tries = one_of<std::uint32_t>(random, {2, 8});
  limits.max_ferries = one_of<std::uint32_t>(random, {1, 10'000});
  limits.ferry_refreshes = one_of<std::uint32_t>(random, {1, 3});
  limits.max_parked_pulls = one_of<std::uint32_t>(random, {1, 2, 64});
  limits.join_grace = scaled(plan.beat, random, 6, 30);
  limits.watch_for = limits.want_refresh * random.between(2, 4);
  limits.relay_for = scaled(plan.beat, random, 2, 20);
  limits.max_probes_for_others = one_of<std::uint32_t>(random, {64, 1'024});  // of fewer, a forgotten one is a death
  limits.max_deaths = one_of<std::uint32_t>(random, {1, 3, 64});
  limits.worth_measuring_bytes = one_of<std::uint64_t>(random, {100, 4'000, kMiB});
  limits.small_share = one_of<std::uint32_t>(random, {4, 16, 64});
  limits.reports_per_refresh = one_of<std::uint32_t>(random, {1, 10});
  limits.max_open_questions = one_of<std::uint32_t>(random, {1, 2, 4, 256});
  limits.compared_at_once = one_of<std::uint32_t>(random, {1, 2, 5, 512});
  limits.max_backlog_bytes = one_of<std::uint64_t>(random, {1, 500, 8 * kKiB, kMiB});
  // Reached in no run: what lies beyond them is an error that a client is told, or memory of what must not be forgotten.
  limits.max_meta_bytes = one_of<std::uint64_t>(random, {4 * kKiB, 5 * kKiB});
  limits.max_objects = one_of<std::uint32_t>(random, {10'000, 4'000'000});
  limits.max_tombstones = one_of<std::uint32_t>(random, {10'000, 100'000});
  limits.max_needed_tombstones = one_of<std::uint32_t>(random, {10'000, 1'000'000});
  limits.max_hearsay = one_of<std::uint32_t>(random, {10'000, 1'000'000});
  limits.hearsay_every = Duration::ms(static_cast<std::int64_t>(random.between(50, 400)));
  limits.absent_life = Duration::s(static_cast<std::int64_t>(random.between(36'000, 86'400)));
  limits.clock_margin = Duration::s(static_cast<std::int64_t>(random.between(7, 20)));
  limits.late_word = Duration::s(static_cast<std::int64_t>(random.between(30, 60)));
  limits.max_lost = one_of<std::uint32_t>(random, {10'000, 100'000});
  limits.tombstone_life = Duration::s(static_cast<std::int64_t>(random.between(600, 1'200)));
  limits.max_waiting_for_room = one_of<std::uint32_t>(random, {200, 4'096});
  limits.max_incarnation = one_of<std::uint32_t>(random, {1'000'000, 1U << 31});
  limits.max_members = one_of<std::uint32_t>(random, {200, 20'000});
  limits.max_parked_requests = one_of<std::uint32_t>(random, {10'000, 100'000});
  limits.max_sources = one_of<std::uint32_t>(random, {200, 10'000});
  limits.max_source_bytes = one_of<std::uint64_t>(random, {kGiB, std::uint64_t{1} << 48});
  limits.max_named = one_of<std::uint32_t>(random, {1, 5});
  limits.max_names_bytes = one_of<std::uint32_t>(random, {0, 64, 64 * kKiB});
  limits.max_reduces = one_of<std::uint32_t>(random, {200, 10'000});
  limits.max_reports = one_of<std::uint32_t>(random, {200, 1'000});
  limits.max_message_bytes = one_of<std::uint32_t>(random, {1 * kMiB, 4 * kMiB});
  limits.max_frame_bytes = one_of<std::uint32_t>(random, {256 * kKiB, 1 * kMiB});
  limits.max_queued_frames_bytes = one_of<std::uint32_t>(random, {256 * kKiB, 1 * kMiB});
  // Below its default a slow link that others share looks dead, and gets time out.
  limits.queued_stalls = one_of<std::uint32_t>(random, {4, 8});
}

void draw_sizes(RunPlan& plan, Random& random) {
  plan.hot = random.chance(0.3);
  plan.tight = !plan.hot && random.chance(0.35);
  plan.max_size = one_of<std::uint64_t>(random, {300, 2000, 6000, 16000});
  plan.capacity = 384 * kKiB;
  if (plan.hot) {
    plan.max_size = one_of<std::uint64_t>(random, {16000, 60000});
    plan.capacity = kMiB;
  }
  if (!plan.tight) return;
  // Room for a few of the largest, so that putting and reading must evict, wait and fail.
  plan.max_size = one_of<std::uint64_t>(random, {4000, 8000, 16000});
  plan.capacity = round_up(plan.max_size, 4096) * random.between(3, 6);
}

void draw_network(RunPlan& plan, Random& random) {
  plan.link.latency = scaled(plan.beat, random, 0.0005, 0.02);
  plan.link.jitter = random.chance(0.5) ? Duration{} : scaled(plan.link.latency, random, 0.1, 3);
  // The largest object takes between nothing and two beats alone on a link; in hot runs longer than most faults.
  const double beats = plan.hot ? log_uniform(random, 0.5, 8) : log_uniform(random, 0.001, 2);
  const double seconds = plan.beat.seconds() * beats;
  // But never so slow that the members' own talk fills it: then nobody could tell the slow from the dead.
  const double talk = static_cast<double>(plan.nodes) * 8000 / plan.beat.seconds();
  plan.link.up = plan.link.down = std::max(static_cast<double>(plan.max_size) / seconds, talk);
  if (random.chance(0.3)) plan.link.down *= log_uniform(random, 0.7, 3);
  plan.limits.default_rate = static_cast<std::uint64_t>(plan.link.up * log_uniform(random, 0.1, 10)) + 1;
  plan.links.piece_bytes = std::max<std::uint64_t>(plan.max_size / random.between(4, 24), 16);
  plan.links.uneven_pieces = random.chance(0.3);
  plan.links.window_bytes = plan.links.piece_bytes * random.between(1, 8);
  plan.post_delay = random.chance(0.3) ? Duration{} : scaled(plan.beat, random, 0.0002, 0.02);
  plan.limits.max_frame_bytes = static_cast<std::uint32_t>(plan.links.piece_bytes * random.between(1, 8));
  plan.limits.shared_frame_bytes = static_cast<std::uint32_t>(plan.links.piece_bytes * random.between(1, 4));
  plan.lanes = random.chance(0.2) ? 2 : 1;
  plan.client_delay = random.chance(0.3) ? Duration{} : scaled(plan.beat, random, 0.0002, 0.01);
}

}  // namespace

RunPlan draw_plan(std::uint64_t seed, std::optional<std::uint32_t> nodes) {
  Random random(mix64(seed) ^
                0x706c616eULL);  // a stream of its own: drawing more does not change the run's other choices
  RunPlan plan;
  plan.seed = mix64(seed);
  plan.max_events = 3'000'000;
  plan.nodes = nodes ? *nodes : draw_nodes(random);
  plan.hazard = random.chance(0.2) ? Hazard::kNone : random.chance(0.4) ? Hazard::kDeaths : Hazard::kAll;
  plan.beat = Duration::from_seconds(log_uniform(random, 0.02, 0.5));
  draw_sizes(plan, random);
  draw_paces(plan, random);
  draw_bounds(plan, random);
  draw_rare_limits(plan, seed);
  draw_network(plan, random);
  plan.names = static_cast<std::uint32_t>(random.between(1, 6));
  plan.operations = static_cast<std::uint32_t>(log_uniform(random, plan.tight ? 30 : 5, 120));
  plan.safety = plan.hot ? scaled(plan.beat, random, 4, 20) : scaled(plan.beat, random, 3, 60);
  if (plan.hazard != Hazard::kNone) plan.faults = static_cast<std::uint32_t>(log_uniform(random, 1, 12));
  plan.warm_up = random.chance(0.6);
  plan.reduces = random.chance(0.5);
  plan.limits.tree_work = random.chance(0.5) ? Duration{} : scaled(plan.beat, random, 0.001, 0.1);
  plan.limits.always_whole = random.chance(0.15);
  plan.limits.reduce_width = random.chance(0.5) ? 0 : static_cast<std::uint32_t>(random.between(1, 4));
  if (plan.reduces && !plan.tight) plan.capacity *= 4;  // for what is combined on the way
  plan.limits.gather_for = random.chance(0.3) ? Duration{} : scaled(plan.beat, random, 0.001, 0.1);
  plan.few_seeds = plan.warm_up && random.chance(0.3);
  const Limits& limits = plan.limits;
  plan.patience = (limits.announce_every + limits.sync_every + limits.rejoin_every + limits.want_refresh +
                   limits.request_retry + limits.ping_timeout + limits.indirect_timeout + plan.network.dial_timeout) *
                      10 +
                  plan.beat * 4 * plan.nodes;
  return plan;
}

std::string RunPlan::summary() const {
  static constexpr const char* kHazards[] = {"no faults", "deaths", "deaths, pauses and partitions"};
  return std::to_string(nodes) + " nodes, " + kHazards[static_cast<int>(hazard)] + ", " + std::to_string(operations) +
         " operations in " + format_duration(safety) + ", beat " + format_duration(beat) + ", latency " +
         format_duration(link.latency) + ", " + format_rate(link.up) + ", stores of " + format_size(capacity) +
         (tight ? " (tight)" : "") + ", objects up to " + format_size(max_size) + ", inline up to " +
         format_size(limits.inline_bytes) + ", slices of " + format_size(limits.slice_bytes);
}

}  // namespace hoplite::sim
