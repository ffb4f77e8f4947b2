#include "client/forks.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>

#include "base/check.h"
#include "client/connection.h"

namespace hoplite::client {
namespace {

// There is one list for the process, because there is one fork() for it.
struct Registry {
  std::mutex mutex;
  std::vector<Connection*> connections;
};
Registry& registry() {
  static Registry* const for_ever = new Registry;  // connections may end later than static objects
  return *for_ever;
}

void before_fork() {
  registry().mutex.lock();
  for (Connection* connection : registry().connections) connection->before_fork();
}
void after_fork_in_parent() {
  for (Connection* connection : registry().connections) connection->after_fork_in_parent();
  registry().mutex.unlock();
}
void after_fork_in_child() {
  for (Connection* connection : registry().connections) connection->after_fork_in_child();
  registry().mutex.unlock();
}

}  // namespace

void tell_of_forks(Connection& connection) {
  static std::once_flag once;
  std::call_once(once, [] {
    const int error = ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    CHECK(error == 0, error);
  });
  const std::lock_guard lock(registry().mutex);
  registry().connections.push_back(&connection);
}

void tell_no_more(Connection& connection) {
  const std::lock_guard lock(registry().mutex);
  std::erase(registry().connections, &connection);
}

void Forks::before() {
  ++count_;
  const auto watched =
      std::ranges::count_if(children_, [](const Child& child) { return static_cast<bool>(child.done); });
  int ends[2] = {-1, -1};
  if (static_cast<std::size_t>(watched) < kLimits.max_watched_forks && ::pipe2(ends, O_CLOEXEC) == 0) {
    children_.push_back({count_, UniqueFd(ends[0]), {}});
    theirs_ = UniqueFd(ends[1]);
    return;
  }
  // One entry is enough for all of whom we do not hear.
  const auto unwatched = std::ranges::find_if(children_, [](const Child& child) { return !child.done; });
  if (unwatched == children_.end()) children_.push_back({count_, UniqueFd(), {}});
  else unwatched->number = count_;
}

void Forks::after_in_parent() { theirs_.reset(); }

void Forks::after_in_child() {
  children_.clear();
  ours_ = std::move(theirs_);
}

bool Forks::defer(CopyKey copy, std::uint64_t born) {
  const auto sees = std::ranges::find_if(children_, [&](const Child& child) { return child.number > born; });
  if (sees == children_.end()) return false;
  sees->deferred.emplace_back(copy, born);
  return true;
}

std::vector<int> Forks::descriptors() const {
  std::vector<int> all;
  for (const Child& child : children_)
    if (child.done) all.push_back(child.done.get());
  return all;
}

std::vector<std::pair<CopyKey, std::uint64_t>> Forks::child_done(int descriptor) {
  const auto child = std::ranges::find_if(children_, [&](const Child& c) { return c.done.get() == descriptor; });
  CHECK(child != children_.end(), descriptor);
  const auto deferred = std::move(child->deferred);
  children_.erase(child);
  return deferred;
}

}  // namespace hoplite::client
