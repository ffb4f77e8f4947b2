#include "sim/draw.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace hoplite::sim {
namespace {

std::int64_t as_number(Duration value) { return value.ns; }
std::int64_t as_number(std::uint64_t value) { return static_cast<std::int64_t>(value); }

// Does not compile when a limit was added: name it here, and draw it. Sockets and clients are real: there are none to draw for.
std::vector<std::int64_t> values_of(const Limits& limits) {
  const auto& [sockets, clients, inline_bytes, max_meta_bytes, max_objects, max_waiting_for_room, max_tombstones,
               max_needed_tombstones, max_lost, max_hearsay, hearsay_every, tombstone_life, absent_life, clock_margin,
               late_word, want_refresh, waiting_after, request_retry, stall_after, starved_every, drain, retry_backoff,
               settle_backoffs, room_backoffs, forgive_backoffs, output_backoffs, quick_retries, slowest_retry,
               stall_doublings, input_stalls, parked_stalls, queued_stalls, input_refusals, join_grace, watch_for,
               relay_for, max_probes_for_others, ping_every, gossip_every, ping_timeout, indirect_timeout,
               indirect_probes, gossip_fanout, gossip_repeats, max_gossip_updates, sync_every, rejoin_every,
               max_members, max_incarnation, announce_every, max_parked_requests, max_deaths, facts_per_message,
               max_open_questions, max_backlog_bytes, compared_at_once, slice_bytes, crowd, max_slices, max_children,
               max_relays, max_passes, max_cut_off, max_ferry_tries, max_ferries, ferry_refreshes, max_parked_pulls,
               default_rate, hop_latency, least_hop, most_hop, worth_measuring_bytes, small_share, reports_per_refresh,
               max_sources, max_source_bytes, max_named, max_names_bytes, max_reduces, gather_for, max_reports,
               always_whole, reduce_width, tree_work, max_message_bytes, max_frame_bytes, shared_frame_bytes,
               max_asked_pulls, max_queued_frames_bytes, least_share, urgent_idle_after, idle_link_life] = limits;
  return {as_number(inline_bytes),
          as_number(max_meta_bytes),
          as_number(max_objects),
          as_number(max_waiting_for_room),
          as_number(max_tombstones),
          as_number(max_needed_tombstones),
          as_number(max_lost),
          as_number(max_hearsay),
          as_number(hearsay_every),
          as_number(tombstone_life),
          as_number(absent_life),
          as_number(clock_margin),
          as_number(late_word),
          as_number(want_refresh),
          as_number(waiting_after),
          as_number(request_retry),
          as_number(stall_after),
          as_number(starved_every),
          as_number(drain),
          as_number(retry_backoff),
          as_number(settle_backoffs),
          as_number(room_backoffs),
          as_number(forgive_backoffs),
          as_number(output_backoffs),
          as_number(quick_retries),
          as_number(slowest_retry),
          as_number(stall_doublings),
          as_number(input_stalls),
          as_number(parked_stalls),
          as_number(queued_stalls),
          as_number(input_refusals),
          as_number(join_grace),
          as_number(watch_for),
          as_number(relay_for),
          as_number(max_probes_for_others),
          as_number(ping_every),
          as_number(gossip_every),
          as_number(ping_timeout),
          as_number(indirect_timeout),
          as_number(indirect_probes),
          as_number(gossip_fanout),
          as_number(gossip_repeats),
          as_number(max_gossip_updates),
          as_number(sync_every),
          as_number(rejoin_every),
          as_number(max_members),
          as_number(max_incarnation),
          as_number(announce_every),
          as_number(max_parked_requests),
          as_number(max_deaths),
          as_number(facts_per_message),
          as_number(max_open_questions),
          as_number(max_backlog_bytes),
          as_number(compared_at_once),
          as_number(slice_bytes),
          as_number(crowd),
          as_number(max_slices),
          as_number(max_children),
          as_number(max_relays),
          as_number(max_passes),
          as_number(max_cut_off),
          as_number(max_ferry_tries),
          as_number(max_ferries),
          as_number(ferry_refreshes),
          as_number(max_parked_pulls),
          as_number(default_rate),
          as_number(hop_latency),
          as_number(least_hop),
          as_number(most_hop),
          as_number(worth_measuring_bytes),
          as_number(small_share),
          as_number(reports_per_refresh),
          as_number(max_sources),
          as_number(max_source_bytes),
          as_number(max_named),
          as_number(max_names_bytes),
          as_number(max_reduces),
          as_number(gather_for),
          as_number(max_reports),
          as_number(always_whole),
          as_number(reduce_width),
          as_number(tree_work),
          as_number(max_message_bytes),
          as_number(max_frame_bytes),
          as_number(shared_frame_bytes),
          as_number(max_asked_pulls),
          as_number(max_queued_frames_bytes),
          as_number(least_share),
          as_number(urgent_idle_after),
          as_number(idle_link_life)};
}

TEST(DrawPlan, EveryLimitIsDrawn) {
  std::vector<std::set<std::int64_t>> drawn(values_of({}).size());
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const std::vector<std::int64_t> values = values_of(draw_plan(seed, {}).limits);
    for (std::size_t i = 0; i < values.size(); ++i) drawn[i].insert(values[i]);
  }
  for (std::size_t i = 0; i < drawn.size(); ++i)
    EXPECT_GT(drawn[i].size(), 1u) << "limit number " << i << " of base/limits.h is the same in every run";
}

}  // namespace
}  // namespace hoplite::sim
