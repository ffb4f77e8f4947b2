// An array of integers on each node of a local cluster, and their sum on the first node: fetched and added up one after
// another, or by a reduce. What became of each array, the tree, and when the sum was there.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "attendants.h"

namespace hoplite {

// The array of one node.
struct Part {
  std::size_t node = 0;
  ObjectId id;
  std::optional<double> put_s;  // when it was there; nothing: not yet
  SourceState state = SourceState::kAwaited;
  std::uint64_t sent = 0;  // by its node, since the beginning
  bool killed = false;     // the node
};

// A place in the reduce's tree.
struct Place {
  std::size_t node = 0;
  std::optional<std::size_t> parent;  // an index of a place; none: the root
  bool done = false;
};

struct SumState {
  double seconds = 0;              // since the beginning: puts that were made before count from there
  std::uint64_t array_bytes = 0;   // of each array, and of the sum
  std::uint64_t reduced = 0;       // bytes of the sum
  std::vector<Part> parts;         // by node
  std::vector<Place> places;       // none for the naive way
  std::optional<double> finished;  // seconds between the last put, or the beginning, and the sum on the first node

  std::vector<std::size_t> used_nodes() const;
};

struct SumOptions {
  std::uint64_t array_bytes = 0;
  std::size_t first = 0;                   // so many arrays that are there first count; 0: all
  std::chrono::duration<double> apart{0};  // put one by one while the reduce runs; 0: all are there before
  std::chrono::seconds timeout{90};
  // Called about ten times a second, on the thread of the caller; false: give up.
  std::function<bool(SumState& state)> watch;
};

// The sum has been compared, number by number, with that of exactly the arrays that are said to be used. kCancelled if
// `watch` gave up. Everything is removed again, unless a node was killed.
Result<SumState> sum_one_after_another(Attendants& nodes, const SumOptions& options);
Result<SumState> sum_by_reduce(Attendants& nodes, const SumOptions& options);

}  // namespace hoplite
