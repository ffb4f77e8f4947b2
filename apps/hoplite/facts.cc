// hoplite status, hoplite nodes, hoplite ls.
#include <cstdio>

#include "base/bytes.h"
#include "base/time.h"
#include "cli.h"
#include "common/json.h"
#include "common/terminal.h"
#include "render.h"

namespace hoplite {
namespace {

template <typename Facts>
int show(const Result<Facts>& facts, bool json, std::string (*as_json)(const Facts&),
         std::string (*as_text)(const Facts&)) {
  if (!facts) return fail(facts.error());
  const std::string text = json ? as_json(*facts) + "\n" : as_text(*facts);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return kExitOk;
}

int status(const Common& common) {
  auto client = connect(common);
  if (!client) return fail(client.error());
  return show<StoreStatus>(client->status(), common.json, status_json, status_text);
}

int nodes(const Common& common) {
  auto client = connect(common);
  if (!client) return fail(client.error());
  return show<std::vector<NodeStatus>>(client->nodes(), common.json, nodes_json, nodes_text);
}

int list(const Common& common) {
  auto client = connect(common);
  if (!client) return fail(client.error());
  return show<ObjectList>(client->objects(), common.json, objects_json, objects_text);
}

}  // namespace

void add_facts(Cli& cli) {
  cli.subcommand("status", "show the state of the daemon", [&cli] { return status(cli.common); });
  cli.subcommand("nodes", "list the nodes of the cluster as the daemon sees them",
                 [&cli] { return nodes(cli.common); });
  cli.subcommand("ls", "list the objects that the daemon holds or knows of", [&cli] { return list(cli.common); });
}

}  // namespace hoplite
