// A client as Python holds it: may be closed while other threads use it, and is of no use after a fork.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "interop.h"

namespace hoplite::python {

class Session {
 public:
  // Connects, without the GIL.
  Session(const std::string& socket, const std::string& token, std::optional<double> timeout, bool busy_poll);

  // Every call that is under way fails; views stay valid.
  void close();
  bool closed();
  bool forked() const { return generation_ != fork_generation(); }

  // The client, for the length of a call; a Failure if it was closed, or belongs to the process that forked this one.
  std::shared_ptr<Client> use();

  // Starts a call, without the GIL, and waits for its value. The client is not held while it waits: somebody may close it.
  template <typename Start>
  auto call(Start start) {
    return wait_for_value(begin(std::move(start)));
  }
  template <typename Start>
  auto begin(Start start) {
    const nb::gil_scoped_release release;
    return start(*use());
  }

 private:
  const unsigned generation_ = fork_generation();
  std::mutex mutex_;
  std::shared_ptr<Client> client_;
};

void bind_session(nb::module_& module);
void bind_objects(nb::class_<Session>& session);      // objects.cc
void bind_collectives(nb::class_<Session>& session);  // collectives.cc
void bind_facts(nb::class_<Session>& session);        // facts.cc

// A call whose result goes to a callback.
template <typename T, typename Convert>
RunningCall call_back(Future<T> future, nb::object callable, Convert convert) {
  auto callback = std::make_shared<Callback>(std::move(callable));
  const nb::gil_scoped_release release;
  return std::move(future).then(
      [callback = std::move(callback), convert](Result<T> result) { (*callback)(std::move(result), convert); });
}

}  // namespace hoplite::python
