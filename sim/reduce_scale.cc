#include "sim/reduce_scale.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <iomanip>
#include <map>
#include <set>

#include "core/reduce/cost.h"
#include "sim/scale.h"
#include "sim/world.h"

namespace hoplite::sim {
namespace {

constexpr std::uint32_t kRounds = 2;  // the last one counts
constexpr NodeIndex kCaller = 0;

std::uint64_t model_grain() { return static_cast<std::uint64_t>(LinkCost{}.grain_bytes); }

enum class Ask : std::uint64_t { kCreate = 1, kSeal, kReduce, kGet };

class ReduceRun final : public WorldObserver {
 public:
  explicit ReduceRun(const ReduceScaleOptions& options) : options_(options), world_(world_options()) {
    world_.observe(this);
    const LinkSpec link = scale_link(options.rate, options.latency);
    const std::uint64_t room = (options.size + kMiB) * (options.nodes + 2) * 2 * kRounds;
    for (NodeIndex node = 0; node < options.nodes; ++node) world_.add_node({scale_address(node), link, room, {}});
  }

  ReduceScaleResult run() {
    const auto began = std::chrono::steady_clock::now();  // tidy: how long the simulation itself takes
    world_.start_acquainted();
    for (NodeIndex node = 0; node < options_.nodes; ++node) clients_.push_back(world_.attach(node));
    for (std::uint32_t round = 1; round <= kRounds && failure_.empty(); ++round) {
      put_sources(round);
      if (failure_.empty()) reduce(round);
    }
    ReduceScaleResult result;
    result.failure = failure_;
    result.seconds = (last_view_ - called_).seconds();
    for (const auto& [node, pulls] : pulls_) result.width = std::max(result.width, pulls);
    for (const auto& [node, others] : sent_to_)
      result.receivers = std::max(result.receivers, static_cast<std::uint32_t>(others.size()));
    // Control messages do not share the receiver's link in the simulated network: what came along with them is charged here.
    if (result.width == 0 && options_.nodes > 2) result.seconds += (options_.nodes - 2) * transfer_s();
    result.bound_s = options_.nodes < 2 ? 0 : transfer_s();
    if (options_.everybody) result.bound_s = 2.0 * (options_.nodes - 1) / options_.nodes * transfer_s();
    result.events = world_.queue().executed();
    // tidy: how long the simulation itself takes
    result.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return result;
  }

  void on_reply(ClientKey client, std::uint64_t, const ipc::Reply& reply) override {
    if (const auto* failed = std::get_if<ipc::Failed>(&reply)) failure_ = failed->message;
    if (const auto* created = std::get_if<ipc::Created>(&reply)) created_[client] = created->copy;
    if (std::holds_alternative<ipc::PutDone>(reply)) ++sealed_;
    if (!std::holds_alternative<ipc::View>(reply)) return;
    ++views_;
    last_view_ = world_.now();
  }
  void on_transfer(const Transfer& transfer) override {
    if (transfer.request.slot) ++pulls_[transfer.child.node];
    sent_to_[transfer.parent.node].insert(transfer.child.node);
  }
  void on_leave(NodeIndex) override {}
  void on_death(NodeIndex) override {}
  void on_rename(NodeIndex node, NodeRef) override { failure_ = node_name(node) + " was given up"; }

 private:
  double transfer_s() const { return static_cast<double>(options_.size) / static_cast<double>(options_.rate); }

  WorldOptions world_options() const {
    WorldOptions world;
    world.seed = 1;
    world.carry_bytes = false;
    world.limits.default_rate = options_.rate;  // as measured by earlier transfers
    world.limits.hop_latency = options_.latency;
    world.limits.tree_work = options_.sent_along ? Duration::s(3600) : Duration{};  // nobody has to be woken here
    world.limits.reduce_width = options_.width;
    if (options_.width != 0) world.limits.inline_bytes = 0;
    // Nobody dies here: no need to look after each other so often in a long run.
    world.limits.ping_every = world.limits.gossip_every = world.limits.sync_every = Duration::s(60);
    world.links.piece_bytes = options_.piece_bytes.value_or(piece_for(options_.size, model_grain()));
    const double pipe = options_.latency.seconds() * static_cast<double>(options_.rate);
    world.links.window_bytes = world.links.piece_bytes * 4 + static_cast<std::uint64_t>(4 * pipe);
    world.trace = options_.trace;
    return world;
  }

