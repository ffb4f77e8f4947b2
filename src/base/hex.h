// 64-bit numbers as 16 hexadecimal digits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hoplite {

std::string hex64(std::uint64_t value);
// nullopt unless `text` is exactly 16 hexadecimal digits.
std::optional<std::uint64_t> parse_hex64(std::string_view text);

}  // namespace hoplite
