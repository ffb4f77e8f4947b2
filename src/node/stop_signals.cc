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
  sigaddset(&stop, SIGHUP);  // the terminal is gone
  CHECK(::pthread_sigmask(SIG_BLOCK, &stop, nullptr) == 0);
  descriptor_ = UniqueFd(::signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK));
  CHECK(descriptor_.get() >= 0, errno);
}

StopSignals::~StopSignals() { detach(); }

void StopSignals::attach(Loop& loop, std::function<void()> on_signal) {
  loop_ = &loop;
  loop.add(descriptor_.get(), EPOLLIN, [this, on_signal = std::move(on_signal)](std::uint32_t) {
    signalfd_siginfo signal{};
    while (::read(descriptor_.get(), &signal, sizeof signal) == sizeof signal) on_signal();
  });
}

void StopSignals::detach() {
  if (loop_ != nullptr) std::exchange(loop_, nullptr)->remove(descriptor_.get());
}

}  // namespace hoplite
