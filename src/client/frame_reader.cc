#include "client/frame_reader.h"

#include <sys/resource.h>

#include <cstring>

#include "base/limits.h"
#include "shm/fd_passing.h"

namespace hoplite::client {
namespace {

constexpr std::size_t kBufferBytes = 64 * kKiB;  // one receive takes a few hundred replies

}  // namespace

std::string no_descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return "this process has as many descriptors open as it may (" + std::to_string(limit.rlim_cur) +
         "); close some or raise `ulimit -n`, and try again";
}

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

Result<bool> FrameReader::receive(int socket) {
  make_room();
  auto received = recv_with_fds(socket, std::span(buffer_).subspan(end_));
  if (!received) return received.error();
  if (!received->has_value()) return false;
  if ((*received)->bytes == 0) return Error{Code::kUnavailable, "it closed the connection"};
  for (UniqueFd& descriptor : (*received)->fds)  // more than we ever need are closed right here
    if (descriptors_.size() < kMaxPassedFds) descriptors_.push_back(std::move(descriptor));
  end_ += (*received)->bytes;
  return true;
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
