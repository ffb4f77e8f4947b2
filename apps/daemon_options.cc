#include "daemon_options.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include <CLI/CLI.hpp>
#define TOML_HEADER_ONLY 1
// toml++ 3.3 asserts on some malformed keys before it reports them as errors; the report is what we want.
#define TOML_ASSERT(expression) static_cast<void>(0)
#include <toml++/toml.h>

#include "base/address.h"
#include "base/paths.h"
#include "shm/memory_info.h"

namespace hoplite {
namespace {

constexpr std::uint16_t kDefaultPort = 7411;
constexpr std::uint64_t kMaxConfigBytes =
    1 * kMiB;  // a config is a page of text; this bounds what a wrong path can cost
constexpr std::uint64_t kMaxTokenBytes = 4 * kKiB;
constexpr unsigned kDefaultMemoryPercent = 30;

enum class Kind { kText, kNumber, kList, kFlag };

// One row of the table. `set` takes the text of one value; `get` is its inverse, empty for what is not set.
struct Row {
  const char* name;
  Kind kind;
  const char* value_name;
  const char* help;
  std::function<Result<void>(DaemonOptions&, const std::string&)> set;
  std::function<std::vector<std::string>(const DaemonOptions&)> get;
};

Error expected(const std::string& what, const std::string& text) {
  return {Code::kInvalidArgument, "expected " + what + ", not \"" + text + "\""};
}

// 64KiB for 65536: as people write it, if that is exact.
std::string exact_size(std::uint64_t bytes) {
  if (bytes >= kGiB && bytes % kGiB == 0) return std::to_string(bytes / kGiB) + "GiB";
  if (bytes >= kMiB && bytes % kMiB == 0) return std::to_string(bytes / kMiB) + "MiB";
  if (bytes >= kKiB && bytes % kKiB == 0) return std::to_string(bytes / kKiB) + "KiB";
  return std::to_string(bytes);
}

std::string exact_duration(Duration duration) {
  if (duration.ns % 1'000'000 == 0) return std::to_string(duration.ns / 1'000'000) + "ms";
  return std::to_string(duration.ns / 1000) + "us";
}

std::uint64_t machine_memory() {
  const auto memory = read_memory_info();
  return memory ? memory->total_bytes : 4 * kGiB;
}

template <typename Number>
Result<Number> parse_number(const std::string& text, Number low, Number high, int base = 10) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high)
    return expected("a number from " + std::to_string(low) + " to " + std::to_string(high), text);
  return value;
}

Result<std::uint64_t> parse_memory(const std::string& text) {
  if (!text.empty() && text.back() == '%') {
    const auto percent = parse_number<unsigned>(text.substr(0, text.size() - 1), 1, 95);
    if (!percent) return expected("a percentage from 1% to 95%, or a size such as 4GiB", text);
    return machine_memory() / 100 * *percent;
  }
  auto bytes = parse_size(text);
  if (!bytes) return bytes.error();
  if (*bytes < kMiB) return expected("at least 1MiB", text);
  return bytes;
}

Result<std::string> parse_address(const std::string& text) {
  const auto address = Address::parse(text, kDefaultPort);
  if (!address) return address.error();
  return address->to_string();
}

Result<std::string> parse_level(const std::string& text) {
  for (const char* level : {"debug", "info", "warn", "error"})
    if (text == level) return text;
  return expected("debug, info, warn or error", text);
}

Result<std::uint32_t> parse_mode(const std::string& text) {
  auto mode = parse_number<std::uint32_t>(text, 0, 0777, 8);
  if (!mode) return expected("permissions in octal, such as 0600", text);
  return mode;
}

Result<Duration> parse_pace(const std::string& text) {
  auto duration = parse_duration(text);
  if (duration && duration->ns < 1000) return expected("at least 1us", text);
  return duration;
}

Result<std::string> any_text(const std::string& text) {
  if (text.find('\0') != std::string::npos) return expected("text without zero bytes", text);
  return text;
}

Result<std::string> parse_path(const std::string& text) {
  if (text.empty()) return expected("a path", text);
  return any_text(text);
}

