#include "transport/tcp/io_thread.h"

#include <pthread.h>

#include <csignal>
#include <utility>

namespace hoplite::tcp {
namespace {

// Under a rate limit the wire is slow for certain: short turns also for a stream that is alone, so that the next choice is
// made soon.
std::uint64_t turn_bytes(const Shared& shared) {
  const Limits& limits = shared.options.limits;
  return shared.limiter.unlimited() ? limits.max_frame_bytes
                                    : std::min(limits.max_frame_bytes, limits.shared_frame_bytes);
}

}  // namespace

IoThread::IoThread(Shared& shared, Host& host, std::uint32_t index, const Identity& identity)
    : shared_(shared),
      host_(host),
      identity_(identity),
      lane_({index, shared.options.limits, turn_bytes(shared)}, *this, *this) {
  loop_.after_batch([this] { after_batch(); });
}

void IoThread::start() {
  // Signals are the main thread's business. A thread inherits the mask of the one that starts it.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { loop_.run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread_.native_handle(), "hoplite-io");
}

void IoThread::stop() {
  if (!thread_.joinable()) return;
  loop_.stop();
  thread_.join();
}

void IoThread::run(std::function<void(dataplane::Lane&)> command) {
  loop_.post([this, command = std::move(command)] { command(lane_); });
}

void IoThread::adopt(UniqueFd fd, NodeRef child, ChannelId channel) {
  // std::function must be copyable, a descriptor is not.
  auto connection = std::make_shared<UniqueFd>(std::move(fd));
  loop_.post([this, connection, child, channel] {
    lane_.adopt(child, channel, [&](dataplane::LinkUser& user) {
      return std::make_unique<TcpLink>(LinkContext{loop_, identity_, shared_}, std::move(*connection), user);
    });
  });
}

std::unique_ptr<dataplane::Link> IoThread::dial(NodeRef parent, const Address& address, dataplane::LinkUser& user) {
  return std::make_unique<TcpLink>(LinkContext{loop_, identity_, shared_}, parent, address, user);
}

void IoThread::wake(std::uint32_t lane, dataplane::BufferPtr buffer) {
  host_.run(lane, [buffer = std::move(buffer)](dataplane::Lane& other) { other.wake(*buffer); });
}

void IoThread::rename(const Identity& identity) {
  loop_.post([this, identity] { identity_ = identity; });
}

void IoThread::after_batch() {
  lane_.settle();
  // Spinning without transfers would only take a processor from those who have work.
  if (shared_.options.busy_poll) loop_.set_busy_poll(lane_.busy());
  arm_timer();
}

void IoThread::arm_timer() {
  const Time when = lane_.next_wakeup();
  if (when == timer_at_) return;
  loop_.cancel(timer_);
  timer_at_ = when;
  timer_ = when == Time::never() ? 0 : loop_.at(when, [this] {
    timer_ = 0;
    timer_at_ = Time::never();
    lane_.on_time();
  });
}

}  // namespace hoplite::tcp
