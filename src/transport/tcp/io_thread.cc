#include "transport/tcp/io_thread.h"

#include <pthread.h>

#include <csignal>
#include <string>
#include <utility>

namespace hoplite::tcp {

IoThread::IoThread(const Options& options, const Identity& identity)
    : worker_(Worker::Environment{loop_, options.index, options.busy_poll, options.limits, options.limiter,
                                  options.meters, options.counters, options.deliver, options.wake_other},
              identity) {}

IoThread::~IoThread() { stop(); }

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

void IoThread::run(std::function<void(Worker&)> command) {
  loop_.post([this, command = std::move(command)] { command(worker_); });
}

}  // namespace hoplite::tcp