Result<std::uint64_t> parse_max_rate(const std::string& text) {
  constexpr std::uint64_t kLeast = 1000;  // below that, not even pings would come in time
  auto rate = parse_rate(text);
  if (rate && *rate < kLeast && text != "none" && text != "0") return expected("at least 8kbit, or none", text);
  return rate;
}

// A row for a member that one function parses and another one prints.
template <typename T, typename Parse, typename Print>
Row row(const char* name, Kind kind, const char* value_name, const char* help, T DaemonOptions::* member, Parse parse,
        Print print) {
  auto set = [member, parse](DaemonOptions& options, const std::string& text) -> Result<void> {
    auto value = parse(text);
    if (!value) return value.error();
    options.*member = *std::move(value);
    return {};
  };
  auto get = [member, print](const DaemonOptions& options) -> std::vector<std::string> {
    std::string text = print(options.*member);
    if (text.empty()) return {};
    return {std::move(text)};
  };
  return {name, kind, value_name, help, set, get};
}

Row text_row(const char* name, const char* value_name, const char* help, std::string DaemonOptions::* member,
             Result<std::string> (*parse)(const std::string&) = any_text) {
  return row(name, Kind::kText, value_name, help, member, parse, [](const std::string& text) { return text; });
}

Row flag_row(const char* name, const char* help, bool DaemonOptions::* member) {
  const auto parse = [](const std::string& text) -> Result<bool> {
    if (text == "true" || text == "false") return text == "true";
    return expected("true or false", text);
  };
  return row(name, Kind::kFlag, "", help, member, parse, [](bool on) -> std::string { return on ? "true" : ""; });
}

Row duration_row(const char* name, const char* help, Duration DaemonOptions::* member) {
  return row(name, Kind::kNumber, "TIME", help, member, parse_pace, exact_duration);
}

Row socket_row() {
  static const std::string help = "the Unix socket for clients [" + default_socket_path() + "]";
  return text_row("socket", "PATH", help.c_str(), &DaemonOptions::socket, parse_path);
}

Row join_row() {
  const auto set = [](DaemonOptions& options, const std::string& text) -> Result<void> {
    auto address = parse_address(text);
    if (!address) return address.error();
    options.join.push_back(*std::move(address));
    return {};
  };
  return {"join",      Kind::kList,
          "HOST:PORT", "a member of the cluster to join, by name or address; may be repeated, any one of them suffices",
          set,         [](const DaemonOptions& options) { return options.join; }};
}

Row memory_row() {
  return row(
      "memory", Kind::kNumber, "SIZE", "size of the object store, e.g. 4GiB, or a percentage of the machine's memory",
      &DaemonOptions::memory_bytes, parse_memory,
      [](std::uint64_t bytes) { return bytes == 0 ? std::to_string(kDefaultMemoryPercent) + "%" : exact_size(bytes); });
}

Row mode_row() {
  return row("socket-mode", Kind::kText, "MODE", "permissions of the socket, in octal", &DaemonOptions::socket_mode,
             parse_mode, [](std::uint32_t mode) {
               std::ostringstream text;
               text << '0' << std::oct << mode;
               return text.str();
             });
}

