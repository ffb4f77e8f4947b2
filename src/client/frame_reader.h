// Cuts what arrives on the client socket into frames, and collects the descriptors that come along.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/unique_fd.h"
#include "protocol/client_messages.h"

namespace hoplite::client {

class FrameReader {
 public:
  enum class Status { kBytes, kNothing, kClosed };
  struct Outcome {
    Status status = Status::kNothing;
    int error = 0;  // errno of a connection that failed; 0: the other side closed it
  };

  // One receive with `flags`. kNothing: would block, or was interrupted. Bytes of frames that next() returned are gone.
  Outcome receive(int socket, int flags);
  // The next whole frame; its body is valid until receive(). kInvalidArgument for a length that no daemon sends.
  Result<ipc::Frame> next();
  // The oldest descriptor that has arrived; empty if there is none.
  UniqueFd take_descriptor();

 private:
  void make_room();

  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::vector<UniqueFd> descriptors_;
};

}  // namespace hoplite::client
