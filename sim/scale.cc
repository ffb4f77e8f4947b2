#include "sim/scale.h"

#include <algorithm>
#include <chrono>
#include <iomanip>
#include <numeric>

#include "sim/world.h"

namespace hoplite::sim {
namespace {

constexpr std::uint64_t kPutRequest = 1, kSealRequest = 2, kGetRequest = 3;

class Broadcast final : public WorldObserver {
 public:
  explicit Broadcast(const ScaleOptions& options) : options_(options), world_(world_options()) {
    world_.observe(this);
    const LinkSpec link = scale_link(options.rate, options.latency);
    for (NodeIndex node = 0; node < options.nodes; ++node)
      world_.add_node({scale_address(node), link, options.size + 64 * kMiB, {}});
  }

  ScaleResult run() {
    const auto began = std::chrono::steady_clock::now();  // tidy: how long the simulation itself takes
    ScaleResult result;
    result.ideal_s = static_cast<double>(options_.size) / static_cast<double>(options_.rate);
    world_.start_acquainted();
    result.failure = put();
    if (result.failure.empty()) {
      get_all(Duration::from_seconds(result.ideal_s));
      const Time patience = world_.now() + Duration::from_seconds(result.ideal_s * 60 + 60);
      while (done_ + 1 < options_.nodes && failure_.empty() && world_.now() < patience)
        if (!world_.run_for(Duration::ms(10))) break;
      if (world_.violation()) failure_ = world_.violation()->invariant + ": " + world_.violation()->text;
      if (failure_.empty() && done_ + 1 < options_.nodes)
        failure_ = std::to_string(options_.nodes - 1 - done_) + " receivers do not have it after " +
                   format_duration(world_.now() - first_asked_);
      result.failure = failure_;
    }
    summarise(result);
    // tidy: how long the simulation itself takes
    result.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return result;
  }

  void on_reply(ClientKey client, std::uint64_t, const ipc::Reply& reply) override {
    if (const auto* failed = std::get_if<ipc::Failed>(&reply)) failure_ = failed->message;
    if (const auto* created = std::get_if<ipc::Created>(&reply)) created_ = *created;
    if (std::holds_alternative<ipc::PutDone>(reply)) sealed_ = true;
    if (!std::holds_alternative<ipc::View>(reply)) return;
    ++done_;
    const NodeIndex node = world_.node_of(client);
    took_.push_back((world_.now() - asked_[node]).seconds());
    last_ = world_.now();
  }
  void on_transfer(const Transfer& transfer) override {
    slices_ = transfer.request.slices;
    auto& parents = parents_[transfer.child.node];
    parents.resize(transfer.request.slices, kNobody);
    parents[transfer.request.slice] = transfer.parent.node;
  }
  void on_leave(NodeIndex) override {}
  void on_death(NodeIndex) override {}
  void on_rename(NodeIndex node, NodeRef) override { failure_ = node_name(node) + " was given up"; }

 private:
  WorldOptions world_options() {
    WorldOptions world;
    world.seed = 1;
    world.carry_bytes = false;
    world.limits.default_rate = options_.rate;  // as measured by earlier transfers
    if (options_.slice_bytes) world.limits.slice_bytes = *options_.slice_bytes;
    if (options_.max_slices) world.limits.max_slices = *options_.max_slices;
    world.links.piece_bytes = options_.piece_bytes.value_or(64 * kKiB);
    const double pipe = options_.latency.seconds() * static_cast<double>(options_.rate);
    world.links.window_bytes = world.links.piece_bytes * 4 + static_cast<std::uint64_t>(2 * pipe);
    world.cost = &cost_;
    world.trace = options_.trace;
    return world;
  }

  std::string put() {
    const ClientKey client = world_.attach(0);
    id_ = {world_.hosts()[0].ref.id.value, std::uint64_t{1} << 32 | 1};
    world_.ask(client, kPutRequest, ipc::Create{id_, options_.size, {}, kNoTimeout});
    world_.run_for(Duration::ms(1));
    if (created_.copy == 0) return "the object was not created: " + failure_;
    world_.ask(client, 0, ipc::Advance{created_.copy, options_.size});
    world_.ask(client, kSealRequest, ipc::Seal{created_.copy, kNoTimeout});
    world_.run_for(Duration::s(1));
    return sealed_ ? "" : "the object was not sealed: " + failure_;
  }

  void get_all(Duration ideal) {
    asked_.resize(options_.nodes);
    first_asked_ = world_.now();
    Random random(7);
    for (NodeIndex node = 1; node < options_.nodes; ++node) {
      const Duration later{options_.spread ? static_cast<std::int64_t>(random.below(ideal.ns * 5)) : 0};
      asked_[node] = first_asked_ + later;
      world_.at(asked_[node], [this, node] {
        world_.ask(world_.attach(node), kGetRequest, ipc::Get{id_, kNoTimeout, false, false});
      });
    }
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
    result.events = world_.queue().executed();
  }

  ScaleOptions options_;
  StepCost cost_;
  World world_;
  ObjectId id_;
  ipc::Created created_;
  bool sealed_ = false;
  std::string failure_;
  std::uint32_t done_ = 0;
  std::uint32_t slices_ = 1;
  Time first_asked_, last_;
  std::vector<Time> asked_;
  std::vector<double> took_;
  std::map<NodeIndex, std::vector<NodeIndex>> parents_;
};

}  // namespace

Address scale_address(NodeIndex node) {
  return {"10." + std::to_string(node >> 16) + "." + std::to_string(node >> 8 & 255) + "." + std::to_string(node & 255),
          7411};
}

LinkSpec scale_link(std::uint64_t rate, Duration latency) {
  LinkSpec link;
  link.up = link.down = static_cast<double>(rate);
  link.latency = latency;
  return link;
}

ScaleResult run_scale(const ScaleOptions& options) { return Broadcast(options).run(); }

void print_scale(const ScaleOptions& options, const ScaleResult& result, std::ostream& out) {
  out << options.nodes << " nodes, " << format_size(options.size) << ", "
      << format_rate(static_cast<double>(options.rate)) << ", " << format_duration(options.latency)
      << " one way, arrivals " << (options.spread ? "spread" : "at once") << "\n";
  if (!result.failure.empty()) out << "FAILED: " << result.failure << "\n";
  out << std::fixed << std::setprecision(3) << "  S/B                 " << result.ideal_s << " s\n"
      << "  last receiver       " << result.last_s << " s = " << result.last_s / result.ideal_s << " x S/B\n"
      << "  worst, own arrival  " << result.worst_s << " s = " << result.worst_s / result.ideal_s << " x S/B\n"
      << "  median, own arrival " << result.median_s << " s = " << result.median_s / result.ideal_s << " x S/B\n"
      << "  depth               " << result.depth << " hops, " << result.slices << " slices\n"
      << std::setprecision(2) << "  home, per request   " << result.want_mean_us << " us (first tenth "
      << result.want_early_us << ", last tenth " << result.want_late_us << ")\n"
      << std::setprecision(1) << "  simulated in        " << result.wall_s << " s, " << result.events << " events\n";
}

}  // namespace hoplite::sim