const std::vector<Row>& rows() {
  static const std::vector<Row> table = {
      text_row("listen", "HOST:PORT", "the address to listen on for other nodes; port 0 picks a free port",
               &DaemonOptions::listen, parse_address),
      join_row(),
      text_row("advertise", "HOST:PORT", "the address announced to other nodes, if it differs from the one listened on",
               &DaemonOptions::advertise, parse_address),
      socket_row(),
      mode_row(),
      memory_row(),
      row(
          "inline-bytes", Kind::kNumber, "SIZE", "objects up to this size are sent inside control messages",
          &DaemonOptions::inline_bytes, [](const std::string& text) { return parse_size(text); }, exact_size),
      text_row("token-file", "FILE", "file with the cluster token; defaults to the token in $HOPLITE_TOKEN",
               &DaemonOptions::token_file),
      flag_row("insecure", "allow listening beyond loopback without a token", &DaemonOptions::insecure),
      row("max-rate", Kind::kNumber, "RATE",
          "limit the rate at which this node sends to others, e.g. 500mbit or 10MB/s", &DaemonOptions::max_rate,
          parse_max_rate, [](std::uint64_t rate) { return rate == 0 ? "none" : std::to_string(rate) + "B/s"; }),
      row(
          "io-threads", Kind::kNumber, "N", "number of threads that transfer data", &DaemonOptions::io_threads,
          [](const std::string& text) { return parse_number<std::uint32_t>(text, 1, 64); },
          [](std::uint32_t n) { return std::to_string(n); }),
      flag_row("busy-poll", "spin instead of sleeping: lower latency at the cost of a core", &DaemonOptions::busy_poll),
      duration_row("ping-every", "how often to ping peers that this node depends on", &DaemonOptions::ping_every),
      duration_row("dead-after", "declare a peer dead after it has been silent for this long, to others as well",
                   &DaemonOptions::dead_after),
      row(
          "drain", Kind::kNumber, "TIME", "when told to stop, let running transfers finish for at most this long",
          &DaemonOptions::drain, [](const std::string& text) { return parse_duration(text); }, exact_duration),
      text_row("log-file", "FILE", "the log file; defaults to standard error, or SOCKET.log in the background",
               &DaemonOptions::log_file),
      text_row("log-level", "LEVEL", "debug, info, warn or error", &DaemonOptions::log_level, parse_level),
      flag_row("foreground", "stay in the foreground", &DaemonOptions::foreground),
      flag_row("until-eof", "stop when standard input ends, as a pipe does with the process that writes to it",
               &DaemonOptions::until_eof),
  };
  return table;
}

std::string help_with_default(const Row& row) {
  const auto texts = row.get(DaemonOptions{});
  if (row.kind == Kind::kFlag || texts.empty()) return row.help;
  return std::string(row.help) + " [" + texts.front() + "]";
}

void set_or_throw(const Row& row, DaemonOptions& options, const std::string& text) {
  if (auto result = row.set(options, text); !result)
    throw CLI::ValidationError(std::string("--") + row.name, result.error().message);
  options.given.insert(row.name);
}

// --- TOML

// The text of one value, as `set` takes it; nullopt for types that no key has.
std::optional<std::string> text_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* number = node.as_floating_point()) {
    std::ostringstream text;
    text << number->get();
    return text.str();
  }
  return std::nullopt;
}

bool type_fits(Kind kind, const toml::node& node) {
  switch (kind) {
    case Kind::kText:
    case Kind::kList: return node.is_string();
    case Kind::kNumber: return node.is_string() || node.is_number();
    case Kind::kFlag: return node.is_boolean();
  }
  return false;
}

const char* type_name(Kind kind) {
  switch (kind) {
    case Kind::kText: return "a string";
    case Kind::kNumber: return "a number or a string";
    case Kind::kList: return "a string or a list of strings";
    case Kind::kFlag: return "true or false";
  }
  return "";
}

Error at_key(const toml::node& node, std::string_view key, const std::string& message) {
  return {Code::kInvalidArgument,
          "line " + std::to_string(node.source().begin.line) + ", key \"" + std::string(key) + "\": " + message};
}

Result<void> set_from_toml(const Row& row, const toml::node& node, DaemonOptions& options) {
  if (row.kind == Kind::kList && node.is_array()) {
    for (const toml::node& element : *node.as_array())
      if (auto result = set_from_toml(row, element, options); !result) return result;
    return {};
  }
  if (!type_fits(row.kind, node)) return at_key(node, row.name, std::string("expected ") + type_name(row.kind));
  if (auto result = row.set(options, text_of(node).value()); !result)
    return at_key(node, row.name, result.error().message);
  return {};
}

Error unknown_key(const toml::node& node, std::string_view key) {
  std::string with_dashes(key);
  for (char& c : with_dashes)
    if (c == '_') c = '-';
  for (const Row& row : rows())
    if (with_dashes == row.name) return at_key(node, key, "unknown; did you mean \"" + with_dashes + "\"?");
  return at_key(node, key, "unknown; `hoplite start --help` lists the options");
}

