// Enumerators as text: their names in order, of enums that have a last_enumerator().
#pragma once

#include <cstddef>
#include <string_view>

namespace hoplite {

template <typename Enum, std::size_t N>
std::string_view name_in(const std::string_view (&names)[N], Enum value) {
  static_assert(N == static_cast<std::size_t>(last_enumerator(Enum{})) + 1, "each has its name");
  return value <= last_enumerator(Enum{}) ? names[static_cast<std::size_t>(value)] : "unknown";
}

}  // namespace hoplite
