#include "interop.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <pthread.h>

#include <atomic>
#include <cmath>

namespace hoplite::python {
namespace {

std::atomic<unsigned> generation = 0;
[[maybe_unused]] const int watching_forks = ::pthread_atfork(nullptr, nullptr, [] { ++generation; });

// Longer than any process lives; adding it to a clock does not overflow.
constexpr double kEternity = 1e9;

}  // namespace

Timeout to_timeout(std::optional<double> seconds) {
  if (!seconds) return {};
  if (std::isnan(*seconds)) throw Failure{{Code::kInvalidArgument, "the timeout is not a number of seconds"}};
  if (*seconds > kEternity) return {};
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(std::max(*seconds, 0.0)));
}

unsigned fork_generation() { return generation; }

bool interpreter_alive() { return nb::is_alive() && Py_IsInitialized() != 0; }

nb::object exception_of(const Error& error) {
  return nb::module_::import_("hoplite._errors").attr("from_code")(code_name(error.code), error.message);
}

nb::object Callback::exception_of(const Error& error) { return python::exception_of(error); }

Callback::~Callback() {
  if (!callable_.is_valid()) return;
  if (!interpreter_alive()) {
    (void)callable_.release();
    return;
  }
  const nb::gil_scoped_acquire acquire;
  callable_.reset();
}

}  // namespace hoplite::python
