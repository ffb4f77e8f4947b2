// What an object's bytes mean to a reduction: the type of its elements, and the operators that combine them.
//
// Both enums travel between nodes: values keep their meaning for ever, new ones are added at the end.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

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

// What C++ calls the elements of an array: float, double, and integers that are neither bool nor characters.
template <typename T>
concept Element = std::same_as<T, float> || std::same_as<T, double> ||
                  (std::integral<T> && sizeof(T) <= 8 && !std::same_as<T, bool> && !std::same_as<T, char> &&
                   !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> && !std::same_as<T, char16_t> &&
                   !std::same_as<T, char32_t>);

template <Element T>
constexpr DType dtype_of() {
  if constexpr (std::floating_point<T>) return sizeof(T) == 4 ? DType::kF32 : DType::kF64;
  constexpr DType kSigned[] = {DType::kI8, DType::kI16, DType::kI32, DType::kI64};
  constexpr DType kUnsigned[] = {DType::kU8, DType::kU16, DType::kU32, DType::kU64};
  return (std::is_signed_v<T> ? kSigned : kUnsigned)[std::countr_zero(sizeof(T))];
}

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
