// What a reduce is asked to do, and what it says of itself: the same words between client and daemon and between nodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/node_id.h"
#include "hoplite/dtype.h"
#include "hoplite/error.h"
#include "hoplite/object_id.h"
#include "protocol/codec.h"

namespace hoplite {

// How the result of a reduce reaches those who read it.
enum class Spread : std::uint8_t {
  kNone,    // it grows on one node; readers get it as they get any object
  kByCost,  // every node with a used source is going to get it: in the way that is fastest for all
  kWhole,   // ... reduced on one node, and broadcast from there while it grows
  kSlices,  // ... cut into slices, each reduced on another node, and broadcast from there
};
constexpr Spread last_enumerator(Spread) { return Spread::kSlices; }

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
  std::int64_t timeout_ns = -1;  // of the whole; -1 = none
  template <typename A> void fields(A& a) {
    a(target, sources, op, type, count, wait_if_lost, more_follow, spread, part, parts, timeout_ns);
  }
};

enum class SourceState : std::uint8_t {
  kAwaited,  // nobody has put it yet, as far as is known
  kSpare,    // it is there, and enough others came before
  kUsed,     // it counts
  kLost,     // every complete copy was on nodes that died
  kDeleted,
};
constexpr SourceState last_enumerator(SourceState) { return SourceState::kDeleted; }

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

enum class ReducePhase : std::uint8_t { kWaiting, kRunning, kDone, kFailed };
constexpr ReducePhase last_enumerator(ReducePhase) { return ReducePhase::kFailed; }

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
  template <typename A> void fields(A& a) {
    a(target, op, type, phase, code, text, coordinator, count, attempts, size, bytes, sources, slots);
  }
};

}  // namespace hoplite
