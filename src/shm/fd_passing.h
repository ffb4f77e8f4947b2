// Bytes with descriptors attached, over a connected unix stream socket (SCM_RIGHTS), and who is at its other end.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/unique_fd.h"
#include "hoplite/error.h"

namespace hoplite {

constexpr std::size_t kMaxPassedFds = 4;  // in one call: the arena's two, and room for more

// Sends some of `bytes` (at least one must be given); the descriptors, which stay the caller's, go with the first of
// them. Returns how many bytes were taken, or nullopt if the socket would block: nothing was sent then. Never SIGPIPE.
Result<std::optional<std::size_t>> send_with_fds(int socket, ByteView bytes, std::span<const int> fds);

struct BytesAndFds {
  std::size_t bytes = 0;  // 0: the peer has closed
  std::vector<UniqueFd> fds;
};

// Receives what is there, without waiting, and up to kMaxPassedFds descriptors (close-on-exec). nullopt if nothing is there.
// More descriptors than that, or than this process may have open, are lost.
Result<std::optional<BytesAndFds>> recv_with_fds(int socket, ByteSpan buffer);

// What the kernel says about the process at the other end, at the time it connected or listened.
std::optional<ucred> peer_of(int socket);

}  // namespace hoplite
