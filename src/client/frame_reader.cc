#include "client/frame_reader.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/limits.h"

namespace hoplite::client {
namespace {

constexpr std::size_t kBufferBytes = 64 * kKiB;  // one receive takes a few hundred replies
constexpr std::size_t kMaxDescriptors = 4;       // a daemon sends two in all

}  // namespace

void FrameReader::make_room() {
  if (begin_ == end_) begin_ = end_ = 0;
  if (buffer_.size() > 4 * kBufferBytes && begin_ == end_) buffer_ = std::vector<std::byte>(kBufferBytes);
  if (buffer_.empty()) buffer_.resize(kBufferBytes);
  if (end_ < buffer_.size()) return;
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  // A frame larger than the buffer: next() has checked its length already.
  if (end_ == buffer_.size()) buffer_.resize(2 * buffer_.size());
}

FrameReader::Outcome FrameReader::receive(int socket, int flags) {
  make_room();
  iovec target{.iov_base = buffer_.data() + end_, .iov_len = buffer_.size() - end_};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
  msghdr message{};
  message.msg_iov = &target;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t received = ::recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  if (received == 0) return {Status::kClosed, 0};
  if (received < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return {Status::kNothing, 0};
    return {Status::kClosed, errno};
  }
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
      UniqueFd descriptor(fd);  // more than we ever need are closed right here
      if (descriptors_.size() < kMaxDescriptors) descriptors_.push_back(std::move(descriptor));
    }
  }
  end_ += static_cast<std::size_t>(received);
  return {Status::kBytes, 0};
}

Result<ipc::Frame> FrameReader::next() {
  ByteView rest(buffer_.data() + begin_, end_ - begin_);
  auto frame = ipc::next_frame(rest, LibraryLimits{}.max_reply_bytes);
  if (frame && frame->complete) begin_ = end_ - rest.size();
  return frame;
}

UniqueFd FrameReader::take_descriptor() {
  if (descriptors_.empty()) return UniqueFd();
  UniqueFd oldest = std::move(descriptors_.front());
  descriptors_.erase(descriptors_.begin());
  return oldest;
}

}  // namespace hoplite::client
