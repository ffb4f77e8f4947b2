// What a reduce is asked to do, and what it says of itself: the same words between client and daemon and between nodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/node_id.h"
#include "hoplite/reduce.h"
#include "protocol/codec.h"

namespace hoplite {

struct ReduceSpec {
  ObjectId target;
  std::vector<ObjectId> sources;
  ReduceOp op = ReduceOp::kSum;
  DType type = DType::kF32;
  std::uint32_t count = 0;    // the first so many of the sources that become ready
  bool wait_if_lost = false;  // a source that is lost is waited for, as somebody may put it again
  bool more_follow = false;   // sources are going to be added: more may be wanted than are named now
  Spread spread = Spread::kNone;
  std::uint32_t part = 0;  // only this slice of every source, of so many (protocol/bulk.h, slice_range)
  std::uint32_t parts = 1;
  std::int64_t timeout_ns = -1;           // of the whole; -1 = none
  Priority priority = Priority::kNormal;  // of every transfer that the reduce causes
  std::vector<std::string> names;         // of the target and of sources, in any order
  template <typename A> void fields(A& a) {
    a(target, sources, op, type, count, wait_if_lost, more_follow, spread, part, parts, timeout_ns, priority, names);
  }
};

struct SourceReport {
  ObjectId id;
  SourceState state = SourceState::kAwaited;
  NodeId node;              // where it is used
  std::uint32_t order = 0;  // of arrival, from 1; 0 = not there
  template <typename A> void fields(A& a) { a(id, state, node, order); }
};

// One place in the tree.
struct SlotReport {
  NodeId node;
  std::uint32_t slice = 0;   // of the target
  std::uint32_t parent = 0;  // index in the list of slots of the slot that takes its output; its own: it is the root
  std::uint32_t sources = 0;
  bool done = false;
  template <typename A> void fields(A& a) { a(node, slice, parent, sources, done); }
};

struct ReduceReport {
  ObjectId target;
  ReduceOp op = ReduceOp::kSum;
  DType type = DType::kF32;
  ReducePhase phase = ReducePhase::kWaiting;
  Code code = Code::kOk;  // of a failure
  std::string text;
  NodeId coordinator;
  std::uint32_t count = 0;
  std::uint32_t attempts = 0;  // how often the tree was mended
  std::uint64_t size = 0;      // of the result; 0 while no source is there
  std::uint64_t bytes = 0;     // of it, reduced so far
  std::vector<SourceReport> sources;
  std::vector<SlotReport> slots;
  std::vector<std::string> names;  // of the target and of sources, in any order
  template <typename A> void fields(A& a) {
    a(target, op, type, phase, code, text, coordinator, count, attempts, size, bytes, sources, slots, names);
  }
};

}  // namespace hoplite
