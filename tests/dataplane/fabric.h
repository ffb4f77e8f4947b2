// Data planes that can reach each other, over one kind of link.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/data_plane.h"

namespace hoplite {

struct NodeOptions {
  std::uint32_t lanes = 1;
  bool slow = false;  // it sends a few megabytes in some tenths of a second at least, or step by step
  Limits limits;
};

// One node; destroyed, it is dead, and others see its links break.
class FabricNode {
 public:
  virtual ~FabricNode() = default;
  virtual dataplane::DataPlane& plane() = 0;
  virtual Address address() const = 0;
  virtual std::uint64_t bytes_sent() const = 0;
};

class Fabric {
 public:
  virtual ~Fabric() = default;
  virtual std::unique_ptr<FabricNode> make_node(NodeRef self, const NodeOptions& options, ByteSpan arena,
                                                std::function<void(DataPlaneEvent)> on_event) = 0;
  virtual Time now() const = 0;
  // Lets something happen, for a few milliseconds at most.
  virtual void run_some() = 0;
  // The same, but what lanes report need not be heard yet.
  virtual void run_lanes() = 0;
};

struct FabricKind {
  std::string name;
  std::function<std::unique_ptr<Fabric>()> make;
  friend void PrintTo(const FabricKind& kind, std::ostream* out) { *out << kind.name; }
};

FabricKind tcp_fabric();
FabricKind memory_fabric();
FabricKind simulated_fabric();
std::vector<FabricKind> all_fabrics();

}  // namespace hoplite
