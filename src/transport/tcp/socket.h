// TCP sockets: numeric addresses, non-blocking, closed on exec.
#pragma once

#include <cerrno>
#include <string>

#include "base/address.h"
#include "base/unique_fd.h"
#include "hoplite/error.h"

namespace hoplite::tcp {

// kInvalidArgument for what is not a numeric address, kUnavailable with the reason if it cannot be listened on.
Result<UniqueFd> listen_on(const Address& address, int backlog);

// A connect that is under way: writable when it is decided, see connect_error. An errno instead of a descriptor if it
// has failed already; EINVAL for what is not a numeric address.
struct Connecting {
  UniqueFd fd;
  int error = 0;
};
Connecting start_connect(const Address& address);
// 0, or the errno of a connect that was under way.
int connect_error(int fd);

// The next waiting connection; invalid, with errno, if there is none.
UniqueFd accept_on(int listen_fd);

Address local_address(int fd);
// The other side's host, "?" if it is gone already.
std::string peer_host(int fd);

// Control connections send each message at once. Bulk connections keep little unsent data in the kernel, so that the
// scheduler decides late. Both notice a peer that vanished without a word; membership is faster, this is the backstop.
void tune_control(int fd);
void tune_bulk(int fd);

// Not now, but later: what a call on a non-blocking socket says.
inline bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

// Sends what is held back by MSG_MORE.
void push_held_tail(int fd);

}  // namespace hoplite::tcp
