#include "transport/tcp/dial.h"

#include <sys/epoll.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace hoplite::tcp {
namespace {

Loss loss_of(int connect_error) { return connect_error == ECONNREFUSED ? Loss::kRefused : Loss::kTimedOut; }

}  // namespace

Dial::Dial(Loop& loop, const Identity& self, Options options, std::function<void(Outcome)> done)
    : loop_(loop),
      handshake_(Handshake::dialler(self, options.role, options.whom)),
      greeting_(options.limits.greeting),
      done_(std::move(done)) {
  handshake_.on_claim(std::move(options.on_claim));
  Connecting connecting = start_connect(options.address);
  fd_ = std::move(connecting.fd);
  connect_error_ = connecting.error;
  if (!fd_) {
    timer_ = loop_.at(loop_.now(), [this] { on_connected(); });
    return;
  }
  loop_.add(fd_.get(), EPOLLOUT, [this](std::uint32_t) { connected_ ? on_readable() : on_connected(); });
  set_timer(options.limits.connect);
}

Dial::~Dial() {
  loop_.cancel(timer_);
  if (fd_) loop_.remove(fd_.get());
}

void Dial::on_connected() {
  if (fd_) connect_error_ = connect_error(fd_.get());
  if (connect_error_ != 0)
    return finish(HandshakeFailure{loss_of(connect_error_), false, std::strerror(connect_error_)});
  connected_ = true;
  loop_.modify(fd_.get(), EPOLLIN);
  set_timer(greeting_);
  on_readable();
}

void Dial::on_readable() {
  switch (handshake_.advance(fd_.get())) {
    case Handshake::State::kGoing: return;
    case Handshake::State::kDone: return finish(std::nullopt);
    case Handshake::State::kFailed: return finish(handshake_.failure());
  }
}

void Dial::expire() {
  timer_ = 0;
  finish(HandshakeFailure{Loss::kTimedOut, false,
                          connected_ ? "no answer to the greeting" : "the connection attempt timed out"});
}

void Dial::finish(std::optional<HandshakeFailure> failure) {
  loop_.cancel(std::exchange(timer_, 0));
  if (fd_) loop_.remove(fd_.get());
  Outcome outcome{std::move(fd_), handshake_.peer().node, std::move(failure)};
  if (outcome.failure) outcome.fd.reset();
  const auto done = std::move(done_);
  done(std::move(outcome));  // may have destroyed this
}

void Dial::set_timer(Duration timeout) {
  loop_.cancel(timer_);
  timer_ = loop_.at(monotonic_now() + timeout, [this] { expire(); });
}

}  // namespace hoplite::tcp
