// A client that speaks bytes to a daemon's unix socket: what the library would never send.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "protocol/client_messages.h"

namespace hoplite::testing {

class RawClient {
 public:
  // connected() tells whether it worked: a daemon may have its hands full.
  explicit RawClient(const std::string& path)
      : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    connected_ = ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }

  bool connected() const { return connected_; }
  bool send(std::string_view bytes) {
    return ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  bool ask(std::uint64_t request, const client::Request& message) {
    std::string frame;
    client::encode_request(request, message, 0, frame);
    return send(frame);
  }
  // Whether the daemon has hung up; reads and forgets what has arrived.
  bool closed() {
    char buffer[65536];
    for (;;) {
      const ssize_t got = ::recv(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
      if (got > 0) continue;
      return got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
    }
  }
  // The same without reading: a client that never reads.
  bool hung_up() const {
    pollfd socket{socket_.get(), 0, 0};
    return ::poll(&socket, 1, 0) == 1 && (socket.revents & POLLHUP) != 0;
  }

 private:
  UniqueFd socket_;
  bool connected_ = false;
};

}  // namespace hoplite::testing
