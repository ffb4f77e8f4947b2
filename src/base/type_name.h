// The name of a type as it is written in the source, without its namespaces: for logs, traces and errors.
#pragma once

#include <string>
#include <string_view>
#include <variant>

namespace hoplite {

template <typename T>
constexpr std::string_view type_name() {
  // "... type_name() [with T = hoplite::ipc::Put; std::string_view = ...]", or "[T = hoplite::ipc::Put]" of clang.
  std::string_view name = __PRETTY_FUNCTION__;
  name.remove_prefix(name.find("T = ") + 4);
  name = name.substr(0, name.find_first_of(";]"));
  return name.substr(name.rfind(':') + 1);
}

template <typename... Ts>
std::string type_name(const std::variant<Ts...>& value) {
  return std::visit([]<typename T>(const T&) { return std::string(type_name<T>()); }, value);
}

}  // namespace hoplite
