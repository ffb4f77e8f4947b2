#include "base/bytes.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace hoplite {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

struct Quantity {
  double number = 0;
  std::string unit;  // lower case, without spaces
};

Result<Quantity> parse_quantity(std::string_view text) {
  Quantity quantity;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), quantity.number);
  if (error != std::errc() || !std::isfinite(quantity.number) || quantity.number < 0)
    return Error{Code::kInvalidArgument, "'" + std::string(text) + "' does not start with a number"};
  for (const char* c = stop; c != text.data() + text.size(); ++c)
    if (*c != ' ') quantity.unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
  return quantity;
}

template <std::size_t N>
Result<double> scaled(std::string_view text, const std::array<Unit, N>& units, std::string_view what) {
  auto quantity = parse_quantity(text);
  if (!quantity) return quantity.error();
  for (const Unit& unit : units)
    if (quantity->unit == unit.name) {
      const double value = quantity->number * unit.factor;
      if (value < 9.2e18) return value;
      return Error{Code::kInvalidArgument, "'" + std::string(text) + "' is too large"};
    }
  return Error{Code::kInvalidArgument,
               "'" + std::string(text) + "' is not a " + std::string(what) + ": unknown unit '" + quantity->unit + "'"};
}

constexpr std::array<Unit, 15> kSizes{{{"", 1},
                                       {"b", 1},
                                       {"k", 1024},
                                       {"kib", 1024},
                                       {"kb", 1e3},
                                       {"m", 1048576},
                                       {"mib", 1048576},
                                       {"mb", 1e6},
                                       {"g", 1073741824},
                                       {"gib", 1073741824},
                                       {"gb", 1e9},
                                       {"t", 1099511627776},
                                       {"tib", 1099511627776},
                                       {"tb", 1e12},
                                       {"bytes", 1}}};
constexpr std::array<Unit, 11> kRates{{{"bit", 0.125},
                                       {"kbit", 125},
                                       {"mbit", 125e3},
                                       {"gbit", 125e6},
                                       {"kbit/s", 125},
                                       {"mbit/s", 125e3},
                                       {"gbit/s", 125e6},
                                       {"b/s", 1},
                                       {"kb/s", 1e3},
                                       {"mb/s", 1e6},
                                       {"gb/s", 1e9}}};
constexpr std::array<Unit, 6> kDurations{{{"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"m", 60}, {"h", 3600}}};

std::string printed(const char* format, double value, const char* unit) {
  char text[48];
  const int length = std::snprintf(text, sizeof text, format, value);
  return std::string(text, static_cast<std::size_t>(length)) + " " + unit;
}

}  // namespace

Result<std::uint64_t> parse_size(std::string_view text) {
  auto bytes = scaled(text, kSizes, "size");
  if (!bytes) return bytes.error();
  return static_cast<std::uint64_t>(std::llround(*bytes));
}

Result<std::uint64_t> parse_rate(std::string_view text) {
  if (text == "none" || text == "0") return std::uint64_t{0};
  auto rate = scaled(text, kRates, "rate");
  if (!rate) return rate.error();
  return static_cast<std::uint64_t>(std::llround(*rate));
}

Result<Duration> parse_duration(std::string_view text) {
  auto seconds = scaled(text, kDurations, "duration");
  if (!seconds) return seconds.error();
  if (*seconds > 9e9) return Error{Code::kInvalidArgument, "'" + std::string(text) + "' is too long"};
  return Duration{std::llround(*seconds * 1e9)};  // not cut off: 50 us are 49,999.99 ns in binary
}

std::string format_size(std::uint64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) value /= 1024, ++unit;
  const bool whole = value == std::floor(value);
  return printed(whole ? "%.0f" : "%.1f", value, kUnits[unit]);
}

std::string format_rate(double bytes_per_second) {
  const double bits = bytes_per_second * 8;
  if (bits >= 1e9) return printed("%.2f", bits / 1e9, "Gbit/s");
  if (bits >= 1e6) return printed("%.1f", bits / 1e6, "Mbit/s");
  return printed("%.0f", bits / 1e3, "kbit/s");
}

std::string format_duration(Duration duration) {
  if (duration >= Duration::s(1)) return printed("%.2f", duration.seconds(), "s");
  if (duration >= Duration::ms(1)) return printed("%.1f", static_cast<double>(duration.ns) / 1e6, "ms");
  return printed("%.0f", static_cast<double>(duration.ns) / 1e3, "us");
}

}  // namespace hoplite
