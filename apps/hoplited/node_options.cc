#include "node_options.h"

#include <arpa/inet.h>
#include <netinet/in.h>

namespace hoplite {
namespace {

constexpr std::uint16_t kDefaultPort = 7411;

bool is_loopback(const std::string& host) {
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  return ::inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

bool is_address(const std::string& host) {
  in6_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 || ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

bool is_any(const std::string& host) {
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return v4.s_addr == INADDR_ANY;
  in6_addr v6{};
  return ::inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_UNSPECIFIED(&v6);
}

// Members dial each other: a daemon on loopback can be a member only of a cluster on this machine.
Result<void> check_reachable(const NodeOptions& node) {
  const Address& told = node.advertise.empty() ? node.listen : node.advertise;
  if (!is_loopback(told.host)) return {};
  for (const Address& member : node.join) {
    if (is_loopback(member.host) || member.host == "localhost") continue;
    const std::string port = ":" + std::to_string(told.port);
    return Error{Code::kInvalidArgument, "--join " + member.to_string() +
                                             ": the members there could not reach this node, which listens at " +
                                             told.to_string() + ". Say where they can: --listen ADDRESS" + port +
                                             ", with this machine's address in their network, or --listen 0.0.0.0" +
                                             port + " --advertise ADDRESS" + port};
  }
  return {};
}

Result<void> parse_addresses(const DaemonOptions& options, NodeOptions& node) {
  auto listen = Address::parse(options.listen, kDefaultPort);
  if (!listen) return listen.error();
  node.listen = *listen;
  if (!is_address(node.listen.host))
    return Error{Code::kInvalidArgument,
                 "--listen needs an IP address such as 10.0.0.1:7411; \"" + node.listen.host + "\" is not one"};
  if (!options.advertise.empty()) {
    auto advertise = Address::parse(options.advertise, node.listen.port);
    if (!advertise) return advertise.error();
    if (is_any(advertise->host))
      return Error{Code::kInvalidArgument,
                   "--advertise " + options.advertise + " is not an address that other nodes can connect to"};
    node.advertise = *advertise;
  }
  if (is_any(node.listen.host) && node.advertise.empty())
    return Error{
        Code::kInvalidArgument,
        "--listen " + options.listen + " is not an address that other nodes can connect to: add --advertise HOST:PORT"};
  for (const std::string& text : options.join) {
    auto member = Address::parse(text, kDefaultPort);
    if (!member) return member.error();
    node.join.push_back(*member);
  }
  return check_reachable(node);
}

Limits limits_for(const DaemonOptions& options) {
  Limits limits;
  limits.inline_bytes = options.inline_bytes;
  limits.drain = options.drain;
  limits.ping_every = options.ping_every;
  // The default's split between asking directly and asking through others is kept.
  const Duration both = limits.ping_timeout + limits.indirect_timeout;
  const double scale = options.dead_after.seconds() / both.seconds();
  limits.ping_timeout = Duration::from_seconds(limits.ping_timeout.seconds() * scale);
  limits.indirect_timeout = options.dead_after - limits.ping_timeout;
  return limits;
}

}  // namespace

Result<NodeOptions> node_options(const DaemonOptions& options) {
  NodeOptions node;
  if (auto parsed = parse_addresses(options, node); !parsed) return parsed.error();

  auto token = read_token(options);
  if (!token) return token.error();
  node.token = *token;
  if (node.token.empty() && !options.insecure && !is_loopback(node.listen.host))
    return Error{Code::kNotAuthorised,
                 "listening on " + node.listen.to_string() +
                     " without a cluster token would let anybody read and write: use --token-file FILE, "
                     "set HOPLITE_TOKEN, or add --insecure if that is what you want"};

  if (options.ping_every >= options.dead_after)
    return Error{Code::kInvalidArgument, "--ping-every (" + format_duration(options.ping_every) +
                                             ") must be shorter than --dead-after (" +
                                             format_duration(options.dead_after) + ")"};
  node.limits = limits_for(options);
  // Half a message leaves room for the fields around the bytes, whatever they are.
  if (const std::uint64_t most = node.limits.max_message_bytes / 2; options.inline_bytes > most)
    return Error{Code::kInvalidArgument, "--inline-bytes can be at most " + format_size(most)};

  node.socket = socket_path(options);
  node.socket_mode = options.socket_mode;
  node.memory_bytes = store_bytes(options);
  node.max_rate = options.max_rate;
  node.io_threads = options.io_threads;
  node.busy_poll = options.busy_poll;
  node.software_version = HOPLITE_VERSION;
  return node;
}

}  // namespace hoplite
