// Who a node is. The identity is random per start, never the address; each return from a (wrong) verdict of death is a
// new incarnation.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

#include "base/hex.h"
#include "base/version.h"

namespace hoplite {

struct NodeId {
  std::uint64_t value = 0;

  auto operator<=>(const NodeId&) const = default;
  bool is_nil() const { return value == 0; }
  std::string to_string() const { return hex64(value); }
};

// For users, to whom nodes are names; empty for none.
inline std::string name_of(NodeId node) { return node.is_nil() ? std::string() : node.to_string(); }

// One life of a node.
struct NodeRef {
  NodeId id;
  std::uint32_t incarnation = 0;

  auto operator<=>(const NodeRef&) const = default;
  std::string to_string() const { return id.to_string() + "#" + std::to_string(incarnation); }
};

}  // namespace hoplite

template <>
struct std::hash<hoplite::NodeId> {
  std::size_t operator()(const hoplite::NodeId& id) const noexcept { return static_cast<std::size_t>(id.value); }
};

template <>
struct std::hash<hoplite::NodeRef> {
  std::size_t operator()(const hoplite::NodeRef& ref) const noexcept {
    return static_cast<std::size_t>(ref.id.value + ref.incarnation);
  }
};
