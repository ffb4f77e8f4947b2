// Time as the core sees it: nanoseconds on a monotonic axis whose zero means nothing. The core is handed `now`; it never
// asks a clock.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace hoplite {

struct Duration {
  std::int64_t ns = 0;

  auto operator<=>(const Duration&) const = default;
  constexpr Duration operator+(Duration other) const { return {ns + other.ns}; }
  constexpr Duration operator-(Duration other) const { return {ns - other.ns}; }
  constexpr Duration operator*(std::int64_t factor) const { return {ns * factor}; }
  constexpr Duration operator/(std::int64_t divisor) const { return {ns / divisor}; }
  constexpr double seconds() const { return static_cast<double>(ns) * 1e-9; }

  static constexpr Duration us(std::int64_t n) { return {n * 1000}; }
  static constexpr Duration ms(std::int64_t n) { return {n * 1'000'000}; }
  static constexpr Duration s(std::int64_t n) { return {n * 1'000'000'000}; }
  static constexpr Duration from_seconds(double s) { return {static_cast<std::int64_t>(s * 1e9)}; }
};

struct Time {
  std::int64_t ns = 0;

  auto operator<=>(const Time&) const = default;
  constexpr Duration operator-(Time other) const { return {ns - other.ns}; }
  // Saturates, so that "never" plus anything stays "never".
  constexpr Time operator+(Duration d) const {
    if (d.ns > 0 && ns > std::numeric_limits<std::int64_t>::max() - d.ns) return never();
    return {ns + d.ns};
  }

  static constexpr Time never() { return {std::numeric_limits<std::int64_t>::max()}; }
};

}  // namespace hoplite
