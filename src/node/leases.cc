#include "node/leases.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace hoplite {

Leases::~Leases() {
  for (const auto& [client, lease] : leases_)
    if (lease.socket) loop_.remove(lease.socket.get());
}

Result<UniqueFd> Leases::begin(ClientKey client, pid_t pid) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
    return Error{Code::kUnavailable,
                 std::string("the daemon cannot make a socket for the client's views: ") + std::strerror(errno)};
  Lease& lease = leases_[client];
  lease.socket = UniqueFd(ends[0]);
  lease.tenant.pid = pid;
  loop_.add(ends[0], EPOLLIN, [this, client](std::uint32_t events) { on_event(client, events); });
  return UniqueFd(ends[1]);
}

void Leases::disconnected(ClientKey client) {
  const auto it = leases_.find(client);
  if (it == leases_.end()) return;
  it->second.tenant.attached = false;
  if (it->second.ended) forget(client);
}

void Leases::on_event(ClientKey client, std::uint32_t events) {
  const int socket = leases_.at(client).socket.get();
  if (!read_packets(client, socket) || (events & (EPOLLHUP | EPOLLERR)) == 0) return;
  loop_.remove(socket);
  Lease& lease = leases_.at(client);
  lease.socket.reset();
  lease.ended = true;
  // Requests that it sent before may still be in the other socket: a put, say. They come first.
  if (!lease.tenant.attached) forget(client);
}

bool Leases::read_packets(ClientKey client, int socket) {
  std::vector<CopyKey> copies(LibraryLimits{}.max_releases);
  for (std::size_t i = 0; i < limits_.packets_per_turn; ++i) {
    const ssize_t got = ::recv(socket, copies.data(), copies.size() * sizeof(CopyKey), MSG_DONTWAIT);
    // It has nothing more to say, or sent an empty packet, which looks the same: from now on only its end counts.
    if (got == 0) loop_.modify(socket, 0);
    if (got <= 0) return true;
    const auto count = static_cast<std::size_t>(got) / sizeof(CopyKey);
    handler_.on_given_back(client, {copies.begin(), copies.begin() + static_cast<std::ptrdiff_t>(count)});
  }
  return false;
}

void Leases::forget(ClientKey client) {
  leases_.erase(client);
  handler_.on_lease_ended(client);
}

}  // namespace hoplite
