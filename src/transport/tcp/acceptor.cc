#include "transport/tcp/acceptor.h"

#include <fcntl.h>
#include <sys/epoll.h>

#include <cerrno>
#include <utility>

namespace hoplite::tcp {
namespace {

constexpr int kAcceptsPerEvent = 64;  // a flood of connections does not keep established peers waiting

UniqueFd open_reserve() { return UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

}  // namespace

Acceptor::Acceptor(Shared& shared, UniqueFd listener, const Identity& identity, Accepted accepted)
    : shared_(shared),
      loop_(shared.loop),
      listener_(std::move(listener)),
      reserve_(open_reserve()),
      identity_(identity),
      accepted_(std::move(accepted)) {
  loop_.add(listener_.get(), EPOLLIN, [this](std::uint32_t) { on_acceptable(); });
}

Acceptor::~Acceptor() {
  drop_pending();
  loop_.remove(listener_.get());
}

void Acceptor::drop_pending() {
  for (auto& [number, pending] : pending_) loop_.remove(pending.fd.get());
  pending_.clear();
  set_timer();
}

void Acceptor::on_acceptable() {
  for (int i = 0; i < kAcceptsPerEvent; ++i) {
    UniqueFd fd = accept_on(listener_.get());
    if (fd) {
      begin(std::move(fd));
    } else if (errno == EMFILE || errno == ENFILE) {
      return shed_one();
    } else if (errno != ECONNABORTED && errno != EINTR) {
      return;
    }
  }
}

// Out of descriptors. A connection that stays in the backlog would wake us for ever, so it is taken and closed.
void Acceptor::shed_one() {
  reserve_.reset();
  if (accept_on(listener_.get())) ++shared_.counters.rejected;
  reserve_ = open_reserve();
  shared_.strangers.refused("somebody", "no file descriptors are left (see ulimit -n)");
  if (!pending_.empty()) reject(pending_.begin()->first, "no file descriptors are left", false);
}

void Acceptor::begin(UniqueFd fd) {
  if (pending_.size() >= shared_.options.limits.sockets.max_handshakes)
    reject(pending_.begin()->first, "too many connections have not identified themselves", true);
  const std::uint64_t number = ++last_number_;
  const int raw = fd.get();
  pending_.emplace(number, Pending{std::move(fd), Handshake::acceptor(identity_),
                                   loop_.now() + shared_.options.limits.sockets.handshake});
  loop_.add(raw, EPOLLIN, [this, number](std::uint32_t) { on_readable(number); });
  if (pending_.size() == 1) set_timer();
}

void Acceptor::on_readable(std::uint64_t number) {
  const auto it = pending_.find(number);
  Pending& pending = it->second;
  switch (pending.handshake.advance(pending.fd.get())) {
    case Handshake::State::kGoing: return;
    case Handshake::State::kFailed: {
      const HandshakeFailure& failure = pending.handshake.failure();
      return reject(number, failure.why, failure.tell_operator);
    }
    case Handshake::State::kDone: break;
  }
  loop_.remove(pending.fd.get());
  Pending done = std::move(pending);
  pending_.erase(it);
  set_timer();
  accepted_(std::move(done.fd), done.handshake.peer());
}

void Acceptor::reject(std::uint64_t number, const std::string& why, bool tell_operator) {
  const auto it = pending_.find(number);
  if (tell_operator) {
    ++shared_.counters.rejected;
    shared_.strangers.refused(peer_host(it->second.fd.get()), why);
  }
  loop_.remove(it->second.fd.get());
  pending_.erase(it);
  set_timer();
}

void Acceptor::expire() {
  while (!pending_.empty() && pending_.begin()->second.deadline <= loop_.now())
    reject(pending_.begin()->first, "it did not identify itself in time", true);
  set_timer();
}

void Acceptor::set_timer() {
  loop_.cancel(std::exchange(timer_, 0));
  if (!pending_.empty()) timer_ = loop_.at(pending_.begin()->second.deadline, [this] { expire(); });
}

}  // namespace hoplite::tcp
