// TCP sockets: numeric addresses, non-blocking, closed on exec.
#pragma once

#include <string>
#include <utility>

#include "base/address.h"
#include "hoplite/error.h"

namespace hoplite::tcp {

// Owns a descriptor.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

// kInvalidArgument for what is not a numeric address, kUnavailable with the reason if it cannot be listened on.
Result<UniqueFd> listen_on(const Address& address);

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

// Sends what is held back by MSG_MORE.
void push_held_tail(int fd);

}  // namespace hoplite::tcp
