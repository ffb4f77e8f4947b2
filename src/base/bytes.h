// Byte spans and sizes as people write them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/time.h"
#include "hoplite/error.h"

namespace hoplite {

using ByteView = std::span<const std::byte>;
using ByteSpan = std::span<std::byte>;

inline ByteView as_bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;
constexpr std::uint64_t kGiB = 1024 * kMiB;

constexpr std::uint64_t round_up(std::uint64_t n, std::uint64_t unit) { return (n + unit - 1) / unit * unit; }

// "4GiB", "512 MiB", "1000", "1.5GB" (decimal units are powers of 1000).
Result<std::uint64_t> parse_size(std::string_view text);
// "500mbit", "1.5gbit", "10MB/s", "0" or "none" = no limit; the result is bytes per second.
Result<std::uint64_t> parse_rate(std::string_view text);
// "5s", "200ms", "1.5", "2m" (a bare number is seconds).
Result<Duration> parse_duration(std::string_view text);

// "1.5 GiB", "12 B".
std::string format_size(std::uint64_t bytes);
// "1.50 Gbit/s" from bytes per second.
std::string format_rate(double bytes_per_second);
// "1.2 s", "350 ms", "12 us".
std::string format_duration(Duration duration);

}  // namespace hoplite
