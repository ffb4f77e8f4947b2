// hoplite: the command line. Each subcommand lives in a file of its own; this only wires them.
#include <signal.h>

#include <cstdio>
#include <sstream>

#include "base/printable.h"
#include "cli.h"
#include "common/standard_streams.h"

namespace {

// Help, or what was wrong with what was typed, which may quote a name. CLI11's exit code.
int show(const CLI::App& app, const CLI::ParseError& error) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = app.exit(error, out, err);
  std::fwrite(out.str().data(), 1, out.str().size(), stdout);
  std::fprintf(stderr, "%s", hoplite::printable_lines(err.str()).c_str());
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  hoplite::open_missing_standard_streams();
  // Writing to a pipe whose reader has gone is an error to report, not a death.
  ::signal(SIGPIPE, SIG_IGN);
  CLI::App app{
      "A distributed object store whose transfers are collectives: put an object on one node, get it on all others at "
      "the speed of the network, and reduce arrays that many nodes have put.",
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
    if (unknown.empty()) return show(app, error), hoplite::kExitUsage;
    hoplite::fail("there is no command \"" + unknown.front() + "\"; `hoplite --help` lists them");
    return hoplite::kExitUsage;
  } catch (const CLI::ParseError& error) {
    return show(app, error) == 0 ? hoplite::kExitOk : hoplite::kExitUsage;
  }
  const int code = cli.chosen ? cli.chosen() : hoplite::kExitUsage;
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  return written || code != hoplite::kExitOk ? code : hoplite::fail("cannot write to standard output");
}
