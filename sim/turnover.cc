#include "sim/turnover.h"

#include <algorithm>
#include <iomanip>
#include <numeric>

namespace hoplite::sim {
namespace {

constexpr Duration kPutEvery = Duration::ms(10);  // by each node: its objects do not come in one moment
constexpr Duration kSettle = Duration::s(10);
constexpr Duration kAway = Duration::s(3);  // from a death until the host's next process
constexpr std::size_t kBytes = 100;

class Turnover final : public WorldObserver {
 public:
  explicit Turnover(const TurnoverOptions& options) : options_(options), world_(world_options(options)) {
    world_.observe(this);
    LinkSpec link;
    link.up = link.down = static_cast<double>(options.cluster.rate);
    link.latency = options.cluster.latency;
    const std::uint64_t room = std::uint64_t{options.objects} * 512 + 256 * kKiB;
    for (NodeIndex node = 0; node < options.cluster.nodes; ++node)
      world_.add_node({scale_address(node), link, room, {scale_address(node == 0 ? 1 : 0)}});
    world_.start_acquainted();
    deaths_of_.resize(options.cluster.nodes);
  }

  TurnoverResult run() {
    for (NodeIndex node = 0; node < options_.cluster.nodes; ++node) put_all(node);
    advance(kPutEvery * options_.objects + kSettle);
    const Duration all = Duration::from_seconds(options_.minutes * 60);
    const auto deaths =
        static_cast<std::int64_t>(options_.cluster.nodes * options_.percent_per_minute / 100 * options_.minutes);
    for (std::int64_t i = 0; i < deaths; ++i)
      world_.at(world_.now() + all * (2 * i + 1) / (2 * deaths), [this] { one_dies(); });
    const auto before = sent();
    watch(all / 2);
    const auto middle = sent();
    watch(all / 2);
    summarise(before, middle, sent(), all);
    result_.events = world_.queue().executed();
    if (world_.violation()) result_.failure = world_.violation()->invariant + ": " + world_.violation()->text;
    result_.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();  // tidy: wall_s
    return result_;
  }

 private:
  using Sent = std::vector<std::uint64_t>;

  static WorldOptions world_options(const TurnoverOptions& options) {
    WorldOptions world;
    world.seed = 1;
    world.trace = options.cluster.trace;
    return world;
  }

  void advance(Duration duration) { world_.run_for(duration); }

  // One object after another, as long as this process lives.
  void put_all(NodeIndex node) { put(world_.process(node), world_.attach(node), 0); }
  void put(ProcessId process, ClientKey client, std::uint32_t number) {
    if (number == options_.objects || !world_.running(process.node) || world_.process(process.node) != process) return;
    ipc::Put message{{}, {}, kNoTimeout};
    if (number % 2 == 0)
      message.id = ObjectId::named(std::to_string(process.node) + '/' + std::to_string(process.start) + '/' +
                                   std::to_string(number));
    world_.ask(client, number + 1, message, std::string(kBytes, 'x'));
    world_.at(world_.now() + kPutEvery, [this, process, client, number] { put(process, client, number + 1); });
  }

  void one_dies() {
    const std::vector<NodeIndex> running = world_.running_nodes();
    const NodeIndex victim = running[random_.below(running.size())];
    ++result_.deaths;
    ++deaths_of_[victim];
    world_.crash(victim, Crash::kProcess);
    NodeIndex seed = victim;
    while (seed == victim || !world_.running(seed))
      seed = static_cast<NodeIndex>(random_.below(options_.cluster.nodes));
    world_.spec(victim).seeds = {scale_address(seed)};
    world_.at(world_.now() + kAway, [this, victim] {
      world_.start(victim);
      put_all(victim);
    });
  }

  Sent sent() const {
    Sent sent(options_.cluster.nodes);
    for (NodeIndex node = 0; node < sent.size(); ++node) sent[node] = world_.control_bytes_sent(node);
    return sent;
  }

  void watch(Duration duration) {
    const Time end = world_.now() + duration;
    Sent before = sent();
    while (world_.now() < end && !world_.violation()) {
      advance(Duration::s(1));
      const Sent after = sent();
      for (NodeIndex node = 0; node < after.size(); ++node)
        result_.worst_second = std::max(result_.worst_second, static_cast<double>(after[node] - before[node]));
      before = after;
    }
  }

  // Bytes per second that a node sent, of those that lived from the beginning to the end.
  std::vector<double> rates(const Sent& from, const Sent& to, double seconds) const {
    std::vector<double> rates;
    for (NodeIndex node = 0; node < from.size(); ++node)
      if (deaths_of_[node] == 0) rates.push_back(static_cast<double>(to[node] - from[node]) / seconds);
    return rates;
  }

  void summarise(const Sent& before, const Sent& middle, const Sent& after, Duration all) {
    const auto mean = [](const std::vector<double>& of) {
      return of.empty() ? 0 : std::accumulate(of.begin(), of.end(), 0.0) / static_cast<double>(of.size());
    };
    const std::vector<double> whole = rates(before, after, all.seconds());
    result_.mean = mean(whole);
    result_.worst = whole.empty() ? 0 : *std::max_element(whole.begin(), whole.end());
    result_.first_half = mean(rates(before, middle, all.seconds() / 2));
    result_.second_half = mean(rates(middle, after, all.seconds() / 2));
  }

  void on_reply(ClientKey, std::uint64_t, const ipc::Reply& reply) override {
    if (std::holds_alternative<ipc::Failed>(reply)) ++result_.puts_failed;
  }
  void on_transfer(const Transfer&) override {}
  void on_leave(NodeIndex) override {}
  void on_death(NodeIndex) override {}
  void on_rename(NodeIndex, NodeRef) override { ++result_.given_up; }

  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();  // tidy: for wall_s
  const TurnoverOptions options_;
  World world_;
  Random random_{7};
  std::vector<std::uint32_t> deaths_of_;  // by node
  TurnoverResult result_;
};

}  // namespace

TurnoverResult run_turnover(const TurnoverOptions& options) { return Turnover(options).run(); }

void print_turnover(const TurnoverOptions& options, const TurnoverResult& result, std::ostream& out) {
  const auto line = [&](const char* what, double bytes, const char* unit) {
    out << "  " << what << bytes / 1000 << ' ' << unit << "\n";
  };
  out << options.cluster.nodes << " nodes, " << options.objects << " objects each, " << options.percent_per_minute
      << " % of the nodes die and join per minute, for " << options.minutes << " minutes\n";
  if (!result.failure.empty()) out << "FAILED: " << result.failure << "\n";
  out << std::fixed << std::setprecision(2);
  line("control, mean        ", result.mean, "KB/s");
  line("control, worst node  ", result.worst, "KB/s");
  line("control, first half  ", result.first_half, "KB/s");
  line("control, second half ", result.second_half, "KB/s");
  line("worst second         ", result.worst_second, "KB");
  out << "  deaths               " << result.deaths << "\n"
      << "  given up alive       " << result.given_up << "\n"
      << "  puts that failed     " << result.puts_failed << "\n"
      << std::setprecision(1) << "  simulated in         " << result.wall_s << " s, " << result.events << " events\n";
}

}  // namespace hoplite::sim
