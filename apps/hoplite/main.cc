// hoplite: the command line. Each subcommand lives in a file of its own; this only wires them.
#include <signal.h>

#include <cstdio>

#include "cli.h"
#include "common/standard_streams.h"

int main(int argc, char** argv) {
  hoplite::open_missing_standard_streams();
  // Writing to a pipe whose reader has gone is an error to report, not a death.
  ::signal(SIGPIPE, SIG_IGN);
  CLI::App app{
      "An object store whose transfers are collectives: put on one node, get on all others at the wire's speed, "
      "and reduce what many nodes have put.",
      "hoplite"};
  app.set_version_flag("--version", "hoplite " HOPLITE_VERSION);
  app.require_subcommand(1);
  app.fallthrough(false);

  hoplite::Cli cli{app, {}, {}};
  cli.add_common(app);
  hoplite::add_start_stop(cli);
  hoplite::add_facts(cli);
  hoplite::add_objects(cli);
  hoplite::add_get(cli);
  hoplite::add_reduce(cli);
  hoplite::add_gather(cli);
  hoplite::add_top(cli);
  hoplite::add_local(cli);
  hoplite::add_completion(cli);

  try {
    app.parse(argc, argv);
  } catch (const CLI::RequiredError& error) {
    // CLI11 misses the subcommand before it wonders about the word that stands in its place.
    const auto unknown = app.remaining();
    if (unknown.empty()) return app.exit(error), hoplite::kExitUsage;
    hoplite::fail("there is no command \"" + unknown.front() + "\"; `hoplite --help` lists them");
    return hoplite::kExitUsage;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? hoplite::kExitOk : hoplite::kExitUsage;
  }
  const int code = cli.chosen ? cli.chosen() : hoplite::kExitUsage;
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  return written || code != hoplite::kExitOk ? code : hoplite::fail("cannot write to standard output");
}
