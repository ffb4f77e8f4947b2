// Reduction arithmetic: arrays of numbers, combined element by element.
//
// Pure functions of memory, with the widest vectors that this machine has; any thread may call them at any time on memory
// of its own. The rules for rounding, overflow and NaN (docs/adr/0010-kernels.md):
//
//   f32, f64      IEEE 754 in the type itself, from the first input to the last
//   f16, bf16     converted to f32, combined there over all inputs of one call, rounded once, to nearest even
//   integers      wrap around
//   min, max      NaN if any input is NaN, as numpy's minimum and maximum; which of +0 and -0 is not specified
//   mean          the sum; whoever holds the final one calls divide()
//   median        the middle value, or the mean of the two middle values; NaN if any input is NaN
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "hoplite/dtype.h"

namespace hoplite {

// out[i] = op(inputs[0][i], inputs[1][i], ...) in one pass over memory.
//
// At least one input; with one, its bytes are copied as they are. `bytes` is a multiple of the element size, and all
// pointers are aligned to it. `out` may be inputs[0] itself, and overlaps no other input. A pair that
// can_reduce() denies is a bug (CHECK).
void combine(ReduceOp op, DType type, std::byte* out, std::span<const std::byte* const> inputs, std::size_t bytes);

// Divides every element by `by`, which is not 0, in place. Floating-point types only; f16 and bf16 are rounded once more.
void divide(DType type, std::byte* data, std::size_t bytes, std::uint64_t by);

// The instruction set in use, for people: "AVX-512", "AVX2", "SSE4", "NEON" or "scalar".
std::string_view simd_target();

}  // namespace hoplite
