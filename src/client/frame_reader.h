// Cuts what arrives on the client socket into frames, and collects the descriptors that come along.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "protocol/client_messages.h"

namespace hoplite::client {

// Why a descriptor that the daemon passed is not there, and what to do.
std::string no_descriptors();

class FrameReader {
 public:
  // One receive, without waiting. False: nothing is there. An error: the connection has ended, and why. Bytes of frames that
  // next() returned are gone.
  Result<bool> receive(int socket);
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