  // As its own node would mint it.
  ObjectId id(NodeIndex node, std::uint64_t number) const {
    return {world_.hosts()[node].ref.id.value, std::uint64_t{1} << 32 | number};
  }

  bool run_until(const std::function<bool()>& there, Duration step, Duration patience) {
    const Time end = world_.now() + patience;
    while (!there() && failure_.empty() && world_.now() < end)
      if (!world_.run_for(step)) break;
    if (world_.violation()) failure_ = world_.violation()->invariant + ": " + world_.violation()->text;
    return there();
  }

  void put_sources(std::uint32_t round) {
    created_.clear();
    sealed_ = 0;
    for (NodeIndex node = 0; node < options_.nodes; ++node)
      ask(node, Ask::kCreate, ipc::Create{id(node, round), options_.size, {}, kNoTimeout});
    const Duration step = Duration::ms(1);
    const Duration patience = Duration::s(30);
    if (!run_until([&] { return created_.size() == options_.nodes; }, step, patience))
      return blame("the sources were not created");
    for (NodeIndex node = 0; node < options_.nodes; ++node) {
      const CopyKey copy = created_.at(clients_[node]);
      world_.ask(clients_[node], 0, ipc::Advance{copy, options_.size});
      ask(node, Ask::kSeal, ipc::Seal{copy, kNoTimeout});
    }
    if (!run_until([&] { return sealed_ == options_.nodes; }, step, patience)) blame("the sources were not sealed");
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
    ask(kCaller, Ask::kReduce, std::move(reduce));
    const std::uint32_t readers = options_.everybody ? options_.nodes : 1;
    for (NodeIndex node = 0; node < readers; ++node) ask(node, Ask::kGet, ipc::Get{target, kNoTimeout, false, false});
    const Duration patience = Duration::from_seconds(transfer_s() * 3 * options_.nodes + 60);
    if (!run_until([&] { return views_ == readers; }, Duration::ms(10), patience))
      blame(std::to_string(readers - views_) + " readers do not have the result after " +
            format_duration(world_.now() - called_));
  }

  void ask(NodeIndex node, Ask what, ipc::Request request) {
    world_.ask(clients_[node], static_cast<std::uint64_t>(what), std::move(request));
  }
  void blame(const std::string& what) {
    if (failure_.empty()) failure_ = what;
  }

  const ReduceScaleOptions options_;
  World world_;
  std::vector<ClientKey> clients_;
  std::map<ClientKey, CopyKey> created_;
  std::map<NodeIndex, std::uint32_t> pulls_;
  std::map<NodeIndex, std::set<NodeIndex>> sent_to_;
  std::string failure_;
  std::uint32_t sealed_ = 0;
  std::uint32_t views_ = 0;
  Time called_, last_view_;
};

std::string name_of(std::uint32_t width) { return width == 0 ? "along" : std::to_string(width); }

}  // namespace

std::uint64_t piece_for(std::uint64_t size, std::uint64_t grain) { return std::max(grain, size / kMostPieces); }

ReduceScaleResult run_reduce_scale(const ReduceScaleOptions& options) { return ReduceRun(options).run(); }

void print_reduce_scale(const ReduceScaleOptions& options, const ReduceScaleResult& result, std::ostream& out) {
  out << (options.everybody ? "allreduce, " : "reduce, ") << options.nodes << " nodes, " << format_size(options.size)
      << ", " << format_rate(static_cast<double>(options.rate)) << ", " << format_duration(options.latency)
      << " one way\n";
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
  const double transfer_s = static_cast<double>(point.size) / static_cast<double>(point.rate);
  // A node with so many children receives as many times the object: beyond the best time no width can be better.
  for (std::uint32_t width = 1; width < point.nodes && width * transfer_s <= trial.best_s; ++width) {
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
