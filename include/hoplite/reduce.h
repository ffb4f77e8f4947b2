// What a reduce is asked to do, and what it says of itself.
//
// A reduce combines arrays, element by element, into a new object. Its sources are ids, which are futures: they may be put
// before, during or long after the call, by any node. The target is a future, too: it can be waited for, followed while it
// grows, and named as a source of another reduce, for which it is ready when it is complete.
//
//   types     f32 f64 f16 bf16, i8 i16 i32 i64, u8 u16 u32 u64
//   sum       product, min, max: of every type; integers wrap around; NaN wins over every number
//   mean      median: of floating-point types
//   f16 bf16  are combined as f32, and rounded once at every node on the way
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hoplite/dtype.h"
#include "hoplite/error.h"
#include "hoplite/object_id.h"
#include "hoplite/priority.h"
#include "hoplite/waiting.h"

namespace hoplite {

// The enums here travel between nodes: values keep their meaning, new ones are added at the end.

// How the result of a reduce reaches those who read it.
enum class Spread : std::uint8_t {
  kNone,    // it grows on one node; readers get it as they get any object
  kByCost,  // every node with a used source is going to get it: in the way that is fastest for all of them
  kWhole,   // ... reduced on one node, and broadcast from there while it grows
  kSlices,  // ... cut into slices, each reduced on another node, and broadcast from there
};
constexpr Spread last_enumerator(Spread) { return Spread::kSlices; }

enum class ReducePhase : std::uint8_t {
  kWaiting,  // for sources
  kRunning,  // bytes are being combined; more sources may still be awaited
  kDone,     // the target is committed
  kFailed,   // for good; the error says why
};
constexpr ReducePhase last_enumerator(ReducePhase) { return ReducePhase::kFailed; }

enum class SourceState : std::uint8_t {
  kAwaited,  // nobody has put it yet, as far as is known
  kSpare,    // it is there, and enough others came before
  kUsed,     // it counts
  kLost,     // every complete copy was on nodes that died
  kDeleted,
  kFailed,  // a failure was committed in its place
};
constexpr SourceState last_enumerator(SourceState) { return SourceState::kFailed; }

struct ReduceOptions {
  ObjectId target = {};  // nil: a fresh one, coordinated by this node
  ReduceOp op = ReduceOp::kSum;
  DType type = DType::kF32;  // of every source; a source of another type fails the reduce with Code::kTypeMismatch
  // The first so many sources that become ready count, each exactly once; the others are spares for nodes that die.
  std::optional<std::size_t> count = {};  // not given: all of them
  bool more_sources_follow = false;       // by add_sources(): `count` may be more than the sources named now
  OnLost on_lost = OnLost::kFail;         // of a source without which there are fewer than `count`
  Timeout timeout = {};                   // of the whole reduce: when it passes, the target fails with Code::kTimedOut
  Priority priority = Priority::kNormal;  // of every transfer that the reduce causes
  Spread spread = Spread::kNone;          // allreduce() takes kByCost instead of kNone
  // Only one part of every source, of so many: the parts are about equal, begin at multiples of 64 bytes, and give the whole
  // when they are put one behind the other. The last ones of a small array may be empty.
  std::uint32_t part = 0;
  // At most 64. 0: reduce() takes the whole, reduce_scatter() makes as many parts as there are sources.
  std::uint32_t parts = 0;
  // Names of the target and of sources, in any order: ids of named objects are hashes, and with these, status and errors say
  // on every node what people call them. As many as fit into 64 KiB, of at most 255 bytes each, are kept.
  std::vector<std::string> names = {};
};

// How far a reduce is, or how it went. Nodes are 16 hexadecimal digits, as in NodeStatus, or empty.
struct ReduceStatus {
  struct Source {
    ObjectId id;
    SourceState state = SourceState::kAwaited;
    std::string node;         // where it is used
    std::uint32_t order = 0;  // of arrival, from 1; 0 = it has not arrived
    std::string name = {};    // if somebody has told it; not safe to print as it is
  };

  // A place in the tree: a node that combines some sources of its own with what its children deliver.
  struct Slot {
    std::string node;
    std::uint32_t slice = 0;            // of the target; each has a tree of its own
    std::optional<std::size_t> parent;  // the slot that takes its output, an index in `slots`; none: the root
    std::uint32_t sources = 0;          // of its own
    bool done = false;
  };

  ObjectId target;
  std::string name;  // of the target, likewise
  ReduceOp op = ReduceOp::kSum;
  DType type = DType::kF32;
  ReducePhase phase = ReducePhase::kWaiting;
  std::optional<Error> error;  // of a failure
  std::string coordinator;     // the node that decides: the target's home
  std::size_t count = 0;       // so many sources count
  std::uint32_t attempts = 0;  // how often the tree was mended
  std::uint64_t size = 0;      // of the result; 0 while no source is there
  std::uint64_t bytes = 0;     // of it, reduced so far
  std::vector<Source> sources;
  std::vector<Slot> slots;

  // How many sources more must arrive.
  std::size_t awaited() const;
};
std::string_view to_string(ReducePhase phase);
std::string_view to_string(SourceState state);

}  // namespace hoplite
