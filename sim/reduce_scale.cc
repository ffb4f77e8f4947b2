#include "sim/reduce_scale.h"

#include <algorithm>
#include <iomanip>
#include <set>

#include "core/reduce/cost.h"

namespace hoplite::sim {
namespace {

constexpr std::uint32_t kRounds = 2;  // the last one counts
constexpr NodeIndex kCaller = 0;

std::uint64_t model_grain() { return static_cast<std::uint64_t>(LinkCost{}.grain_bytes); }

class ReduceRun final : public ScaleLab {
 public:
  explicit ReduceRun(const ReduceScaleOptions& options)
      : ScaleLab(options, limited(options), (options.size + kMiB) * (options.nodes + 2) * 2 * kRounds),
        options_(options) {}

  ReduceScaleResult run() {
    for (std::uint32_t round = 1; round <= kRounds && !failed(); ++round)
      if (put(options_.nodes, round)) reduce(round);
    ReduceScaleResult result;
    end(result);
    result.seconds = (last_view_ - called_).seconds();
    for (const auto& [node, pulls] : pulls_) result.width = std::max(result.width, pulls);
    for (const auto& [node, others] : sent_to_)
      result.receivers = std::max(result.receivers, static_cast<std::uint32_t>(others.size()));
    const double transfer_s = options_.transfer_s();
    // Control messages do not share the receiver's link in the simulated network: what came along with them is charged here.
    if (result.width == 0 && options_.nodes > 2) result.seconds += (options_.nodes - 2) * transfer_s;
    result.bound_s = options_.nodes < 2 ? 0 : transfer_s;
    if (options_.everybody) result.bound_s = 2.0 * (options_.nodes - 1) / options_.nodes * transfer_s;
    return result;
  }

 private:
  static WorldOptions limited(const ReduceScaleOptions& options) {
    WorldOptions world =
        world_options(options, options.piece_bytes.value_or(piece_for(options.size, model_grain())), 4);
    world.limits.hop_latency = options.latency;
    world.limits.tree_work = options.sent_along ? Duration::s(3600) : Duration{};  // nobody has to be woken here
    world.limits.reduce_width = options.width;
    if (options.width != 0) world.limits.inline_bytes = 0;
    // Nobody dies here: no need to look after each other so often in a long run.
    world.limits.ping_every = world.limits.gossip_every = world.limits.sync_every = Duration::s(60);
    return world;
  }

  void on_view(NodeIndex) override {
    ++views_;
    last_view_ = world_.now();
  }
  void on_transfer(const Transfer& transfer) override {
    if (transfer.request.slot) ++pulls_[transfer.child.node];
    sent_to_[transfer.parent.node].insert(transfer.child.node);
  }

  void reduce(std::uint32_t round) {
    ipc::Reduce reduce;
    reduce.spec.target = id(kCaller, kRounds + round);
    for (NodeIndex node = 0; node < options_.nodes; ++node) reduce.spec.sources.push_back(id(node, round));
    reduce.spec.count = options_.nodes;
    reduce.spec.spread = options_.everybody ? options_.spread : Spread::kNone;
    const ObjectId target = reduce.spec.target;
    pulls_.clear();
    sent_to_.clear();
    views_ = 0;
    called_ = world_.now();
    ask(kCaller, std::move(reduce));
    const std::uint32_t readers = options_.everybody ? options_.nodes : 1;
    for (NodeIndex node = 0; node < readers; ++node) ask(node, ipc::Get{target, kNoTimeout, false, false});
    const Duration patience = Duration::from_seconds(options_.transfer_s() * 3 * options_.nodes + 60);
    if (!run_until(Duration::ms(10), patience, [&] { return views_ == readers; }))
      blame(std::to_string(readers - views_) + " readers do not have the result after " +
            format_duration(world_.now() - called_));
  }

