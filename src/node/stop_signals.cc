#include "node/stop_signals.h"

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/check.h"

namespace hoplite {

StopSignals::StopSignals() {
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  sigaddset(&stop, SIGINT);
  sigaddset(&stop, SIGHUP);
  CHECK(::pthread_sigmask(SIG_BLOCK, &stop, nullptr) == 0);
  descriptor_ = UniqueFd(::signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK));
  CHECK(descriptor_.get() >= 0, errno);
}

StopSignals::~StopSignals() { detach(); }

void StopSignals::attach(Loop& loop, Handlers handlers) {
  loop_ = &loop;
  loop.add(descriptor_.get(), EPOLLIN, [this, handlers = std::move(handlers)](std::uint32_t) {
    signalfd_siginfo signal{};
    while (::read(descriptor_.get(), &signal, sizeof signal) == sizeof signal)
      signal.ssi_signo == SIGHUP ? handlers.hang_up() : handlers.stop();
  });
}

void StopSignals::detach() {
  if (loop_ != nullptr) std::exchange(loop_, nullptr)->remove(descriptor_.get());
}

}  // namespace hoplite
