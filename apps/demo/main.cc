// hoplite-demo: eight daemons on this machine. One object for everybody, and the sum of everybody's arrays, the naive way
// and then by Hoplite, with deaths on the way.
#include <cstdio>
#include <string>

#include <CLI/CLI.hpp>

#include "acts.h"
#include "common/standard_streams.h"

namespace hoplite {
namespace {

void broadcast_summary(const DemoOptions& options, const BroadcastTimes& times) {
  const double limit = options.wire_s(options.size);
  std::printf("\n%s to %d receivers at %s:\n", format_size(options.size).c_str(), options.nodes - 1,
              format_rate(static_cast<double>(options.rate)).c_str());
  std::printf("  one after another      %6.2f s   %.2fx of what the wire allows\n", times.naive, times.naive / limit);
  std::printf("  Hoplite                %6.2f s   %.2fx, %.1f times faster\n", times.together, times.together / limit,
              times.naive / times.together);
  std::printf("  Hoplite, relay killed  %6.2f s   %.2fx\n", times.killed, times.killed / limit);
  std::printf("  the wire's limit       %6.2f s   one receiver, nothing else\n", limit);
}

void reduce_summary(const DemoOptions& options, const ReduceTimes& times) {
  const double limit = options.wire_s(options.array_bytes());
  std::printf("\nThe sum of %d arrays of %s at %s:\n", options.nodes, format_size(options.array_bytes()).c_str(),
              format_rate(static_cast<double>(options.rate)).c_str());
  std::printf("  one after another      %6.2f s   %.2fx of what the wire allows\n", times.naive, times.naive / limit);
  std::printf("  Hoplite                %6.2f s   %.2fx, %.1f times faster\n", times.together, times.together / limit,
              times.naive / times.together);
  std::printf("  Hoplite, late arrays   %6.2f s   %.2fx, after the last one was there\n", times.late,
              times.late / limit);
  std::printf("  Hoplite, node killed   %6.2f s   %.2fx, of the first %d of %d\n", times.killed, times.killed / limit,
              options.nodes - 1, options.nodes);
  std::printf("  the wire's limit       %6.2f s   one array over one link\n", limit);
}

Result<void> run(const DemoOptions& options) {
  Interrupts interrupts;
  const auto broadcast = broadcast_acts(options, interrupts);
  if (!broadcast) return broadcast.error();
  std::printf("\n");
  const auto reduce = reduce_acts(options, interrupts);
  if (!reduce) return reduce.error();
  broadcast_summary(options, *broadcast);
  reduce_summary(options, *reduce);
  return {};
}

}  // namespace
}  // namespace hoplite

int main(int argc, char** argv) {
  hoplite::open_missing_standard_streams();
  CLI::App app{
      "One object to every node of a local cluster, and the sum of an array from each: the naive way, by Hoplite, and "
      "by "
      "Hoplite with a death.",
      "hoplite-demo"};
  hoplite::DemoOptions options;
  std::string size = "64MiB";
  std::string rate = "200mbit";
  app.add_option("--nodes", options.nodes, "how many daemons [8]")->check(CLI::Range(3, 32));
  app.add_option("--size", size, "of the object; of an array, half of it [64MiB]");
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
