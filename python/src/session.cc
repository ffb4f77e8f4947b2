#include "session.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

namespace hoplite::python {
namespace {

// Closing waits for callbacks, which need the GIL. What belongs to another process is left alone.
std::shared_ptr<Client> shared(Client client) {
  const auto end = [generation = fork_generation()](Client* ended) {
    if (generation != fork_generation()) return;
    if (interpreter_alive() && PyGILState_Check() != 0) {
      const nb::gil_scoped_release release;
      delete ended;
    } else {
      delete ended;
    }
  };
  return {new Client(std::move(client)), end};
}

}  // namespace

Session::Session(const std::string& socket, const std::string& token, std::optional<double> timeout, bool busy_poll) {
  ConnectOptions options{.socket = socket, .token = token, .timeout = to_timeout(timeout), .busy_poll = busy_poll};
  const nb::gil_scoped_release release;
  client_ = shared(value_or_throw(Client::connect(options)));
}

void Session::close() {
  std::shared_ptr<Client> closed;
  if (forked()) return;
  const std::lock_guard lock(mutex_);
  std::swap(closed, client_);
}

bool Session::closed() {
  if (forked()) return true;
  const std::lock_guard lock(mutex_);
  return client_ == nullptr;
}

std::shared_ptr<Client> Session::use() {
  if (forked())
    throw Failure{
        {Code::kUnavailable,
         "this process was forked from the one that the client belongs to: call hoplite.init(), or make another "
         "Client, in this process"}};
  const std::lock_guard lock(mutex_);
  if (!client_) throw Failure{{Code::kUnavailable, "the client was closed"}};
  return client_;
}

void bind_session(nb::module_& module) {
  nb::class_<RunningCall>(module, "RunningCall")
      .def("cancel", &RunningCall::cancel, nb::call_guard<nb::gil_scoped_release>());
  nb::class_<Session> session(module, "Session");
  session
      .def(nb::init<const std::string&, const std::string&, std::optional<double>, bool>(), nb::arg("socket"),
           nb::arg("token"), nb::arg("timeout").none(), nb::arg("busy_poll"))
      .def("close", &Session::close)
      .def_prop_ro("closed", &Session::closed)
      .def_prop_ro("forked", &Session::forked)
      .def("new_id", [](Session& self) { return self.begin([](Client& client) { return client.new_id(); }); });
  bind_objects(session);
  bind_collectives(session);
  bind_facts(session);
}

}  // namespace hoplite::python
