// A program may be started without standard input, output or error. Then the first files it opens would get their numbers,
// and what is meant for a person would go to a peer.
#pragma once

#include <fcntl.h>

namespace hoplite {

// To be called before anything is opened. What is missing is replaced by something that cannot be used for its purpose, so
// that using it is an error and not silence.
inline void open_missing_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd)
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd) return;
}

}  // namespace hoplite