  const ReduceScaleOptions options_;
  std::map<NodeIndex, std::uint32_t> pulls_;
  std::map<NodeIndex, std::set<NodeIndex>> sent_to_;
  std::uint32_t views_ = 0;
  Time called_, last_view_;
};

std::string name_of(std::uint32_t width) { return width == 0 ? "along" : std::to_string(width); }

}  // namespace

std::uint64_t piece_for(std::uint64_t size, std::uint64_t grain) { return std::max(grain, size / kMostPieces); }

ReduceScaleResult run_reduce_scale(const ReduceScaleOptions& options) { return ReduceRun(options).run(); }

void print_reduce_scale(const ReduceScaleOptions& options, const ReduceScaleResult& result, std::ostream& out) {
  out << (options.everybody ? "allreduce, " : "reduce, ") << static_cast<const Cluster&>(options) << "\n";
  if (!result.failure.empty()) out << "FAILED: " << result.failure << "\n";
  out << std::fixed << std::setprecision(3) << "  result after        " << result.seconds * 1e3 << " ms\n"
      << "  " << (options.everybody ? "2 (n-1)/n S/B      " : "S/B                ") << " " << result.bound_s * 1e3
      << " ms: " << (result.bound_s > 0 ? result.seconds / result.bound_s : 0) << " x\n"
      << "  most inputs of one  " << name_of(result.width) << "\n"
      << "  most receivers      " << result.receivers << "\n"
      << std::setprecision(2) << "  simulated in        " << result.wall_s << " s, " << result.events << " events\n";
}

ShapeTrial try_shapes(const ReduceScaleOptions& point) {
  ShapeTrial trial;
  trial.point = point;
  const auto run = [&](const ReduceScaleOptions& options) {
    const ReduceScaleResult result = run_reduce_scale(options);
    if (!result.failure.empty()) trial.failure = "width " + name_of(options.width) + ": " + result.failure;
    else if (trial.best_s == 0 || result.seconds < trial.best_s)
      trial.best_s = result.seconds, trial.best_width = result.width;
    return result;
  };
  const ReduceScaleResult chosen = run(point);
  trial.chosen_s = chosen.seconds;
  trial.chosen_width = chosen.width;
  if (!trial.failure.empty()) return trial;
  ReduceScaleOptions other = point;
  // A node with so many children receives as many times the object: beyond the best time no width can be better.
  for (std::uint32_t width = 1; width < point.nodes && width * point.transfer_s() <= trial.best_s; ++width) {
    other.width = width;
    if (width != chosen.width) run(other);
  }
  other.width = 0;
  other.sent_along = true;
  if (chosen.width != 0 && point.size <= Limits{}.inline_bytes) run(other);
  return trial;
}

void try_all_shapes(const ShapeGrid& grid, const std::function<void(const ShapeTrial&)>& judge) {
  ReduceScaleOptions point;
  for (const std::uint32_t nodes : grid.nodes)
    for (const std::uint64_t size : grid.sizes)
      for (const std::uint64_t rate : grid.rates)
        for (const Duration latency : grid.latencies) {
          point.nodes = nodes;
          point.size = size;
          point.rate = rate;
          point.latency = latency;
          if (grid.grain_bytes) point.piece_bytes = piece_for(size, *grid.grain_bytes);
          judge(try_shapes(point));
        }
}

bool run_shape_grid(const ShapeGrid& grid, std::ostream& out) {
  out << "nodes      size         rate   latency      chosen  width        best  width   ratio\n";
  double worst = 0;
  std::size_t missed = 0;
  std::size_t points = 0;
  try_all_shapes(grid, [&](const ShapeTrial& trial) {
    const ReduceScaleOptions& point = trial.point;
    const bool good = trial.failure.empty() && trial.ratio() <= kWithin;
    ++points;
    missed += good ? 0 : 1;
    worst = std::max(worst, trial.ratio());
    out << std::setw(5) << point.nodes << std::setw(10) << format_size(point.size) << std::setw(13)
        << format_rate(static_cast<double>(point.rate)) << std::setw(10) << format_duration(point.latency) << std::fixed
        << std::setprecision(3) << std::setw(9) << trial.chosen_s * 1e3 << " ms" << std::setw(7)
        << name_of(trial.chosen_width) << std::setw(9) << trial.best_s * 1e3 << " ms" << std::setw(7)
        << name_of(trial.best_width) << std::setw(8) << trial.ratio() << (good ? "" : "  <--") << " " << trial.failure
        << std::endl;
  });
  out << points << " points, " << missed << " of them not within " << kWithin << " x of the best shape; worst " << worst
      << "\n";
  return missed == 0;
}

}  // namespace hoplite::sim
