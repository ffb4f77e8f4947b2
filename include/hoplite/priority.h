// How urgent a transfer is, compared with others on the same links.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hoplite {

// A higher class goes first wherever transfers meet, and every lower class that waits still gets a twentieth of the link, so
// that nothing starves. Travels between nodes: values keep their meaning.
enum class Priority : std::uint8_t { kLow, kNormal, kHigh };
constexpr Priority last_enumerator(Priority) { return Priority::kHigh; }

// "low", "normal", "high". The parser knows exactly these.
std::string_view to_string(Priority priority);
std::optional<Priority> parse_priority(std::string_view text);

}  // namespace hoplite
