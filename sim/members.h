// The data members of a plain struct and their names, as they are written in the source: so that a trace can print every
// message, command and event without a line of code for each.
//
// C++20 has no reflection. An aggregate can be taken apart by a structured binding, and a compiler writes out a template's
// arguments, so also the member that a pointer points at, in __PRETTY_FUNCTION__ (base/type_name.h uses that, too).
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <utility>

namespace hoplite::sim {

struct Anything {
  template <typename T>
  operator T() const;  // NOLINT(google-explicit-constructor): stands for a member's initial value
};

template <typename T, typename... Values>
constexpr std::size_t count_members() {
  if constexpr (requires { T{Values{}..., Anything{}}; }) return count_members<T, Values..., Anything>();
  else return sizeof...(Values);
}

// References to all of them.
template <typename T>
constexpr auto members(T& t) {
  constexpr std::size_t n = count_members<T>();
  static_assert(n <= 14 || n == 17 || n == 20, "a line for so many members is missing");
  // clang-format off
  if constexpr (n == 0) { return std::tuple<>(); }
  else if constexpr (n == 1) { auto& [a] = t; return std::tie(a); }
  else if constexpr (n == 2) { auto& [a, b] = t; return std::tie(a, b); }
  else if constexpr (n == 3) { auto& [a, b, c] = t; return std::tie(a, b, c); }
  else if constexpr (n == 4) { auto& [a, b, c, d] = t; return std::tie(a, b, c, d); }
  else if constexpr (n == 5) { auto& [a, b, c, d, e] = t; return std::tie(a, b, c, d, e); }
  else if constexpr (n == 6) { auto& [a, b, c, d, e, f] = t; return std::tie(a, b, c, d, e, f); }
  else if constexpr (n == 7) { auto& [a, b, c, d, e, f, g] = t; return std::tie(a, b, c, d, e, f, g); }
  else if constexpr (n == 8) { auto& [a, b, c, d, e, f, g, h] = t; return std::tie(a, b, c, d, e, f, g, h); }
  else if constexpr (n == 9) { auto& [a, b, c, d, e, f, g, h, i] = t; return std::tie(a, b, c, d, e, f, g, h, i); }
  else if constexpr (n == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j);
  }
  else if constexpr (n == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k);
  }
  else if constexpr (n == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l);
  }
  else if constexpr (n == 13) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m);
  }
  else if constexpr (n == 14) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o);
  }
  else if constexpr (n == 17) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r);
  }
  else if constexpr (n == 20) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, u, v] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, u, v);
  }
  // clang-format on
}

template <typename T>
struct Somewhere {
  static inline const T object{};  // its members' addresses are constants
};

// The last word of what the compiler calls the template's argument: "T::object.name)" or "hoplite::Life::kDead".
constexpr std::string_view last_word(std::string_view pretty_function) {
  const std::string_view argument = pretty_function.substr(0, pretty_function.find_first_of(";]"));
  const std::size_t end = argument.find_last_not_of(')') + 1;
  const std::size_t begin = argument.find_last_of(":.)", end - 1) + 1;
  return argument.substr(begin, end - begin);
}

template <const auto* kMember>
constexpr std::string_view member_name() {
  return last_word(__PRETTY_FUNCTION__);
}

template <auto kValue>
constexpr std::string_view value_name() {
  return last_word(__PRETTY_FUNCTION__);
}

// As it is written, without the k. Of enums with values from 0 to 15.
template <typename Enum>
std::string_view enumerator_name(Enum value) {
  static constexpr auto kNames = []<std::size_t... I>(std::index_sequence<I...>) {
    return std::array{value_name<static_cast<Enum>(I)>()...};
  }(std::make_index_sequence<16>());
  return kNames.at(static_cast<std::size_t>(value)).substr(1);
}

template <typename T, typename Visit>
void for_each_member(const T& value, Visit visit) {
  const auto all = members(value);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (visit(member_name<&std::get<I>(members(Somewhere<T>::object))>(), std::get<I>(all)), ...);
  }(std::make_index_sequence<count_members<T>()>());
}

}  // namespace hoplite::sim
