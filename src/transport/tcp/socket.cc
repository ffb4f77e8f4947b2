#include "transport/tcp/socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/bytes.h"

namespace hoplite::tcp {
namespace {

// Longer than any pause that membership forgives: by then the peer has been declared dead.
constexpr int kVanishedAfterSeconds = 30;
constexpr int kKeepaliveIdleSeconds = 10;
constexpr int kKeepaliveEverySeconds = 5;
constexpr int kKeepaliveProbes = (kVanishedAfterSeconds - kKeepaliveIdleSeconds) / kKeepaliveEverySeconds;

// Enough to keep 10 Gbit/s busy while the I/O thread is elsewhere for 100 us; at 500 Mbit/s a newcomer waits 2 ms.
constexpr int kUnsentBytes = 128 * static_cast<int>(kKiB);

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

Result<SocketAddress> to_socket_address(const Address& address) {
  SocketAddress out;
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (inet_pton(AF_INET, address.host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(address.port);
    std::memcpy(&out.storage, &v4, out.size = sizeof v4);
  } else if (inet_pton(AF_INET6, address.host.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(address.port);
    std::memcpy(&out.storage, &v6, out.size = sizeof v6);
  } else {
    return Error{Code::kInvalidArgument, "'" + address.host + "' is not a numeric IP address"};
  }
  return out;
}

Address from_socket_address(const SocketAddress& from) {
  std::array<char, NI_MAXHOST> host{};
  getnameinfo(from.get(), from.size, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST);
  sockaddr_in v4{};
  std::memcpy(&v4, &from.storage, sizeof v4);  // the port is at the same place for both families
  return {host.data(), ntohs(v4.sin_port)};
}

// Options that a kernel may lack are not worth failing for.
void set_option(int fd, int level, int name, int value) { setsockopt(fd, level, name, &value, sizeof value); }

// Connections live long. BBR, where it is the system's choice, holds each of them back for 200 ms every 10 s to measure the
// path, which costs a relay and all below it a tenth of a second. Set before a connection begins (what is accepted
// inherits it); set later, BBR's pacing would stay. Where it is not available, the system's choice stays.
UniqueFd open_socket(const SocketAddress& address) {
  static constexpr std::string_view kCongestionControl = "cubic";
  UniqueFd fd(socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd) setsockopt(fd.get(), IPPROTO_TCP, TCP_CONGESTION, kCongestionControl.data(), kCongestionControl.size());
  return fd;
}

std::string reason(int error) { return std::strerror(error); }  // NOLINT(concurrency-mt-unsafe): glibc's is thread-safe

void notice_vanished_peers(int fd) {
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, kKeepaliveIdleSeconds);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, kKeepaliveEverySeconds);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, kKeepaliveProbes);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kVanishedAfterSeconds * 1000);
}

}  // namespace

Result<UniqueFd> listen_on(const Address& address, int backlog) {
  const auto where = to_socket_address(address);
  if (!where) return where.error();
  const auto failed = [&](int error) {
    const std::string name = address.to_string();
    if (error == EADDRINUSE) return Error{Code::kUnavailable, "address " + name + " is in use"};
    return Error{Code::kUnavailable, "cannot listen on " + name + ": " + reason(error)};
  };
  UniqueFd fd = open_socket(*where);
  if (!fd) return failed(errno);
  set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);  // a restarted daemon takes its port back at once
  if (bind(fd.get(), where->get(), where->size) != 0 || listen(fd.get(), backlog) != 0) return failed(errno);
  return fd;
}

Connecting start_connect(const Address& address) {
  const auto where = to_socket_address(address);
  if (!where) return {{}, EINVAL};
  UniqueFd fd = open_socket(*where);
  if (!fd) return {{}, errno};
  if (connect(fd.get(), where->get(), where->size) != 0 && errno != EINPROGRESS) return {{}, errno};
  return {std::move(fd), 0};
}

int connect_error(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

UniqueFd accept_on(int listen_fd) {
  return UniqueFd(accept4(listen_fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

Address local_address(int fd) {
  SocketAddress out;
  out.size = sizeof out.storage;
  if (getsockname(fd, out.get(), &out.size) != 0) return {};
  return from_socket_address(out);
}

std::string peer_host(int fd) {
  SocketAddress out;
  out.size = sizeof out.storage;
  if (getpeername(fd, out.get(), &out.size) != 0) return "?";
  return from_socket_address(out).host;
}

void tune_control(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, kUnsentBytes);
  notice_vanished_peers(fd);
}

void tune_bulk(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, kUnsentBytes);
  notice_vanished_peers(fd);
}

void push_held_tail(int fd) { set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1); }

}  // namespace hoplite::tcp
