#include "node/client_connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "shm/fd_passing.h"

namespace hoplite {
namespace {

// Buffers of a connection that once had much to send are given back; this much is kept to spare the allocator.
constexpr std::size_t kKeptCapacity = 16 * kKiB;

}  // namespace

ClientConnection::ClientConnection(ClientKey key, UniqueFd socket, const ucred& peer)
    : key_(key), socket_(std::move(socket)), peer_(peer) {}

Result<ByteView> ClientConnection::receive(ByteSpan scratch) {
  CHECK(kept_.size() < scratch.size(), kept_.size(), scratch.size());
  if (!kept_.empty()) std::memcpy(scratch.data(), kept_.data(), kept_.size());
  const ssize_t got = ::recv(fd(), scratch.data() + kept_.size(), scratch.size() - kept_.size(), MSG_DONTWAIT);
  if (got == 0) return Error{Code::kUnavailable, "the client closed the connection"};
  if (got < 0 && errno != EAGAIN && errno != EINTR) return Error{Code::kUnavailable, std::strerror(errno)};
  return ByteView(scratch.data(), kept_.size() + static_cast<std::size_t>(got < 0 ? 0 : got));
}

void ClientConnection::keep(ByteView rest) {
  if (rest.empty() && kept_.capacity() > kKeptCapacity) kept_ = {};
  kept_.assign(reinterpret_cast<const char*>(rest.data()), rest.size());
}

void ClientConnection::queue(std::uint64_t request, const ipc::Reply& reply) {
  if (!deaf_) ipc::encode_reply(request, reply, output_);
}

void ClientConnection::queue_descriptor(int fd) {
  if (std::ranges::count(descriptors_, fd) > 0) return;
  CHECK(descriptors_.size() < kMaxPassedFds);
  descriptors_.push_back(fd);
}

void ClientConnection::queue_descriptor(UniqueFd fd) {
  queue_descriptor(fd.get());
  own_descriptors_.push_back(std::move(fd));
}

void ClientConnection::deafen() {
  deaf_ = true;
  output_ = {};
  sent_ = 0;
  growth.clear();
  descriptors_.clear();
  own_descriptors_.clear();
}

ClientConnection::Flush ClientConnection::flush() {
  while (sent_ < output_.size()) {
    const ByteView rest = as_bytes(output_).subspan(sent_);
    const auto taken = send_with_fds(fd(), rest, descriptors_);
    if (!taken) return Flush::kBroken;
    if (!taken->has_value()) {
      // Forget what was sent once it is the larger part, so that a slow reader does not keep it all.
      if (sent_ > output_.size() / 2) output_.erase(0, std::exchange(sent_, 0));
      return Flush::kBlocked;
    }
    descriptors_.clear();
    own_descriptors_.clear();
    sent_ += **taken;
  }
  sent_ = 0;
  output_.clear();
  if (output_.capacity() > kKeptCapacity) output_ = {};
  return Flush::kDone;
}

}  // namespace hoplite
