// What a planner has to know about an operator. A new one is a line here, its arithmetic in src/kernels, and its name in
// hoplite/dtype.h; no planner changes.
#pragma once

#include "hoplite/dtype.h"

namespace hoplite {

// All contributions have to meet side by side: nothing may be combined on the way.
constexpr bool needs_whole_contributions(ReduceOp op) { return op == ReduceOp::kMedian; }

}  // namespace hoplite
