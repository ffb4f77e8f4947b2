#include "shm/fd_passing.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/check.h"

namespace hoplite {
namespace {

struct alignas(cmsghdr) ControlBuffer {
  std::array<char, CMSG_SPACE(sizeof(int) * kMaxPassedFds)> bytes{};
};

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

Result<std::optional<std::size_t>> send_with_fds(int socket, ByteView bytes, std::span<const int> fds) {
  CHECK(!bytes.empty() && fds.size() <= kMaxPassedFds, bytes.size(), fds.size());
  iovec data{const_cast<std::byte*>(bytes.data()), bytes.size()};
  ControlBuffer control;
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.bytes.data();
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  ssize_t sent = -1;
  do {
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return std::optional<std::size_t>(static_cast<std::size_t>(sent));
  if (would_block(errno)) return std::optional<std::size_t>();
  return Error{Code::kUnavailable, std::string("sending on the local socket: ") + std::strerror(errno)};
}

Result<std::optional<BytesAndFds>> recv_with_fds(int socket, ByteSpan buffer) {
  CHECK(!buffer.empty());
  iovec data{buffer.data(), buffer.size()};
  ControlBuffer control;
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  ssize_t received = -1;
  do {
    received = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  } while (received < 0 && errno == EINTR);
  if (received < 0 && would_block(errno)) return std::optional<BytesAndFds>();
  if (received < 0)
    return Error{Code::kUnavailable, std::string("receiving on the local socket: ") + std::strerror(errno)};

  BytesAndFds result{static_cast<std::size_t>(received), {}};
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      result.fds.emplace_back(fd);
    }
  }
  return std::optional<BytesAndFds>(std::move(result));
}

std::optional<ucred> peer_of(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return peer;
}

}  // namespace hoplite
