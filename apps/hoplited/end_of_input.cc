#include "end_of_input.h"

#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace hoplite {

Result<void> EndOfInput::check() {
  struct stat info{};
  const bool waits = ::fstat(STDIN_FILENO, &info) == 0 &&
                     (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode) || ::isatty(STDIN_FILENO) == 1);
  if (waits) return {};
  return Error{Code::kInvalidArgument,
               "--until-eof needs a pipe, a socket or a terminal as standard input, and it is none of these"};
}

void EndOfInput::attach(Loop& loop, std::function<void()> on_end) {
  loop_ = &loop;
  on_end_ = std::move(on_end);
  loop.add(STDIN_FILENO, EPOLLIN, [this](std::uint32_t) { read_on(); });
}

// One read for each event, so that it never blocks: the descriptor may be shared, so it is not made non-blocking.
void EndOfInput::read_on() {
  char ignored[4096];
  const ssize_t n = ::read(STDIN_FILENO, ignored, sizeof ignored);
  if (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN))) return;
  detach();
  on_end_();
}

void EndOfInput::detach() {
  if (loop_ != nullptr) std::exchange(loop_, nullptr)->remove(STDIN_FILENO);
}

}  // namespace hoplite
