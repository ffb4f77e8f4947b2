// What every function of the extension needs: errors that cross into Python, waits that Ctrl-C ends, forks that are noticed.
#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "hoplite/client.h"

namespace hoplite::python {

namespace nb = nanobind;

// Becomes the exception of hoplite._errors that belongs to the code.
struct Failure {
  Error error;
};

template <typename T>
T value_or_throw(Result<T> result) {
  if (!result) throw Failure{result.error()};
  return *std::move(result);
}
inline void value_or_throw(const Result<void>& result) {
  if (!result) throw Failure{result.error()};
}

// Seconds; None: as long as it takes. Anything that is no time, NaN for example, is kInvalidArgument.
Timeout to_timeout(std::optional<double> seconds);

// How often this process, or an ancestor, has forked since the module was loaded. Objects made before the last fork belong
// to another process: their threads do not exist here, and their locks may be held for ever.
unsigned fork_generation();

// Whether objects may still be given up: not when the interpreter is gone, for then nothing can be released any more.
bool interpreter_alive();

// Waits without the GIL, and looks at signals in between: Ctrl-C ends the wait with its exception. Python runs signal
// handlers on its main thread only, so the others need not look often.
template <typename T>
Result<T> wait_for(Future<T>& future) {
  const auto look = ::getpid() == ::gettid() ? std::chrono::milliseconds(20) : std::chrono::milliseconds(1000);
  while (true) {
    bool ready = false;
    {
      const nb::gil_scoped_release release;
      ready = future.wait_for(look);
    }
    if (ready) return future.get();
    if (PyErr_CheckSignals() != 0) {
      future.cancel();
      throw nb::python_error();
    }
  }
}

template <typename T>
T wait_for_value(Future<T> future) {
  if constexpr (std::is_void_v<T>) value_or_throw(wait_for(future));
  else return value_or_throw(wait_for(future));
}

// A Python callable that other threads may call once and let go of.
class Callback {
 public:
  explicit Callback(nb::object callable) : callable_(std::move(callable)) {}
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;
  ~Callback();

  // With the error, an exception, as the only argument if there is one, else with what `convert` makes of the value.
  template <typename T, typename Convert>
  void operator()(Result<T> result, Convert convert) {
    if (!interpreter_alive()) return;
    const nb::gil_scoped_acquire acquire;
    try {
      if (result) callable_(convert(*std::move(result)), nb::none());
      else callable_(nb::none(), exception_of(result.error()));
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("hoplite: a callback");
    }
    callable_.reset();  // while we have the GIL
  }

 private:
  static nb::object exception_of(const Error& error);

  nb::object callable_;
};

nb::object exception_of(const Error& error);

}  // namespace hoplite::python
