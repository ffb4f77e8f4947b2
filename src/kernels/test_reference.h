// The slow and obvious version of kernels.h, one element at a time: what the tests compare with. Nothing else includes it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "hoplite/dtype.h"

namespace hoplite::reference {

// A 16-bit floating-point format: a sign, exponent bits, fraction bits.
struct Format {
  int fraction_bits;
  int min_exponent;  // of normal numbers
  int max_exponent;
};
constexpr Format kHalf{10, -14, 15};
constexpr Format kBrain{7, -126, 127};

inline float decode(Format format, std::uint16_t bits) {
  const int fraction_bits = format.fraction_bits;
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const int exponent = (bits & 0x7FFF) >> fraction_bits;
  const float sign = bits & 0x8000 ? -1.0F : 1.0F;
  if (exponent == 0x7FFF >> fraction_bits)
    return fraction ? std::numeric_limits<float>::quiet_NaN() : sign * std::numeric_limits<float>::infinity();
  // The implied first bit is missing in denormals, whose exponent is that of the smallest normal numbers.
  const int significand = exponent ? fraction + (1 << fraction_bits) : fraction;
  return sign *
         static_cast<float>(std::ldexp(significand, std::max(exponent, 1) - 1 + format.min_exponent - fraction_bits));
}

// To nearest even.
inline std::uint16_t encode(Format format, float value) {
  const int infinity = 0x7FFF & ~((1 << format.fraction_bits) - 1);
  if (std::isnan(value)) return static_cast<std::uint16_t>(infinity | 1);
  const int sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(static_cast<double>(value));
  if (magnitude == 0) return static_cast<std::uint16_t>(sign);
  if (std::isinf(magnitude)) return static_cast<std::uint16_t>(sign | infinity);
  // The distance between neighbours around the value; all doubles here are exact.
  const int exponent = std::max(std::ilogb(magnitude), format.min_exponent);
  const double unit = std::ldexp(1.0, exponent - format.fraction_bits);
  const double rounded = std::nearbyint(magnitude / unit) * unit;
  if (rounded >= std::ldexp(1.0, format.max_exponent + 1)) return static_cast<std::uint16_t>(sign | infinity);
  // Numbers of one sign are encoded in ascending order, so the code is a count of neighbours.
  const int rounded_exponent = rounded == 0 ? format.min_exponent : std::max(std::ilogb(rounded), format.min_exponent);
  const int steps = static_cast<int>(std::ldexp(rounded, format.fraction_bits - rounded_exponent));
  return static_cast<std::uint16_t>(sign |
                                    (((rounded_exponent - format.min_exponent) << format.fraction_bits) + steps));
}

template <typename T>
T apply(ReduceOp op, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    const bool picks = op == ReduceOp::kMin || op == ReduceOp::kMax;
    if (picks && (std::isnan(a) || std::isnan(b))) return std::numeric_limits<T>::quiet_NaN();
    if (op == ReduceOp::kSum || op == ReduceOp::kMean) return a + b;
    if (op == ReduceOp::kProduct) return a * b;
  } else {
    if (op == ReduceOp::kSum) return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    if (op == ReduceOp::kProduct) return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  }
  return op == ReduceOp::kMin ? std::min(a, b) : std::max(a, b);
}

template <typename T>
T combine(ReduceOp op, std::vector<T> values) {
  if (op != ReduceOp::kMedian) {
    T result = values[0];
    for (std::size_t i = 1; i < values.size(); ++i) result = apply(op, result, values[i]);
    return result;
  }
  if constexpr (std::is_floating_point_v<T>) {
    for (const T value : values)
      if (std::isnan(value)) return value;
    std::sort(values.begin(), values.end());
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 ? values[middle] : std::midpoint(values[middle - 1], values[middle]);
  }
  CHECK(false, "median of integers");
  return {};
}

// --- arrays ---------------------------------------------------------------------------------------------------------------

// How an element is read and written: as itself, or as one of the two formats.
template <typename T>
struct Plain {
  static T read(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  static void write(T value, std::byte* to) { std::memcpy(to, &value, sizeof value); }
};
template <const Format& format>
struct Small {
  static float read(const std::byte* from) { return decode(format, Plain<std::uint16_t>::read(from)); }
  static void write(float value, std::byte* to) { Plain<std::uint16_t>::write(encode(format, value), to); }
};

// Calls f with the way to access elements of this type.
template <typename F>
auto with_access(DType type, F f) {
  switch (type) {
    case DType::kF32: return f(Plain<float>());
    case DType::kF64: return f(Plain<double>());
    case DType::kF16: return f(Small<kHalf>());
    case DType::kBF16: return f(Small<kBrain>());
    case DType::kI8: return f(Plain<std::int8_t>());
    case DType::kI16: return f(Plain<std::int16_t>());
    case DType::kI32: return f(Plain<std::int32_t>());
    case DType::kI64: return f(Plain<std::int64_t>());
    case DType::kBytes:
    case DType::kU8: return f(Plain<std::uint8_t>());
    case DType::kU16: return f(Plain<std::uint16_t>());
    case DType::kU32: return f(Plain<std::uint32_t>());
    case DType::kU64: return f(Plain<std::uint64_t>());
  }
  CHECK(false);
  return f(Plain<float>());
}

inline std::vector<std::byte> combine(ReduceOp op, DType type, std::span<const std::byte* const> inputs,
                                      std::size_t bytes) {
  std::vector<std::byte> out(bytes);
  if (inputs.size() == 1) {
    std::memcpy(out.data(), inputs[0], bytes);
    return out;
  }
  with_access(type, [&](auto access) {
    std::vector<decltype(access.read(nullptr))> values(inputs.size());
    for (std::size_t at = 0; at < bytes; at += size_of(type)) {
      for (std::size_t k = 0; k < inputs.size(); ++k) values[k] = access.read(inputs[k] + at);
      access.write(combine(op, values), out.data() + at);
    }
  });
  return out;
}

}  // namespace hoplite::reference
