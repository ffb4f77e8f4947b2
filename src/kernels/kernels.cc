#include "kernels/kernels.h"

#include <cstring>
#include <vector>

#include "base/check.h"
#include "kernels/simd.h"

namespace hoplite {
namespace {

bool is_aligned(const std::byte* pointer, std::size_t unit) {
  return reinterpret_cast<std::uintptr_t>(pointer) % unit == 0;
}

}  // namespace

void combine(ReduceOp op, DType type, std::byte* out, std::span<const std::byte* const> inputs, std::size_t bytes) {
  const std::size_t size = size_of(type);
  CHECK(can_reduce(op, type), to_string(op), to_string(type));
  CHECK(!inputs.empty());
  CHECK(bytes % size == 0, bytes, to_string(type));
  CHECK(is_aligned(out, size), out, to_string(type));
  for (const std::byte* input : inputs) CHECK(is_aligned(input, size), input, to_string(type));

  if (bytes == 0) return;
  if (inputs.size() == 1) {
    if (out != inputs[0]) std::memcpy(out, inputs[0], bytes);
    return;
  }
  simd::Work work{.out = out, .inputs = inputs.data(), .count = inputs.size(), .bytes = bytes};
  std::vector<std::uint64_t> scratch;
  if (op == ReduceOp::kMedian) {
    scratch.resize(simd::scratch_bytes(inputs.size()) / sizeof(scratch[0]));
    work.scratch = reinterpret_cast<std::byte*>(scratch.data());
  }
  simd::combine(op, type, work);
}

void divide(DType type, std::byte* data, std::size_t bytes, std::uint64_t by) {
  CHECK(is_floating(type), to_string(type));
  CHECK(by != 0);
  CHECK(bytes % size_of(type) == 0, bytes, to_string(type));
  CHECK(is_aligned(data, size_of(type)), data, to_string(type));
  if (bytes != 0 && by != 1) simd::divide(type, data, bytes, by);
}

std::string_view simd_target() { return simd::target(); }

}  // namespace hoplite
