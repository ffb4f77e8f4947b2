// What a daemon can be told: one table for `hoplited`, for `hoplite start` and for the config file, so that every key is an
// option, every option is a key, and --help shows the same defaults everywhere.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "hoplite/error.h"

namespace CLI {
class App;
}

namespace hoplite {

struct DaemonOptions {
  std::string config;  // a TOML file; what is said on the command line wins over it

  std::string listen = "127.0.0.1:7411";
  std::vector<std::string> join;  // members to join through; any of them will do. The first may be this one.
  std::string advertise;          // the address told to others; empty: as `listen`
  std::string socket;             // of the clients; empty: default_socket_path()
  std::uint32_t socket_mode = 0600;
  std::uint64_t memory_bytes = 0;  // of the store; 0: 30 % of the machine's, see store_bytes()
  std::uint64_t inline_bytes = 64 * kKiB;

  std::string token_file;  // empty: $HOPLITE_TOKEN, and if that is empty too: no token
  bool insecure = false;   // listen beyond loopback without a token

  std::uint64_t max_rate = 0;  // egress limit in bytes per second; 0: none
  std::uint32_t io_threads = 1;
  bool busy_poll = false;

  Duration ping_every = Duration::ms(250);
  Duration dead_after = Duration::ms(900);  // without an answer; others are asked on the way
  Duration drain = Duration::s(5);

  std::string log_file;  // empty: standard error in the foreground, else SOCKET.log
  std::string log_level = "info";
  bool foreground = false;
  bool until_eof = false;  // stop when standard input ends

  std::set<std::string, std::less<>> given;  // names of what was said on the command line
};

// Adds every option, with its default in the help text. `options` must live as long as `app`; it is filled while parsing,
// and a bad value is a CLI11 validation error that says what was expected.
void add_daemon_options(CLI::App& app, DaemonOptions& options);

// What was said or differs from its default, as arguments for `hoplited`. `config` is among them: the daemon reads it itself.
std::vector<std::string> to_arguments(const DaemonOptions& options);

// Reads the text of a config file into `options`, except for what was given on the command line. Unknown keys, wrong types
// and bad values are kInvalidArgument with the line and the key. Safe for any input.
Result<void> parse_config(std::string_view text, DaemonOptions& options);
Result<void> load_config(const std::string& path, DaemonOptions& options);

// The socket and the store's size with their defaults filled in.
std::string socket_path(const DaemonOptions& options);
std::uint64_t store_bytes(const DaemonOptions& options);
// The cluster token from the file or the environment, without the line's end; empty = none.
Result<std::string> read_token(const DaemonOptions& options);

}  // namespace hoplite
