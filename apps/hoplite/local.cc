// hoplite local: a cluster on this machine for trying things out.
#include <cstdio>
#include <memory>

#include "base/bytes.h"
#include "cli.h"
#include "common/json.h"
#include "common/local_cluster.h"
#include "common/terminal.h"

namespace hoplite {
namespace {

constexpr std::uint64_t kDefaultMemory = 256 * kMiB;
constexpr int kMaxNodes = 64;

void print_nodes(const LocalCluster& cluster, bool json) {
  const auto& nodes = cluster.nodes();
  if (json) {
    JsonList list;
    for (const auto& node : nodes)
      list.raw(JsonObject()
                   .add("socket", node.process.socket)
                   .add("pid", node.process.pid)
                   .add("address", node.process.address)
                   .add("log", node.log_file)
                   .text());
    std::printf("%s\n", list.text().c_str());
  } else {
    Table table({{"NODE", Table::Align::kRight},
                 {"PID", Table::Align::kRight},
                 {"ADDRESS", Table::Align::kLeft},
                 {"SOCKET", Table::Align::kLeft}});
    for (std::size_t i = 0; i < nodes.size(); ++i)
      table.add({std::to_string(i + 1), std::to_string(nodes[i].process.pid), nodes[i].process.address,
                 nodes[i].process.socket});
    std::printf(
        "%s\nUse the cluster from another terminal, for example:\n\n"
        "  export HOPLITE_SOCKET=%s\n  hoplite put FILE --id example\n  hoplite get example --socket %s -o COPY\n"
        "  hoplite top\n\nCtrl-C stops all daemons and removes %s.\n",
        table.text().c_str(), nodes.front().process.socket.c_str(), nodes.back().process.socket.c_str(),
        cluster.folder().c_str());
  }
  std::fflush(stdout);
}

int run_local(const Common& common, const LocalClusterOptions& options) {
  Interrupts interrupts;
  LocalCluster cluster(options);
  const auto started = cluster.start([&] { return interrupts.asked(); });
  if (!started) return interrupts.asked() ? kExitOk : fail(started.error());
  print_nodes(cluster, common.json);
  std::size_t running = cluster.nodes().size();
  while (!interrupts.asked() && running > 0) {
    interrupts.sleep(std::chrono::seconds(1));
    for (const auto& [node, how] : cluster.reap()) {
      --running;
      std::fprintf(stderr, "hoplite: node %d has ended (%s)\n", node + 1, how.c_str());
    }
  }
  cluster.stop();
  if (running == 0) return fail("all nodes have ended");
  if (!common.json) std::printf("\nstopped\n");
  return kExitOk;
}

// An option whose text a function of base/bytes.h understands.
void add_quantity(CLI::App& app, const std::string& name, const std::string& type, const std::string& help,
                  std::uint64_t& value, Result<std::uint64_t> (*parse)(std::string_view)) {
  app.add_option_function<std::string>(
         name,
         [name, &value, parse](const std::string& text) {
           const auto parsed = parse(text);
           if (!parsed) throw CLI::ValidationError(name, parsed.error().message);
           value = *parsed;
         },
         help)
      ->type_name(type);
}

}  // namespace

void add_local(Cli& cli) {
  auto options = std::make_shared<LocalClusterOptions>();
  options->memory_bytes = kDefaultMemory;
  CLI::App& app = cli.bare_subcommand("local", "run a cluster on this machine to try things out; Ctrl-C ends it",
                                      [&cli, options] { return run_local(cli.common, *options); });
  app.add_option("nodes", options->nodes, "number of daemons")
      ->required()
      ->check(CLI::Range(1, kMaxNodes))
      ->type_name("N");
  add_quantity(app, "--rate", "RATE", "limit the sending rate of each daemon, e.g. 500mbit [none]", options->max_rate,
               parse_rate);
  add_quantity(app, "--memory", "SIZE", "size of each daemon's store [256MiB]", options->memory_bytes, parse_size);
  app.add_flag("--json", cli.common.json, "print JSON");
}

}  // namespace hoplite
