#include "ready.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace hoplite {

ReadyPipe ReadyPipe::from_environment() {
  ReadyPipe ready;
  const char* text = std::getenv("HOPLITE_READY_FD");
  if (text == nullptr) return ready;
  int fd = -1;
  const char* end = text + std::strlen(text);
  const auto [parsed, error] = std::from_chars(text, end, fd);
  if (error == std::errc() && parsed == end && fd > STDERR_FILENO && ::fcntl(fd, F_SETFD, FD_CLOEXEC) == 0)
    ready.pipe_ = UniqueFd(fd);
  ::unsetenv("HOPLITE_READY_FD");
  return ready;
}

void ReadyPipe::ready(const std::string& socket, const std::string& address) {
  say("ready " + socket + " " + std::to_string(::getpid()) + " " + address);
}

bool ReadyPipe::error(const std::string& message) { return say("error " + message); }

bool ReadyPipe::say(std::string line) {
  if (pipe_.get() < 0) return false;
  line += '\n';
  // Whoever started us may have gone: then nobody needs to know.
  const auto written = ::write(pipe_.get(), line.data(), line.size());
  pipe_.reset();
  return written == static_cast<ssize_t>(line.size());
}

}  // namespace hoplite
