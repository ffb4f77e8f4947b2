// What happened, in words a person can follow.
//
// Nodes are n1, n2, ... ("n2'" is the second process at n2's address, "n2#1" the first life after a wrong verdict of death);
// objects have short names. Off by default, and then nothing is formatted.
#pragma once

#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "core/agent/events.h"
#include "sim/hosts.h"

namespace hoplite::sim {

class Names {
 public:
  void add_node(NodeId id, NodeIndex node, std::uint32_t start);
  void add_object(const ObjectId& id, std::string name) { objects_.try_emplace(id, std::move(name)); }

  std::string node(NodeId id) const;
  std::string node(const NodeRef& ref) const;
  // An object that was not given a name gets one: o1, o2, ...
  std::string object(const ObjectId& id);

 private:
  std::map<NodeId, std::string> nodes_;
  std::map<ObjectId, std::string> objects_;
  std::size_t unnamed_ = 0;
};

std::string node_name(NodeIndex node);  // "n1" for the first

std::string describe(const Message& message, Names& names);
std::string describe(const ipc::Request& request, Names& names);
std::string describe(const ipc::Reply& reply, Names& names);
// Only for events and effects of the data plane, and Log; empty for the others, which are told where they happen.
std::string describe(const Event& event, Names& names);
std::string describe(const Effect& effect, Names& names);

class Trace {
 public:
  explicit Trace(std::ostream* out = nullptr) : out_(out) {}
  bool on() const { return out_ != nullptr; }
  Names& names() { return names_; }

  // "  1.234567 n2   text"
  void say(Time now, const std::string& who, const std::string& text);
  // What happens on a node: text, numbers, nodes, and what can be described. Put into words only if somebody reads them.
  template <typename... Parts>
  void tell(Time now, NodeIndex node, const Parts&... parts) {
    if (!on()) return;
    if (const std::string text = (words(parts) + ...); !text.empty()) say(now, node_name(node), text);
  }

 private:
  std::string words(const std::string& text) { return text; }
  std::string words(std::uint64_t number) { return std::to_string(number); }
  std::string words(const NodeRef& node) { return names_.node(node); }
  template <typename T>
    requires requires(const T& value, Names& names) { describe(value, names); }
  std::string words(const T& value) {
    return describe(value, names_);
  }

  std::ostream* out_;
  Names names_;
};

}  // namespace hoplite::sim
