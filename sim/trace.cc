#include "sim/trace.h"

#include <algorithm>
#include <concepts>
#include <iomanip>

#include "base/type_name.h"
#include "sim/members.h"

namespace hoplite::sim {
namespace {

// Prints the members of any message, command or event: `name value`, and nothing of those that say nothing (nil, zero, false,
// empty, no timeout).
class Printer {
 public:
  explicit Printer(Names& names) : names_(names) {}

  template <typename T>
  std::string members(const T& value) {
    std::string text;
    for_each_member(value, [&](std::string_view name, const auto& member) {
      const std::string shown = show(name, member);
      if (!shown.empty()) text += (text.empty() ? "" : " ") + std::string(name) + (shown == kTrue ? "" : " " + shown);
    });
    return text;
  }

 private:
  static constexpr std::string_view kTrue = "true";  // a flag's name says it

  std::string show(std::string_view, bool value) { return std::string(value ? kTrue : ""); }
  std::string show(std::string_view name, std::integral auto value) {
    if (value == 0 || (name.ends_with("_ns") && value == static_cast<decltype(value)>(kNoTimeout))) return "";
    // Versions are random: four digits tell two of them apart well enough to read.
    if (name.ends_with("version")) return "v" + hex64(value).substr(12);
    if (name.ends_with("_ns")) return format_duration(Duration{static_cast<std::int64_t>(value)});
    if (std::is_same_v<decltype(value), std::uint32_t> && value == kAllSlices) return "all";
    return std::to_string(value);
  }
  template <typename Enum>
    requires std::is_enum_v<Enum>
  std::string show(std::string_view, Enum value) {
    return std::string(enumerator_name(value));
  }
  // Not all of them are text.
  std::string show(std::string_view, const std::string& text) {
    const bool readable = std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
    if (text.empty()) return "";
    return readable ? "'" + text + "'" : "(" + std::to_string(text.size()) + " B)";
  }
  std::string show(std::string_view, Duration value) { return value == Duration{} ? "" : format_duration(value); }
  std::string show(std::string_view, const ObjectId& id) { return id.is_nil() ? "" : names_.object(id); }
  std::string show(std::string_view, NodeId id) { return id.is_nil() ? "" : names_.node(id); }
  std::string show(std::string_view, const NodeRef& ref) { return ref.id.is_nil() ? "" : names_.node(ref); }
  std::string show(std::string_view, const Address&) { return ""; }  // nodes have names
  std::string show(std::string_view, const ValidBytes& valid) {
    return std::to_string(valid.count()) + "/" + std::to_string(valid.slice().size());
  }
  template <typename T>
  std::string show(std::string_view name, const std::vector<T>& items) {
    std::string text;
    for (const T& item : items) text += (text.empty() ? "" : ", ") + show(name, item);
    return text.empty() ? "" : "[" + text + "]";
  }
  template <typename T>
    requires std::is_aggregate_v<T>
  std::string show(std::string_view, const T& value) {
    const std::string text = members(value);
    return text.empty() ? "" : "{" + text + "}";
  }

  Names& names_;
};

template <typename T, typename Variant>
constexpr bool kIsOneOf = false;
template <typename T, typename... Ts>
constexpr bool kIsOneOf<T, std::variant<Ts...>> = (std::is_same_v<T, Ts> || ...);

// The type's name and the members; nothing of types that are not among `Told`.
template <typename Told, typename Variant>
std::string print(const Variant& variant, Names& names) {
  return std::visit(
      [&]<typename T>(const T& value) -> std::string {
        if constexpr (kIsOneOf<T, Told>) return std::string(type_name<T>()) + " " + Printer(names).members(value);
        else return "";
      },
      variant);
}

}  // namespace

void Names::add_node(NodeId id, NodeIndex node, std::uint32_t start) {
  nodes_[id] = node_name(node) + std::string(start - 1, '\'');
}

std::string Names::node(NodeId id) const {
  const auto it = nodes_.find(id);
  return it == nodes_.end() ? id.to_string() : it->second;
}

std::string Names::node(const NodeRef& ref) const {
  return ref.incarnation == 0 ? node(ref.id) : node(ref.id) + "#" + std::to_string(ref.incarnation);
}

std::string Names::object(const ObjectId& id) {
  if (id.is_nil()) return "a new object";
  const auto it = objects_.find(id);
  if (it != objects_.end()) return it->second;
  return objects_[id] = "o" + std::to_string(++unnamed_);
}

void Trace::say(Time now, const std::string& who, const std::string& text) {
  if (!on()) return;
  *out_ << std::fixed << std::setprecision(6) << std::setw(11) << static_cast<double>(now.ns) * 1e-9 << "  "
        << std::left << std::setw(5) << who << std::right << " " << text << "\n";
}

std::string node_name(NodeIndex node) { return "n" + std::to_string(node + 1); }

std::string describe(const Message& message, Names& names) { return print<Message>(message, names); }
std::string describe(const ipc::Request& request, Names& names) { return print<ipc::Request>(request, names); }
std::string describe(const ipc::Reply& reply, Names& names) { return print<ipc::Reply>(reply, names); }
std::string describe(const Event& event, Names& names) { return print<DataPlaneEvent>(event, names); }

std::string describe(const Effect& effect, Names& names) {
  using Others = std::variant<effect::Disconnect, effect::Log>;
  return print<DataPlaneCommand>(effect, names) + print<Others>(effect, names);
}

}  // namespace hoplite::sim
