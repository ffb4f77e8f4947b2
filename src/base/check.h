// CHECK(condition, values...): a bug if false. Stays on in release builds; prints the place, the condition and the values
// (also ids and enumerators), then aborts. It is for our own mistakes only: hostile input and failing systems are Results
// and events.
#pragma once

#include <cstdint>
#include <sstream>
#include <string>
#include <type_traits>

namespace hoplite {

// Called with place, condition and values instead of aborting. One that returns aborts after all; the simulator's throws, so
// that a run ends with its seed.
using CheckHandler = void (*)(const std::string& what);
void set_check_handler(CheckHandler handler);

namespace internal {

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& values);

template <typename Value>
void print_value(std::ostream& out, const Value& value) {
  if constexpr (requires { value.to_string(); }) out << ' ' << value.to_string();
  else if constexpr (std::is_enum_v<Value>) out << ' ' << static_cast<std::int64_t>(value);
  else out << ' ' << value;
}

template <typename... Values>
[[noreturn]] void check_failed_with(const char* file, int line, const char* condition, const Values&... values) {
  std::ostringstream text;
  (print_value(text, values), ...);
  check_failed(file, line, condition, text.str());
}

}  // namespace internal
}  // namespace hoplite

#define CHECK(condition, ...)                                                                            \
  do {                                                                                                   \
    if (!(condition)) [[unlikely]]                                                                       \
      ::hoplite::internal::check_failed_with(__FILE__, __LINE__, #condition __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)
