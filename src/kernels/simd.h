// The vector code behind kernels.h, compiled once for each instruction set and chosen when the program runs.
//
// Internal: no checks here, and what is trivial has been dealt with by the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "hoplite/dtype.h"

namespace hoplite::simd {

// The longest vector of any instruction set that we compile for.
constexpr std::size_t kMaxVectorBytes = 64;

struct Work {
  std::byte* out = nullptr;
  const std::byte* const* inputs = nullptr;
  std::size_t count = 0;  // of inputs; at least 2
  std::size_t bytes = 0;  // of each input
  // For the median only: scratch_bytes(count) bytes, aligned to 8.
  std::byte* scratch = nullptr;
};

constexpr std::size_t scratch_bytes(std::size_t count) { return (count / 2 + 1) * kMaxVectorBytes; }

void combine(ReduceOp op, DType type, const Work& work);
void divide(DType type, std::byte* data, std::size_t bytes, std::uint64_t by);

// The name of what is in use, as simd_target() says it.
std::string_view target();
// All that were compiled and that this machine can run, best first.
std::vector<std::string_view> targets();
// For tests: use this one of targets() from now on.
void use(std::string_view target);

}  // namespace hoplite::simd
