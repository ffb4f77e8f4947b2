// The sum of an array from each node: the naive way, then by Hoplite, with arrays that come late, and with a death.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <optional>

#include "acts.h"
#include "picture.h"
#include "reduce.h"

namespace hoplite {
namespace {

class Acts {
 public:
  Acts(const DemoOptions& options, const Interrupts& interrupts, LocalCluster& cluster, Attendants& nodes)
      : options_(options), interrupts_(interrupts), cluster_(cluster), nodes_(nodes) {}

  Result<ReduceTimes> run() {
    if (auto warm = touch_memory(); !warm) return warm.error();
    const auto naive = naive_way();
    if (!naive) return naive.error();
    const auto late = with_late_arrays();
    if (!late) return late.error();
    const auto together = with_all_there();
    if (!together) return together.error();
    const auto killed = with_a_death();
    if (!killed) return killed.error();
    return ReduceTimes{*naive, *together, *late, *killed};
  }

 private:
  using Way = Result<SumState> (*)(Attendants&, const SumOptions&);
  using Watch = std::function<void(SumState&)>;
  // With fresh arrays; the final state stays on the screen.
  Result<SumState> sum(Way way, SumOptions options, const Watch& also = {}) {
    SumPicture picture;
    options.array_bytes = options_.array_bytes();
    options.watch = [&](SumState& state) {
      if (also && !state.finished) also(state);
      picture.draw(state);
      return !interrupts_.asked();
    };
    auto result = way(nodes_, options);
    if (result) picture.leave(*result);
    return result;
  }

  // The pages of a fresh store come from the kernel when they are first used, which can take longer than the transfer where
  // eight daemons share two cores. Neither way should pay for that, and nobody should wonder: its time is told.
  Result<void> touch_memory() {
    SumOptions options;
    options.array_bytes = options_.array_bytes();
    options.watch = [&](SumState&) { return !interrupts_.asked(); };
    const auto state = sum_by_reduce(nodes_, options);
    if (!state) return state.error();
    std::printf(
        "A first sum, in which the daemons touch their memory for the first time, took %.2f s; it does not count.\n",
        *state->finished);
    return {};
  }

  Result<double> naive_way() {
    std::printf(
        "\nEvery node has an array, and node 1 wants their sum.\n"
        "The naive way: it fetches one after another and adds it up.\n");
    const auto state = sum(sum_one_after_another, {});
    if (!state) return state.error();
    return *state->finished;
  }

  Result<double> with_late_arrays() {
    std::printf(
        "\nHoplite: node 1 asks for the sum when there is nothing yet. The arrays come one by one, and are added up on "
        "their way.\n");
    SumOptions late;
    late.apart = std::chrono::duration<double>(options_.wire_s(options_.array_bytes()) / 2);
    const auto state = sum(sum_by_reduce, late);
    if (!state) return state.error();
    std::printf(
        "\nThe sum was there %.2f s after the last array. Early ones stream at once, late ones sit near the root:\n%s",
        *state->finished, sum_tree_text(*state).c_str());
    return *state->finished;
  }

  Result<double> with_all_there() {
    std::printf("\nOnce more, and all arrays are there before.\n");
    const auto state = sum(sum_by_reduce, {});
    if (!state) return state.error();
    std::printf("\nThe tree that formed:\n%s", sum_tree_text(*state).c_str());
    return *state->finished;
  }

  // Somebody whose array is used and on its way; best, one that has others below and above it.
  static std::optional<std::size_t> somebody_in_use(const SumState& state) {
    std::optional<std::size_t> best;
    int best_rank = -1;
    for (std::size_t i = 0; i < state.places.size(); ++i) {
      const Place& place = state.places[i];
      if (place.node == 0 || state.parts[place.node].state != SourceState::kUsed) continue;
      const bool above_others =
          std::any_of(state.places.begin(), state.places.end(), [&](const Place& other) { return other.parent == i; });
      const int rank = (place.done ? 0 : 2) + (above_others && place.parent ? 1 : 0);
      if (rank > best_rank) best = place.node;
      best_rank = std::max(best_rank, rank);
    }
    return best;
  }

  Result<double> with_a_death() {
    std::printf("\nThe sum of the first %zu of %zu, and a node whose array is in use is killed (kill -9) half-way.\n",
                nodes_.size() - 1, nodes_.size());
    std::optional<std::size_t> victim;
    std::vector<std::size_t> used_before;
    SumOptions first;
    first.first = nodes_.size() - 1;
    const auto state = sum(sum_by_reduce, first, [&](SumState& now) {
      if (victim || now.reduced < now.array_bytes / 2) return;
      victim = somebody_in_use(now);
      if (!victim) return;
      used_before = now.used_nodes();
      now.parts[*victim].killed = true;
      cluster_.kill(static_cast<int>(*victim));
    });
    if (!state) return state.error();
    if (!victim) return Error{Code::kInternal, "no node was found to kill: the reduce was over too soon"};
    tell_of_death(*state, *victim, used_before);
    return *state->finished;
  }

  static void tell_of_death(const SumState& state, std::size_t victim, const std::vector<std::size_t>& used_before) {
    const std::vector<std::size_t> used = state.used_nodes();
    std::vector<std::size_t> instead;
    std::set_difference(used.begin(), used.end(), used_before.begin(), used_before.end(), std::back_inserter(instead));
    std::printf("\nNode %zu died; %s. The sum is exactly that of %s. In the end:\n%s", victim + 1,
                instead.empty() ? "all that was needed of it had been sent"
                                : (nodes_text(instead) + ", the spare, took its place").c_str(),
                nodes_text(used).c_str(), sum_tree_text(state).c_str());
  }

  const DemoOptions& options_;
  const Interrupts& interrupts_;
  LocalCluster& cluster_;
  Attendants& nodes_;
};

}  // namespace

Result<ReduceTimes> reduce_acts(const DemoOptions& options, const Interrupts& interrupts) {
  // Room for an array, what is pulled, what it becomes, the sum, one that is being removed, and a little.
  const LocalClusterOptions cluster_options{options.nodes, 5 * options.array_bytes() + 32 * kMiB, options.rate};
  return on_a_local_cluster(cluster_options, interrupts, [&](LocalCluster& cluster, Attendants& nodes) {
    return Acts(options, interrupts, cluster, nodes).run();
  });
}

}  // namespace hoplite
