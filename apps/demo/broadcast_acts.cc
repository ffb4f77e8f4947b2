// One object, sent to everybody the naive way and then by Hoplite, with a death on the way.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>

#include "acts.h"
#include "base/bytes.h"
#include "base/random.h"
#include "broadcast.h"
#include "picture.h"

namespace hoplite {
namespace {

class Acts {
 public:
  Acts(const DemoOptions& options, const Interrupts& interrupts, LocalCluster& cluster, Attendants& nodes)
      : options_(options), interrupts_(interrupts), cluster_(cluster), nodes_(nodes), bytes_(options.size) {
    Random random(options.size);
    for (std::size_t i = 0; i + sizeof(std::uint64_t) <= bytes_.size(); i += sizeof(std::uint64_t)) {
      const std::uint64_t word = random.next();
      std::memcpy(bytes_.data() + i, &word, sizeof word);
    }
  }

  Result<BroadcastTimes> run() {
    const auto naive = naive_way();
    if (!naive) return naive.error();
    const auto together = hoplite_way();
    if (!together) return together.error();
    const auto killed = with_a_death();
    if (!killed) return killed.error();
    return BroadcastTimes{*naive, *together, *killed};
  }

 private:
  std::vector<std::size_t> all_receivers() const {
    std::vector<std::size_t> receivers(nodes_.size() - 1);
    std::iota(receivers.begin(), receivers.end(), 1);
    return receivers;
  }

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

  const DemoOptions& options_;
  const Interrupts& interrupts_;
  LocalCluster& cluster_;
  Attendants& nodes_;
  std::vector<std::byte> bytes_;
};

}  // namespace

Result<BroadcastTimes> broadcast_acts(const DemoOptions& options, const Interrupts& interrupts) {
  // Room for the object, the one before it that is being removed, and a little.
  const LocalClusterOptions cluster_options{options.nodes, 2 * options.size + 32 * kMiB, options.rate};
  return on_a_local_cluster(cluster_options, interrupts, [&](LocalCluster& cluster, Attendants& nodes) {
    return Acts(options, interrupts, cluster, nodes).run();
  });
}

}  // namespace hoplite
