#include "node/resolver.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace hoplite {
namespace {

Resolver::Answer look_up(const Address& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(name.port);
  if (const int error = ::getaddrinfo(name.host.c_str(), port.c_str(), &hints, &found); error != 0)
    return {{}, std::string("the name cannot be resolved: ") + ::gai_strerror(error)};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, &::freeaddrinfo);
  Resolver::Answer answer;
  for (const addrinfo* one = all.get(); one != nullptr; one = one->ai_next) {
    std::array<char, NI_MAXHOST> host{};
    if (::getnameinfo(one->ai_addr, one->ai_addrlen, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) == 0)
      answer.addresses.push_back({host.data(), name.port});
  }
  if (answer.addresses.empty()) answer.why = "the name has no address";
  return answer;
}

}  // namespace

bool is_numeric(const std::string& host) {
  in6_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 || ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

struct Resolver::Shared {
  struct Question {
    Address name;
    std::function<void(Answer)> done;
  };
  std::mutex mutex;
  std::condition_variable asked;
  std::deque<Question> questions;  // guarded by mutex
  Loop* loop = nullptr;            // guarded by mutex; null when the resolver has gone

  static void work(const std::shared_ptr<Shared>& self) {
    std::unique_lock lock(self->mutex);
    while (true) {
      self->asked.wait(lock, [&] { return self->loop == nullptr || !self->questions.empty(); });
      if (self->loop == nullptr) return;
      Question question = std::move(self->questions.front());
      self->questions.pop_front();
      lock.unlock();
      Answer answer = look_up(question.name);
      lock.lock();
      if (self->loop == nullptr) return;
      self->loop->post([weak = std::weak_ptr(self), done = std::move(question.done), answer = std::move(answer)] {
        // On the loop's thread, where the resolver goes, too.
        if (const auto still = weak.lock(); still && still->loop != nullptr) done(answer);
      });
    }
  }
};

Resolver::~Resolver() {
  if (!shared_) return;
  const std::lock_guard lock(shared_->mutex);
  shared_->loop = nullptr;
  shared_->asked.notify_all();
}

void Resolver::resolve(const Address& name, std::function<void(Answer)> done) {
  const bool first = !shared_;
  if (first) {
    shared_ = std::make_shared<Shared>();
    shared_->loop = &loop_;
  }
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->questions.push_back({name, std::move(done)});
  }
  shared_->asked.notify_one();
  if (first) std::thread([shared = shared_] { Shared::work(shared); }).detach();
}

}  // namespace hoplite
