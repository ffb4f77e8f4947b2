// Who should send which slice of an object to whom: the interface that homes ask, and the choice among its kinds.
//
//   SlicePlanner     a chain or a tree for each slice, whatever finishes a receiver earliest; the usual one, of one slice
//   TwoTreesPlanner  two slices with a tree each, for crowds
//   RingPlanner      slices that come into being on different nodes, as those of an allreduce do
//
// A plan is advice: parents check by their real watermarks whether they can serve a child (core/agent/serves.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/limits.h"
#include "base/link_cost.h"
#include "base/time.h"
#include "protocol/messages.h"

namespace hoplite {

// Chooses parents for one object.
class ParentPlanner {
 public:
  virtual ~ParentPlanner() = default;
  // It has all bytes, or they come into being there.
  virtual void add_root(NodeId node) = 0;
  // One parent for each slice that `want` asks for (all, if it names none), nil where there is none.
  virtual std::vector<NodeId> choose(Time now, NodeId receiver, const Want& want) = 0;
  // It has no bytes of this object (any more).
  virtual void remove(NodeId node) = 0;
  // `receiver` got the object at this pace.
  virtual void measured(NodeId receiver, std::uint64_t bytes_per_second) = 0;
  virtual void check_invariants() const = 0;
};

std::vector<NodeId> nodes_of(const std::vector<CutOff>& cut_off);

// What is to be sent.
struct Demand {
  std::uint64_t bytes = 0;
  std::uint32_t slices = 0;  // that copies are cut into already; 0 = none is, and the plan decides
  bool striped = false;      // the slices come into being on different nodes, which are the roots of the plan
};

// Among whom, and at what cost.
struct Surroundings {
  std::span<const NodeRef> nodes;  // all that are alive, at least one
  LinkCosts links;
  const Limits& limits;
};

struct Plan {
  std::uint32_t slices = 1;  // that the object is cut into: as `planner` expects it
  std::unique_ptr<ParentPlanner> planner;
};

Plan make_plan(const Demand& demand, const Surroundings& around);

}  // namespace hoplite
