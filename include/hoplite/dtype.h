// What an object's bytes mean to a reduction: the type of its elements, and the operators that combine them.
//
// Both enums travel between nodes: values keep their meaning for ever, new ones are added at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hoplite {

enum class DType : std::uint8_t {
  kBytes = 0,  // no type; cannot be reduced
  kF32,
  kF64,
  kF16,   // IEEE 754 half precision
  kBF16,  // the upper half of an f32
  kI8,
  kI16,
  kI32,
  kI64,
  kU8,
  kU16,
  kU32,
  kU64,
};
// For the codec: values beyond the last are refused.
constexpr DType last_enumerator(DType) { return DType::kU64; }

enum class ReduceOp : std::uint8_t {
  kSum,
  kProduct,
  kMin,
  kMax,
  kMean,    // of floating-point types only
  kMedian,  // of floating-point types only
};
constexpr ReduceOp last_enumerator(ReduceOp) { return ReduceOp::kMedian; }

// Bytes of one element; 1 for kBytes.
std::size_t size_of(DType type);
bool is_floating(DType type);
// Everything but plain bytes, and mean and median of integers, which would need fractions.
bool can_reduce(ReduceOp op, DType type);

// "bytes", "f32", "bf16", ...; "sum", "product", "min", "max", "mean", "median". The parsers know exactly these.
std::string_view to_string(DType type);
std::string_view to_string(ReduceOp op);
std::optional<DType> parse_dtype(std::string_view text);
std::optional<ReduceOp> parse_reduce_op(std::string_view text);

}  // namespace hoplite