Result<std::string> read_file(const std::string& path, std::uint64_t max_bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{Code::kInvalidArgument, "cannot read " + path + ": " + std::strerror(errno)};
  std::string text(max_bytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return Error{Code::kInvalidArgument, "cannot read " + path};
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > max_bytes) return Error{Code::kInvalidArgument, path + " is larger than " + format_size(max_bytes)};
  return text;
}

}  // namespace

void add_daemon_options(CLI::App& app, DaemonOptions& options) {
  app.add_option("--config", options.config,
                 "a TOML file with any of these options as keys; the command line takes precedence")
      ->type_name("FILE");
  for (const Row& row : rows()) {
    const std::string name = std::string("--") + row.name;
    if (row.kind == Kind::kFlag) {
      app.add_flag_callback(name, [&row, &options] { set_or_throw(row, options, "true"); }, row.help);
    } else if (row.kind == Kind::kList) {
      app.add_option_function<std::vector<std::string>>(
             name,
             [&row, &options](const std::vector<std::string>& texts) {
               for (const std::string& text : texts) set_or_throw(row, options, text);
             },
             row.help)
          ->type_name(row.value_name)
          ->allow_extra_args(false);
    } else {
      app.add_option_function<std::string>(
             name, [&row, &options](const std::string& text) { set_or_throw(row, options, text); },
             help_with_default(row))
          ->type_name(row.value_name);
    }
  }
}

std::vector<std::string> to_arguments(const DaemonOptions& options) {
  std::vector<std::string> arguments;
  if (!options.config.empty()) arguments.push_back("--config=" + options.config);
  for (const Row& row : rows()) {
    const auto texts = row.get(options);
    if (!options.given.contains(row.name) && texts == row.get(DaemonOptions{})) continue;
    for (const std::string& text : texts) {
      const std::string name = std::string("--") + row.name;
      arguments.push_back(row.kind == Kind::kFlag ? name : name + "=" + text);
    }
  }
  return arguments;
}

Result<void> parse_config(std::string_view text, DaemonOptions& options) {
  if (text.size() > kMaxConfigBytes)
    return Error{Code::kInvalidArgument, "a config file can have at most " + format_size(kMaxConfigBytes)};
  // toml++ 3.3 is undefined for some characters beyond ASCII in places where they are wrong.
  const auto other = std::ranges::find_if(text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
  if (other != text.end())
    return Error{Code::kInvalidArgument,
                 "line " + std::to_string(1 + std::count(text.begin(), other, '\n')) +
                     ": only ASCII is allowed here; in strings, write other characters as escapes, e.g. \\u00fc"};
  toml::table table;
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& error) {
    return Error{Code::kInvalidArgument,
                 "line " + std::to_string(error.source().begin.line) + ": " + std::string(error.description())};
  }
  for (const auto& [key, node] : table) {
    const Row* found = nullptr;
    for (const Row& row : rows())
      if (key.str() == row.name) found = &row;
    if (found == nullptr) return unknown_key(node, key.str());
    if (options.given.contains(key.str())) continue;
    if (auto result = set_from_toml(*found, node, options); !result) return result;
  }
  return {};
}

Result<void> load_config(const std::string& path, DaemonOptions& options) {
  const auto text = read_file(path, kMaxConfigBytes);
  if (!text) return text.error();
  if (auto result = parse_config(*text, options); !result)
    return Error{result.code(), path + ": " + result.error().message};
  return {};
}

std::string socket_path(const DaemonOptions& options) {
  return options.socket.empty() ? default_socket_path() : options.socket;
}

std::uint64_t store_bytes(const DaemonOptions& options) {
  return options.memory_bytes != 0 ? options.memory_bytes : machine_memory() / 100 * kDefaultMemoryPercent;
}

Result<std::string> read_token(const DaemonOptions& options) {
  std::string token;
  if (!options.token_file.empty()) {
    auto text = read_file(options.token_file, kMaxTokenBytes);
    if (!text) return text.error();
    token = *std::move(text);
    while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
    if (token.empty()) return Error{Code::kInvalidArgument, "the token file " + options.token_file + " is empty"};
  } else if (const char* from_environment = std::getenv("HOPLITE_TOKEN")) {
    token = from_environment;
  }
  return token;
}

}  // namespace hoplite
