#include "sim/scale.h"

#include <algorithm>
#include <iomanip>
#include <numeric>

namespace hoplite::sim {
namespace {

class Broadcast final : public ScaleLab {
 public:
  explicit Broadcast(const ScaleOptions& options)
      : ScaleLab(options, limited(options, &cost_), options.size + 64 * kMiB),
        options_(options),
        asked_(options.nodes) {}

  ScaleResult run() {
    if (put(1, 1)) {
      get_all();
      const Duration patience = Duration::from_seconds(options_.transfer_s() * 60 + 60);
      if (!run_until(Duration::ms(10), patience, [&] { return took_.size() + 1 == options_.nodes; }))
        blame(std::to_string(options_.nodes - 1 - took_.size()) + " receivers do not have it after " +
              format_duration(world_.now() - first_asked_));
    }
    ScaleResult result;
    summarise(result);
    end(result);
    return result;
  }

 private:
  static WorldOptions limited(const ScaleOptions& options, StepCost* cost) {
    WorldOptions world = world_options(options, options.piece_bytes.value_or(64 * kKiB), 2);
    if (options.slice_bytes) world.limits.slice_bytes = *options.slice_bytes;
    if (options.max_slices) world.limits.max_slices = *options.max_slices;
    world.cost = cost;
    return world;
  }

  void get_all() {
    first_asked_ = world_.now();
    const Duration ideal = Duration::from_seconds(options_.transfer_s());
    Random random(7);
    for (NodeIndex node = 1; node < options_.nodes; ++node) {
      const Duration later{options_.spread ? static_cast<std::int64_t>(random.below(ideal.ns * 5)) : 0};
      asked_[node] = first_asked_ + later;
      world_.at(asked_[node], [this, node] { ask(node, ipc::Get{id(0, 1), kNoTimeout, false, false}); });
    }
  }

  void on_view(NodeIndex node) override {
    took_.push_back((world_.now() - asked_[node]).seconds());
    last_ = world_.now();
  }
  void on_transfer(const Transfer& transfer) override {
    slices_ = transfer.request.slices;
    auto& parents = parents_[transfer.child.node];
    parents.resize(transfer.request.slices, kNobody);
    parents[transfer.request.slice] = transfer.parent.node;
  }

  std::uint32_t depth_of(NodeIndex node, std::uint32_t slice) {
    std::uint32_t depth = 0;
    for (; node != 0 && depth <= options_.nodes; ++depth) {
      const auto it = parents_.find(node);
      if (it == parents_.end() || slice >= it->second.size() || it->second[slice] == kNobody) break;
      node = it->second[slice];
    }
    return depth;
  }

  void summarise(ScaleResult& result) {
    result.last_s = (last_ - first_asked_).seconds();
    std::sort(took_.begin(), took_.end());
    if (!took_.empty()) result.worst_s = took_.back(), result.median_s = took_[took_.size() / 2];
    result.slices = slices_;
    // Exact for moderate numbers; a sample is enough to see the shape of a huge one.
    const NodeIndex step = std::max<NodeIndex>(1, options_.nodes / 2000);
    for (std::uint32_t slice = 0; slice < slices_; ++slice)
      for (NodeIndex node = 1; node < options_.nodes; node += step)
        result.depth = std::max(result.depth, depth_of(node, slice));
    const auto mean = [](auto begin, auto end) {
      return begin == end ? 0.0 : std::accumulate(begin, end, 0.0) / static_cast<double>(end - begin);
    };
    const auto& wants = cost_.want_us;
    const auto tenth = static_cast<std::ptrdiff_t>(wants.size() / 10);
    result.want_mean_us = mean(wants.begin(), wants.end());
    result.want_early_us = mean(wants.begin(), wants.begin() + tenth);
    result.want_late_us = mean(wants.end() - tenth, wants.end());
  }

  const ScaleOptions options_;
  StepCost cost_;
  std::uint32_t slices_ = 1;
  Time first_asked_, last_;
  std::vector<Time> asked_;   // by node
  std::vector<double> took_;  // of those who have it
  std::map<NodeIndex, std::vector<NodeIndex>> parents_;
};

}  // namespace

ScaleResult run_scale(const ScaleOptions& options) { return Broadcast(options).run(); }

void print_scale(const ScaleOptions& options, const ScaleResult& result, std::ostream& out) {
  const auto line = [&](const char* what, double seconds) {
    out << what << seconds << " s = " << seconds / options.transfer_s() << " x S/B\n";
  };
  out << static_cast<const Cluster&>(options) << ", arrivals " << (options.spread ? "spread" : "at once") << "\n";
  if (!result.failure.empty()) out << "FAILED: " << result.failure << "\n";
  out << std::fixed << std::setprecision(3) << "  S/B                 " << options.transfer_s() << " s\n";
  line("  last receiver       ", result.last_s);
  line("  worst, own arrival  ", result.worst_s);
  line("  median, own arrival ", result.median_s);
  out << "  depth               " << result.depth << " hops, " << result.slices << " slices\n"
      << std::setprecision(2) << "  home, per request   " << result.want_mean_us << " us (first tenth "
      << result.want_early_us << ", last tenth " << result.want_late_us << ")\n"
      << std::setprecision(1) << "  simulated in        " << result.wall_s << " s, " << result.events << " events\n";
}

}  // namespace hoplite::sim
