// CHECK(condition, values...): a bug if false. Stays on in release builds; prints the place, the condition and the values,
// then aborts. It is for our own mistakes only: hostile input and failing systems are Results and events.
#pragma once

#include <sstream>
#include <string>

namespace hoplite {

// Called with place, condition and values instead of aborting. One that returns aborts after all; the simulator's throws, so
// that a run ends with its seed.
using CheckHandler = void (*)(const std::string& what);
void set_check_handler(CheckHandler handler);

namespace internal {

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& values);

template <typename... Values>
[[noreturn]] void check_failed_with(const char* file, int line, const char* condition, const Values&... values) {
  std::ostringstream text;
  ((text << ' ' << values), ...);
  check_failed(file, line, condition, text.str());
}

}  // namespace internal
}  // namespace hoplite

#define CHECK(condition, ...)                                                                            \
  do {                                                                                                   \
    if (!(condition)) [[unlikely]]                                                                       \
      ::hoplite::internal::check_failed_with(__FILE__, __LINE__, #condition __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)
