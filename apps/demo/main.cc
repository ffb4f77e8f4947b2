// hoplite-demo: eight daemons on this machine, one object, sent the naive way and then by Hoplite, with a death on the way.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>

#include <CLI/CLI.hpp>

#include "base/bytes.h"
#include "base/random.h"
#include "broadcast.h"
#include "common/local_cluster.h"
#include "common/standard_streams.h"
#include "common/terminal.h"
#include "picture.h"

namespace hoplite {
namespace {

struct DemoOptions {
  int nodes = 8;
  std::uint64_t size = 64 * kMiB;
  std::uint64_t rate = 25'000'000;  // 200 Mbit/s: slow enough to watch, and light for two cores
};

class Demo {
 public:
  Demo(const DemoOptions& options, const Interrupts& interrupts, LocalCluster& cluster, Attendants& nodes)
      : options_(options), interrupts_(interrupts), cluster_(cluster), nodes_(nodes), bytes_(options.size) {
    Random random(options.size);
    for (std::size_t i = 0; i + sizeof(std::uint64_t) <= bytes_.size(); i += sizeof(std::uint64_t)) {
      const std::uint64_t word = random.next();
      std::memcpy(bytes_.data() + i, &word, sizeof word);
    }
  }

  Result<void> run() {
    const auto naive = naive_way();
    if (!naive) return naive.error();
    const auto together = hoplite_way();
    if (!together) return together.error();
    const auto killed = with_a_death();
    if (!killed) return killed.error();
    summary(*naive, *together, *killed);
    return {};
  }

 private:
  std::vector<std::size_t> all_receivers() const {
    std::vector<std::size_t> receivers(nodes_.size() - 1);
    std::iota(receivers.begin(), receivers.end(), 1);
    return receivers;
  }

  double limit_s() const { return static_cast<double>(options_.size) / static_cast<double>(options_.rate); }

  using Watch = std::function<void(double, std::vector<Receiver>&)>;
  // A fresh object for `receivers`; it is removed in the end, so that every round starts the same.
  Result<BroadcastResult> broadcast(const std::vector<std::size_t>& receivers, Picture& picture,
                                    const Watch& also = {}) {
    const auto id = nodes_.at(0).put(bytes_);
    if (!id) return id.error();
    BroadcastOptions options;
    options.id = *id;
    options.receivers = receivers;
    options.watch = [&](double seconds, std::vector<Receiver>& state) {
      if (also) also(seconds, state);
      picture.draw(seconds, state);
      return !interrupts_.asked();
    };
    auto result = run_broadcast(nodes_, bytes_, options);
    if (!result) return result;
    if (auto removed = nodes_.at(0).remove(*id, std::chrono::seconds(20)); !removed) return removed.error();
    return result;
  }

  Result<double> naive_way() {
    std::printf("\nThe naive way: node 1 sends to one receiver after another.\n");
    Picture picture;
    double seconds = 0;
    for (const std::size_t node : all_receivers()) {
      auto result = broadcast({node}, picture);
      if (!result) return result.error();
      picture.leave(result->seconds, result->receivers);
      seconds += result->seconds;
    }
    return seconds;
  }

  Result<double> hoplite_way() {
    std::printf("\nHoplite: all of them get it at once, and pass it on while it arrives.\n");
    Picture picture;
    auto result = broadcast(all_receivers(), picture);
    if (!result) return result.error();
    picture.leave(result->seconds, result->receivers);
    std::printf("\nThe tree that formed:\n%s", tree_text(result->receivers).c_str());
    return result->seconds;
  }

  // The receiver that most others depend on, directly or not, and that is about half done.
  static std::optional<std::size_t> relay_half_way(const std::vector<Receiver>& receivers) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < receivers.size(); ++i) {
      if (receivers[i].share < 0.5 || receivers[i].seconds) continue;
      const auto is_child = [&](const Receiver& r) {
        return !r.parents.empty() && r.parents.back() == static_cast<int>(receivers[i].node);
      };
      if (std::none_of(receivers.begin(), receivers.end(), is_child)) continue;
      if (!best || receivers[i].share > receivers[*best].share) best = i;
    }
    return best;
  }

