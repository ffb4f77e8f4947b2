// What a planner has to know about an operator. A new one is a line here, its arithmetic in src/kernels, and its name in
// hoplite/dtype.h; no planner changes.
#pragma once

#include "hoplite/dtype.h"

namespace hoplite {

struct OperatorTraits {
  bool linear = false;               // scaling or splitting the contributions scales or splits the result
  bool associative = true;           // partial results can be combined, in any grouping
  bool whole_contributions = false;  // needs all of them side by side: nothing may be combined on the way
  bool tolerates_missing = false;    // a result over fewer contributions still means something
};

constexpr OperatorTraits traits_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum: return {.linear = true};
    case ReduceOp::kProduct: return {};
    case ReduceOp::kMin:
    case ReduceOp::kMax: return {.tolerates_missing = true};
    case ReduceOp::kMean: return {.linear = true, .tolerates_missing = true};  // as a sum that the root divides
    case ReduceOp::kMedian: return {.associative = false, .whole_contributions = true, .tolerates_missing = true};
  }
  return {};
}

}  // namespace hoplite
