// A client that speaks bytes to a daemon's unix socket: what the library would never send.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/unique_fd.h"
#include "cluster.h"
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
  bool send(std::string_view bytes) { return send_some(bytes) == bytes.size(); }
  // As many of the bytes as the socket takes now.
  std::size_t send_some(std::string_view bytes) {
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return sent < 0 ? 0 : static_cast<std::size_t>(sent);
  }
  bool ask(std::uint64_t request, const ipc::Request& message, std::string_view payload = {}) {
    return send(frame(request, message, payload));
  }
  static std::string frame(std::uint64_t request, const ipc::Request& message, std::string_view payload = {}) {
    std::string bytes;
    ipc::encode_request(request, message, payload.size(), bytes);
    return bytes.append(payload);
  }

  void hang_up() { socket_.reset(); }

  // The next reply under this number; waits for it. Nothing if the daemon has hung up or says nothing for long.
  std::optional<ipc::Reply> hear(std::uint64_t request) {
    bool gone = false;
    eventually([&] { return gone = closed(), gone || !replies_[request].empty(); });
    auto& replies = replies_[request];
    if (replies.empty()) return std::nullopt;
    ipc::Reply reply = std::move(replies.front());
    replies.pop_front();
    return reply;
  }
  template <typename T>
  std::optional<T> hear_a(std::uint64_t request) {
    const auto reply = hear(request);
    const T* wanted = reply ? std::get_if<T>(&*reply) : nullptr;
    return wanted == nullptr ? std::nullopt : std::optional(*wanted);
  }

  // How many replies have come under this number since the last call; they are gone.
  std::size_t forget(std::uint64_t request) { return std::exchange(replies_[request], {}).size(); }

  // Whether the daemon has hung up; reads what has arrived.
  bool closed() {
    char buffer[65536];
    for (;;) {
      const ssize_t got = ::recv(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
      if (got <= 0) return got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
      input_.append(buffer, static_cast<std::size_t>(got));
      take_replies();
    }
  }
  // The same without reading: a client that never reads.
  bool hung_up() const {
    pollfd socket{socket_.get(), 0, 0};
    return ::poll(&socket, 1, 0) == 1 && (socket.revents & POLLHUP) != 0;
  }

 private:
  void take_replies() {
    ByteView rest = as_bytes(input_);
    for (auto frame = ipc::next_frame(rest, 1 << 30); frame.ok() && frame->complete;
         frame = ipc::next_frame(rest, 1 << 30)) {
      auto reply = ipc::decode_reply(frame->body);
      if (reply) replies_[frame->request].push_back(std::move(*reply));
    }
    input_.erase(0, input_.size() - rest.size());
  }

  UniqueFd socket_;
  bool connected_ = false;
  std::string input_;  // the front of a reply whose rest has not arrived
  std::map<std::uint64_t, std::deque<ipc::Reply>> replies_;
};

}  // namespace hoplite::testing