  Result<double> with_a_death() {
    std::printf("\nOnce more, and a relay is killed (kill -9) half-way.\n");
    Picture picture;
    std::optional<std::size_t> victim;
    auto result = broadcast(all_receivers(), picture, [&](double, std::vector<Receiver>& receivers) {
      if (victim) return;
      if (const auto found = relay_half_way(receivers)) {
        victim = receivers[*found].node;
        receivers[*found].killed = true;
        cluster_.kill(static_cast<int>(*victim));
      }
    });
    if (!result) return result.error();
    picture.leave(result->seconds, result->receivers);
    if (!victim) return Error{Code::kInternal, "no relay was found to kill: the transfer was over too soon"};
    std::printf("\nNode %zu died; everybody else has the object, byte for byte. In the end:\n%s", *victim + 1,
                tree_text(result->receivers).c_str());
    return result->seconds;
  }

  void summary(double naive, double together, double killed) const {
    const double limit = limit_s();
    std::printf("\n%s to %zu receivers at %s:\n", format_size(options_.size).c_str(), nodes_.size() - 1,
                format_rate(static_cast<double>(options_.rate)).c_str());
    std::printf("  one after another      %6.2f s   %.2fx of what the wire allows\n", naive, naive / limit);
    std::printf("  Hoplite                %6.2f s   %.2fx, %.1f times faster\n", together, together / limit,
                naive / together);
    std::printf("  Hoplite, relay killed  %6.2f s   %.2fx\n", killed, killed / limit);
    std::printf("  the wire's limit       %6.2f s   one receiver, nothing else\n", limit);
  }

  const DemoOptions& options_;
  const Interrupts& interrupts_;
  LocalCluster& cluster_;
  Attendants& nodes_;
  std::vector<std::byte> bytes_;
};

Result<void> run(const DemoOptions& options) {
  Interrupts interrupts;
  // Room for the object, the one before it that is being removed, and a little.
  LocalCluster cluster({options.nodes, 2 * options.size + 32 * kMiB, options.rate});
  std::printf("Starting %d daemons, each limited to %s ...\n", options.nodes,
              format_rate(static_cast<double>(options.rate)).c_str());
  std::fflush(stdout);
  if (auto started = cluster.start([&] { return interrupts.asked(); }); !started) return started;
  auto nodes = Attendants::attach(cluster);
  if (!nodes) return nodes.error();
  auto result = Demo(options, interrupts, cluster, *nodes).run();
  // The daemons end before the clients do: gets that are under way fail at once.
  cluster.stop();
  return result;
}

}  // namespace
}  // namespace hoplite

int main(int argc, char** argv) {
  hoplite::open_missing_standard_streams();
  CLI::App app{"One object to every node of a local cluster: the naive way, by Hoplite, and by Hoplite with a death.",
               "hoplite-demo"};
  hoplite::DemoOptions options;
  std::string size = "64MiB";
  std::string rate = "200mbit";
  app.add_option("--nodes", options.nodes, "how many daemons [8]")->check(CLI::Range(3, 32));
  app.add_option("--size", size, "of the object [64MiB]");
  app.add_option("--rate", rate, "what each daemon may send [200mbit]");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const auto parsed_size = hoplite::parse_size(size);
  const auto parsed_rate = hoplite::parse_rate(rate);
  if (!parsed_size || !parsed_rate || *parsed_rate == 0 || *parsed_size < hoplite::kMiB) {
    std::fprintf(stderr, "hoplite-demo: --size is at least 1MiB, and --rate is a rate such as 200mbit\n");
    return 2;
  }
  options.size = *parsed_size;
  options.rate = *parsed_rate;
  const auto result = hoplite::run(options);
  if (result.ok()) return 0;
  if (result.code() != hoplite::Code::kCancelled)
    std::fprintf(stderr, "hoplite-demo: %s\n", result.error().message.c_str());
  return 1;
}
