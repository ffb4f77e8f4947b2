// hoplited: one node of a Hoplite cluster. Stays in the foreground; `hoplite start` puts it in the background.
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstdio>

#include <CLI/CLI.hpp>

#include "base/printable.h"
#include "common/standard_streams.h"
#include "daemon_options.h"
#include "end_of_input.h"
#include "node/log.h"
#include "node/node.h"
#include "node/stop_signals.h"
#include "node_options.h"
#include "ready.h"

namespace hoplite {
namespace {

// Every client and every peer takes descriptors; the usual soft limit of 1024 is for programs that use select().
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

void warn_about_token_file(const std::string& file, Log& log) {
  struct stat info{};
  if (file.empty() || ::stat(file.c_str(), &info) != 0 || (info.st_mode & 077) == 0) return;
  log.warn("other users can read the token file " + file + "; restrict it with chmod 600");
}

// SIGHUP: the log file is opened anew, so that it can be rotated, and of the config what can be changed in a running daemon is
// taken: how much is logged. `options` are what was said on the command line.
void hang_up(DaemonOptions options, Log& log) {
  if (auto reopened = log.reopen(); !reopened) log.error(reopened.error().message);
  if (options.config.empty()) return log.info("SIGHUP: opened the log anew");
  if (auto loaded = load_config(options.config, options); !loaded)
    return log.error("SIGHUP: the config stays as it was: " + loaded.error().message);
  if (const auto level = parse_log_level(options.log_level); level) log.set_level(*level);
  log.info("SIGHUP: opened the log anew, and read " + options.config +
           " again: the log level counts from now on, the rest when the daemon is started again");
}

Result<void> run(DaemonOptions& options, ReadyPipe& ready) {
  const DaemonOptions said = options;
  if (!options.config.empty()) {
    if (auto loaded = load_config(options.config, options); !loaded) return loaded;
  }
  if (options.until_eof) {
    if (auto can_end = EndOfInput::check(); !can_end) return can_end;
  }
  auto level = parse_log_level(options.log_level);
  if (!level) return level.error();
  auto settings = node_options(options);
  if (!settings) return settings.error();
  auto log = Log::open(options.log_file, *level);
  if (!log) return log.error();
  raise_descriptor_limit();
  StopSignals signals;
  auto node = Node::create(*settings, **log);
  // Not into the log: the other daemon that has our socket may be writing to it.
  if (!node) return node.error();
  warn_about_token_file(options.token_file, **log);
  signals.attach((*node)->loop(), {.stop = [&] { (*node)->stop(); }, .hang_up = [&] { hang_up(said, **log); }});
  EndOfInput input;
  if (options.until_eof) input.attach((*node)->loop(), [&] { (*node)->stop(); });
  ready.ready(settings->socket, (*node)->address().to_string());
  (*node)->run();
  input.detach();
  signals.detach();
  (*log)->info("stopped");
  return {};
}

}  // namespace
}  // namespace hoplite

int main(int argc, char** argv) {
  hoplite::open_missing_standard_streams();
  CLI::App app{"A node of a Hoplite cluster: keeps objects in shared memory and moves them between nodes.", "hoplited"};
  app.set_version_flag("--version", "hoplited " HOPLITE_VERSION);
  hoplite::DaemonOptions options;
  hoplite::add_daemon_options(app, options);
  auto ready = hoplite::ReadyPipe::from_environment();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0 && ready.error(error.what())) return 2;
    return app.exit(error) == 0 ? 0 : 2;
  }
  const auto result = hoplite::run(options, ready);
  if (result.ok()) return 0;
  // Who was told may have given us the log of another daemon as standard error.
  if (ready.error(result.error().message)) return 1;
  std::fprintf(stderr, "hoplited: %s\n", hoplite::printable(result.error().message).c_str());
  return 1;
}
