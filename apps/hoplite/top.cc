// hoplite top: a live view of one daemon.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/bytes.h"
#include "base/printable.h"
#include "cli.h"
#include "common/json.h"
#include "common/terminal.h"
#include "render.h"

namespace hoplite {
namespace {

using Clock = std::chrono::steady_clock;

struct Snapshot {
  Clock::time_point at;
  StoreStatus status;
  ObjectList objects;
  std::vector<NodeStatus> nodes;
};

struct Rates {
  double in = 0;
  double out = 0;
};

Result<Snapshot> take_snapshot(Client& client) {
  Snapshot snapshot;
  auto status = client.status();
  if (!status) return status.error();
  auto objects = client.objects();
  if (!objects) return objects.error();
  auto nodes = client.nodes();
  if (!nodes) return nodes.error();
  snapshot.at = Clock::now();
  snapshot.status = *std::move(status);
  snapshot.objects = *std::move(objects);
  snapshot.nodes = *std::move(nodes);
  return snapshot;
}

Rates rates_between(const Snapshot& before, const Snapshot& now) {
  const double seconds = std::chrono::duration<double>(now.at - before.at).count();
  if (seconds <= 0) return {};
  return {static_cast<double>(now.status.bytes_in - before.status.bytes_in) / seconds,
          static_cast<double>(now.status.bytes_out - before.status.bytes_out) / seconds};
}

// What moves comes first, then what is large.
std::vector<ObjectStatus> in_order_of_interest(const ObjectList& list) {
  std::vector<ObjectStatus> objects = list.objects;
  const auto moving = [](const ObjectStatus& o) {
    return o.state == CopyState::kGrowing || o.state == CopyState::kWriting || o.receivers > 0;
  };
  std::stable_sort(objects.begin(), objects.end(), [&](const ObjectStatus& a, const ObjectStatus& b) {
    return moving(a) != moving(b) ? moving(a) : a.size > b.size;
  });
  return objects;
}

double share_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string object_line(const ObjectStatus& object) {
  std::string line = bar(object.size == 0 ? 1 : share_of(object.bytes, object.size), 22) + "  ";
  line += shown_name(object.name.empty() ? object.id.to_string() : object.name);
  line += "  " + format_size(object.size) + "  " + phase_text(object);
  if (!object.parent.empty()) line += "  from " + object.parent;
  if (object.receivers > 0) line += "  to " + std::to_string(object.receivers);
  return line;
}

std::vector<std::string> draw(const Snapshot& now, const Rates& rates, std::size_t rows) {
  const StoreStatus& s = now.status;
  std::vector<std::string> lines;
  lines.push_back("hoplite " + s.software + "  " + s.address + "  node " + s.node + "  up " +
                  format_duration(Duration::ms(s.uptime.count())));
  lines.push_back("store   " + bar(share_of(s.used_bytes, s.capacity_bytes), 32) + "  " + format_size(s.used_bytes) +
                  " of " + format_size(s.capacity_bytes) + ", " + format_size(s.pinned_bytes) + " pinned");
  lines.push_back("wire    in " + format_rate(rates.in) + ", out " + format_rate(rates.out) + "; " +
                  format_size(s.bytes_in) + " in, " + format_size(s.bytes_out) + " out since it started");
  lines.push_back("clients " + std::to_string(s.clients) + ", " + std::to_string(s.waiting) + " requests waiting");
  lines.push_back("");

  const auto objects = in_order_of_interest(now.objects);
  lines.push_back("OBJECTS " + std::to_string(s.objects) + " complete, " + std::to_string(s.growing) + " growing");
  const std::size_t node_lines = std::min<std::size_t>(now.nodes.size(), 16);
  const std::size_t left = rows > lines.size() + node_lines + 4 ? rows - lines.size() - node_lines - 4 : 3;
  for (std::size_t i = 0; i < std::min(left, objects.size()); ++i) lines.push_back("  " + object_line(objects[i]));
  if (objects.size() > left) lines.push_back("  ... " + std::to_string(objects.size() - left) + " more");
  lines.push_back("");

  lines.push_back("NODES   " + std::to_string(s.members) + " alive");
  for (std::size_t i = 0; i < node_lines; ++i) {
    const NodeStatus& node = now.nodes[i];
    std::string line = "  " + node.node + "  " + node.address +
                       (node.self    ? "  this one"
                        : node.alive ? "  alive"
                                     : "  dead");
    if (node.rtt.count() > 0) line += "  rtt " + format_duration(Duration::us(node.rtt.count()));
    if (node.rate > 0) line += "  " + format_rate(static_cast<double>(node.rate));
    lines.push_back(std::move(line));
  }
  return lines;
}

int print_once(const Common& common, const Snapshot& snapshot, const Rates& rates) {
  if (common.json) {
    const auto text = JsonObject()
                          .raw("status", status_json(snapshot.status))
                          .raw("objects", objects_json(snapshot.objects))
                          .raw("nodes", nodes_json(snapshot.nodes))
                          .add("rate_in", rates.in)
                          .add("rate_out", rates.out)
                          .text();
    std::printf("%s\n", text.c_str());
    return kExitOk;
  }
  for (const std::string& line : draw(snapshot, rates, 1'000'000)) std::printf("%s\n", printable(line).c_str());
  return kExitOk;
}

// The alternate screen while this lives: what was there before comes back.
struct Screen {
  Screen() { std::fputs("\x1b[?1049h\x1b[?25l", stdout); }
  ~Screen() {
    std::fputs("\x1b[?25h\x1b[?1049l", stdout);
    std::fflush(stdout);
  }
  void show(const std::vector<std::string>& lines) {
    const auto rows = static_cast<std::size_t>(terminal_rows(STDOUT_FILENO));
    const auto columns = static_cast<std::size_t>(terminal_columns(STDOUT_FILENO));
    std::string out = "\x1b[H";
    for (std::size_t i = 0; i < std::min(lines.size(), rows - 1); ++i)
      out += "\x1b[2K" + cut_to_columns(printable(lines[i]), columns) + "\n";
    out += "\x1b[J";
    std::fwrite(out.data(), 1, out.size(), stdout);
    std::fflush(stdout);
  }
};

int watch(Client& client, Snapshot before, std::chrono::milliseconds interval) {
  Interrupts interrupts;
  const RawKeys keys;
  Rates rates;
  Result<Snapshot> now = before;
  {
    Screen screen;
    while (now.ok()) {
      screen.show(draw(*now, rates, static_cast<std::size_t>(terminal_rows(STDOUT_FILENO))));
      const auto key = interrupts.sleep(interval, true);
      if (interrupts.asked() || key == 'q' || key == 'Q') return kExitOk;
      now = take_snapshot(client);
      if (now.ok()) {
        rates = rates_between(before, *now);
        before = *now;
      }
    }
  }
  return fail(now.error());
}

int run_top(const Common& common, double interval_s) {
  auto client = connect(common);
  if (!client) return fail(client.error());
  const auto interval = std::chrono::milliseconds(static_cast<int>(interval_s * 1000));
  auto first = take_snapshot(*client);
  if (!first) return fail(first.error());
  if (is_terminal(STDOUT_FILENO) && !common.json) return watch(*client, *first, interval);
  ::usleep(200'000);  // rates need two looks
  const auto second = take_snapshot(*client);
  if (!second) return fail(second.error());
  return print_once(common, *second, rates_between(*first, *second));
}

}  // namespace

void add_top(Cli& cli) {
  auto interval_s = std::make_shared<double>(1.0);
  CLI::App& app =
      cli.subcommand("top", "show a live view of the daemon; press q to quit. Without a terminal, print it once",
                     [&cli, interval_s] { return run_top(cli.common, *interval_s); });
  app.add_option("--interval", *interval_s, "seconds between updates [1]")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 3600.0));
}

}  // namespace hoplite
