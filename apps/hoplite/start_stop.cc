// hoplite start, hoplite stop.
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "base/paths.h"
#include "base/printable.h"
#include "base/unique_fd.h"
#include "cli.h"
#include "common/daemon_process.h"
#include "common/json.h"
#include "daemon_options.h"
#include "render.h"

namespace hoplite {
namespace {

constexpr std::size_t kMaxReason = 500;  // of a line about why it has not joined
constexpr auto kDefaultStopTimeout = std::chrono::seconds(15);

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// Fills in what people leave to us, as the daemon will see it. The daemon's socket.
Result<std::string> complete(DaemonOptions& options) {
  DaemonOptions with_config = options;
  if (!options.config.empty())
    if (auto loaded = load_config(options.config, with_config); !loaded) return loaded.error();
  if (with_config.socket.empty()) {
    options.socket = from_environment("HOPLITE_SOCKET");
    with_config.socket = options.socket;
  }
  const std::string socket = hoplite::socket_path(with_config);
  options.foreground = with_config.foreground;
  options.log_file = with_config.log_file;
  if (options.foreground || !options.log_file.empty()) return socket;
  options.log_file = socket + ".log";
  // The log is opened before the daemon makes the socket's folder.
  if (auto made = make_parent_folder(options.log_file); !made) return made.error();
  return socket;
}

// Why no member has let it in yet, which takes milliseconds if one is there; empty: one has.
std::string not_joined(const std::string& socket) {
  auto client = Client::connect({.socket = socket});
  if (!client) return client.error().message;
  std::string why = "nobody has answered";
  for (int tries = 0; tries < 100; ++tries) {
    const auto status = client->status();
    if (!status) return status.error().message;
    if (status->members > 1 || !status->joining) return "";
    if (!status->join_problems.empty()) why = status->join_problems;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return why;
}

// Who listens at a socket. No handshake: a daemon that is stuck can be stopped, too.
Result<pid_t> listener_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return Error{Code::kInvalidArgument, "the socket path " + path + " is too long"};
  std::memcpy(address.sun_path, path.data(), path.size());
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return Error{Code::kUnavailable, errno == ENOENT || errno == ECONNREFUSED
                                         ? "no daemon at " + path
                                         : "cannot connect to " + path + ": " + std::strerror(errno)};
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid <= 0)
    return Error{Code::kUnavailable, "cannot determine which process listens at " + path};
  return peer.pid;
}

int start(const Common& common, DaemonOptions& options) {
  const auto socket = complete(options);
  if (!socket) return fail(socket.error());
  if (options.foreground) return fail(exec_daemon(to_arguments(options)));
  // Said here and not by a second daemon, which would have to say it in the log of the first one.
  if (const auto pid = listener_of(*socket); pid.ok())
    return fail("a daemon already runs at " + *socket + " (pid " + std::to_string(*pid) + ")");
  const auto daemon =
      spawn_daemon({.arguments = to_arguments(options), .output_file = options.log_file, .detached = true});
  if (!daemon) return fail(daemon.error());
  if (common.json) {
    const auto text = JsonObject()
                          .add("socket", daemon->socket)
                          .add("pid", daemon->pid)
                          .add("address", daemon->address)
                          .add("log", options.log_file)
                          .text();
    std::printf("%s\n", text.c_str());
  } else {
    std::printf("socket   %s\npid      %d\naddress  %s\nlog      %s\n", daemon->socket.c_str(), daemon->pid,
                daemon->address.c_str(), options.log_file.c_str());
    std::fflush(stdout);
  }
  if (const std::string why = not_joined(daemon->socket); !why.empty())
    std::fprintf(stderr, "hoplite: not joined yet: %s; the daemon goes on trying\n",
                 shorten_to_columns(printable(why), kMaxReason).c_str());
  return kExitOk;
}

// --- stop

struct Listener {
  std::string socket;
  pid_t pid = 0;
};

// The same daemon that other commands would talk to.
Result<Listener> chosen_daemon(const Common& common) {
  const std::string named = common.socket.empty() ? from_environment("HOPLITE_SOCKET") : common.socket;
  std::string path = named.empty() ? default_socket_path() : named;
  auto pid = listener_of(path);
  if (!pid && named.empty()) {
    const std::vector<std::string> others = other_default_sockets();
    if (others.size() == 1) pid = listener_of(path = others.front());
    else if (!others.empty()) return Error{pid.code(), pid.error().message + choose_among(others)};
  }
  if (!pid) return pid.error();
  return Listener{path, *pid};
}

int stop(const Common& common, const Timeout& timeout) {
  const auto daemon = chosen_daemon(common);
  if (!daemon) return fail(daemon.error());
  const std::string& path = daemon->socket;
  const pid_t pid = daemon->pid;
  const std::string who = "the daemon at " + path + " (pid " + std::to_string(pid) + ")";
  // The descriptor names this process even if the number is used again.
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process) return fail("cannot watch " + who + ": " + std::strerror(errno));
  if (::kill(pid, SIGTERM) != 0) return fail("cannot stop " + who + ": " + std::strerror(errno));
  const auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(timeout.value_or(kDefaultStopTimeout));
  pollfd ended{.fd = process.get(), .events = POLLIN, .revents = 0};
  if (::poll(&ended, 1, static_cast<int>(wait.count())) <= 0)
    return fail(who + " was told to stop but has not ended within " + format_duration(Duration::ms(wait.count())) +
                "; `kill -9 " + std::to_string(pid) + "` ends it immediately");
  if (common.json) std::printf("%s\n", JsonObject().add("socket", path).add("pid", pid).text().c_str());
  else std::printf("stopped %s\n", who.c_str());
  return kExitOk;
}

}  // namespace

void add_start_stop(Cli& cli) {
  auto options = std::make_shared<DaemonOptions>();
  CLI::App& start_app =
      cli.bare_subcommand("start", "start a daemon in the background and print its socket, pid, address and log",
                          [&cli, options] { return start(cli.common, *options); });
  add_daemon_options(start_app, *options);
  start_app.add_flag("--json", cli.common.json, "print JSON");

  auto timeout = std::make_shared<Timeout>();
  CLI::App& stop_app = cli.subcommand("stop", "stop the daemon and wait until it has ended",
                                      [&cli, timeout] { return stop(cli.common, *timeout); });
  add_timeout(stop_app, *timeout, "how long to wait until it has ended [15s]");
}

}  // namespace hoplite
