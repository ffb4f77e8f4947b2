// Highway's way: foreach_target.h includes this very file once for each instruction set, with other compiler settings and
// another HWY_NAMESPACE, and HWY_DYNAMIC_DISPATCH calls the best one that the machine has. No lambdas and no templates of
// the standard library between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE: they would be compiled with instructions that
// another machine lacks, and shared by the linker.
#include "kernels/simd.h"

#include <cstring>

#include "base/check.h"

// Each set costs seconds of compile time: left out are SSSE3, between two others, and SVE, which nobody has measured here.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd.cc"
#include <hwy/foreach_target.h>  // before highway.h
#include <hwy/highway.h>

// Whether the instruction set converts f16 itself. Highway's replacement truncates, and makes numbers of inf and NaN.
#undef HOPLITE_HARDWARE_F16
#define HOPLITE_HARDWARE_F16 \
  (HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || (HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64))

HWY_BEFORE_NAMESPACE();
namespace hoplite::simd::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

static_assert(HWY_MAX_BYTES <= kMaxVectorBytes);

// --- types: how elements in memory become lanes of a vector, and back ---------------------------------------------------
//
// A type has the tag D and the vector V that arithmetic is done with; load() and store() move step_bytes() bytes.

template <typename T>
struct Plain {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static HWY_INLINE std::size_t step_bytes() { return hn::Lanes(D()) * sizeof(T); }
  static HWY_INLINE V load(const std::byte* from) { return hn::LoadU(D(), reinterpret_cast<const T*>(from)); }
  static HWY_INLINE void store(V v, std::byte* to) { hn::StoreU(v, D(), reinterpret_cast<T*>(to)); }
};

using DF32 = hn::ScalableTag<float>;
using VF32 = hn::Vec<DF32>;
using DI32 = hn::RebindToSigned<DF32>;
using VI32 = hn::Vec<DI32>;
using DU16 = hn::Rebind<std::uint16_t, DF32>;

// 16 bits in memory, 32 in a lane.
HWY_INLINE VI32 load_halves(const std::byte* from) {
  return hn::PromoteTo(DI32(), hn::LoadU(DU16(), reinterpret_cast<const std::uint16_t*>(from)));
}
HWY_INLINE void store_halves(VI32 lanes, std::byte* to) {
  hn::StoreU(hn::DemoteTo(DU16(), lanes), DU16(), reinterpret_cast<std::uint16_t*>(to));
}
HWY_INLINE VI32 constant(std::int32_t value) { return hn::Set(DI32(), value); }

struct BFloat16 {
  using D = DF32;
  using V = VF32;
  static HWY_INLINE std::size_t step_bytes() { return hn::Lanes(DF32()) * sizeof(std::uint16_t); }
  static HWY_INLINE V load(const std::byte* from) { return hn::BitCast(DF32(), hn::ShiftLeft<16>(load_halves(from))); }
  // To nearest even: up if the lower half is more than a half of the last bit kept, or just that and this bit is odd. A
  // NaN came from a bf16 or is the processor's own, so its lower half is empty and nothing is carried into the sign.
  static HWY_INLINE void store(V v, std::byte* to) {
    const hn::RebindToUnsigned<DF32> du;
    const auto bits = hn::BitCast(du, v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
    const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFF)));
    store_halves(hn::BitCast(DI32(), hn::ShiftRight<16>(rounded)), to);
  }
};

struct Float16 {
  using D = DF32;
  using V = VF32;
  static HWY_INLINE std::size_t step_bytes() { return hn::Lanes(DF32()) * sizeof(std::uint16_t); }

#if HOPLITE_HARDWARE_F16
  using Stored = hn::Rebind<hwy::float16_t, DF32>;
  static HWY_INLINE V load(const std::byte* from) {
    return hn::PromoteTo(DF32(), hn::LoadU(Stored(), reinterpret_cast<const hwy::float16_t*>(from)));
  }
  static HWY_INLINE void store(V v, std::byte* to) {
    hn::StoreU(hn::DemoteTo(Stored(), v), Stored(), reinterpret_cast<hwy::float16_t*>(to));
  }
#else
  // The bits in their new places are a float that is too small by 2^(127 - 15); that is exact, also for denormals. What
  // had the highest exponent, inf and NaN, gets the highest exponent.
  static HWY_INLINE V load(const std::byte* from) {
    const VI32 bits = load_halves(from);
    const VI32 magnitude = hn::And(bits, constant(0x7FFF));
    const VI32 sign = hn::ShiftLeft<16>(hn::And(bits, constant(0x8000)));
    const V scaled = hn::Mul(hn::BitCast(DF32(), hn::ShiftLeft<13>(magnitude)), hn::Set(DF32(), 0x1p112F));
    const VI32 special = hn::IfThenElseZero(hn::Gt(magnitude, constant(0x7BFF)), constant(0x7F800000));
    return hn::BitCast(DF32(), hn::Or(hn::Or(hn::BitCast(DI32(), scaled), special), sign));
  }
  static HWY_INLINE void store(V v, std::byte* to) {
    const VI32 bits = hn::BitCast(DI32(), v);
    const VI32 magnitude = hn::And(bits, constant(0x7FFFFFFF));
    const VI32 sign = hn::And(hn::ShiftRight<16>(bits), constant(0x8000));
    // Rounds to even as in BFloat16. From 65520 on the carry reaches the exponent and makes inf.
    const VI32 odd = hn::And(hn::ShiftRight<13>(magnitude), constant(1));
    const VI32 normal = hn::ShiftRight<13>(hn::Add(magnitude, hn::Add(odd, constant(0xFFF - (112 << 23)))));
    // The last bit of numbers around 0.5 has the weight of the last bit of a denormal f16: the addition rounds.
    const V half = hn::Set(DF32(), 0.5F);
    const VI32 denormal =
        hn::Sub(hn::BitCast(DI32(), hn::Add(hn::BitCast(DF32(), magnitude), half)), hn::BitCast(DI32(), half));
    VI32 result = hn::IfThenElse(hn::Lt(magnitude, constant(0x38800000)), denormal, normal);     // below 2^-14
    result = hn::IfThenElse(hn::Gt(magnitude, constant(0x477FFFFF)), constant(0x7C00), result);  // from 2^16 on: inf
    result = hn::IfThenElse(hn::Gt(magnitude, constant(0x7F800000)), constant(0x7E00), result);  // NaN
    store_halves(hn::Or(result, sign), to);
  }
#endif
};

// The last step of an array may be an incomplete one; it goes through a buffer.
template <class Type>
HWY_INLINE typename Type::V load_some(const std::byte* from, std::size_t bytes) {
  if (bytes == Type::step_bytes()) return Type::load(from);
  HWY_ALIGN std::byte padded[kMaxVectorBytes] = {};
  std::memcpy(padded, from, bytes);
  return Type::load(padded);
}
template <class Type>
HWY_INLINE void store_some(typename Type::V v, std::byte* to, std::size_t bytes) {
  if (bytes == Type::step_bytes()) return Type::store(v, to);
  HWY_ALIGN std::byte padded[kMaxVectorBytes];
  Type::store(v, padded);
  std::memcpy(to, padded, bytes);
}

// --- operators that fold one input after the other ----------------------------------------------------------------------

struct Sum {
  template <class V> static HWY_INLINE V apply(V a, V b) { return hn::Add(a, b); }
};

struct Product {
  template <class V> static HWY_INLINE V apply(V a, V b) {
    if constexpr (sizeof(hn::TFromV<V>) == 1) {
      return multiply_bytes(a, b);
    } else {
      return hn::Mul(a, b);
    }
  }

 private:
  // No instruction set multiplies bytes.
  template <class V> static HWY_INLINE V multiply_bytes(V a, V b) {
    const hn::DFromV<V> d;
#if HWY_TARGET == HWY_SCALAR
    return hn::Set(d, static_cast<std::uint8_t>(hn::GetLane(a) * hn::GetLane(b)));
#else
    const hn::Repartition<std::uint16_t, decltype(d)> pairs;
    const auto a16 = hn::BitCast(pairs, a);
    const auto b16 = hn::BitCast(pairs, b);
    const auto even = hn::And(hn::Mul(a16, b16), hn::Set(pairs, 0x00FF));
    const auto odd = hn::ShiftLeft<8>(hn::Mul(hn::ShiftRight<8>(a16), hn::ShiftRight<8>(b16)));
    return hn::BitCast(d, hn::Or(even, odd));
#endif
  }
};

// `result`, or the NaN among a and b: what instructions do with it differs.
template <class V> HWY_INLINE V unless_nan(V a, V b, V result) {
  if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
    return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::IsNaN(b), b, result));
  } else {
    return result;
  }
}

struct Min {
  template <class V> static HWY_INLINE V apply(V a, V b) { return unless_nan(a, b, hn::Min(a, b)); }
};

struct Max {
  template <class V> static HWY_INLINE V apply(V a, V b) { return unless_nan(a, b, hn::Max(a, b)); }
};

template <class Type, class Op>
HWY_NOINLINE void fold(const Work work) {
  const std::size_t step = Type::step_bytes();
  const std::byte* const first = work.inputs[0];
  const std::byte* const second = work.inputs[1];
  std::size_t at = 0;
  // Four vectors at a time, the usual two inputs without a loop: the fewer instructions stand between them, the more loads
  // are under way at once.
  for (; at + 4 * step <= work.bytes; at += 4 * step) {
    auto a = Op::apply(Type::load(first + at), Type::load(second + at));
    auto b = Op::apply(Type::load(first + at + step), Type::load(second + at + step));
    auto c = Op::apply(Type::load(first + at + 2 * step), Type::load(second + at + 2 * step));
    auto d = Op::apply(Type::load(first + at + 3 * step), Type::load(second + at + 3 * step));
    for (std::size_t k = 2; k < work.count; ++k) {
      const std::byte* const in = work.inputs[k] + at;
      a = Op::apply(a, Type::load(in));
      b = Op::apply(b, Type::load(in + step));
      c = Op::apply(c, Type::load(in + 2 * step));
      d = Op::apply(d, Type::load(in + 3 * step));
    }
    std::byte* const out = work.out + at;
    Type::store(a, out);
    Type::store(b, out + step);
    Type::store(c, out + 2 * step);
    Type::store(d, out + 3 * step);
  }
  for (; at < work.bytes; at += step) {
    const std::size_t some = HWY_MIN(step, work.bytes - at);
    auto a = load_some<Type>(first + at, some);
    for (std::size_t k = 1; k < work.count; ++k) a = Op::apply(a, load_some<Type>(work.inputs[k] + at, some));
    store_some<Type>(a, work.out + at, some);
  }
}

// Where two's complement makes no difference between signed and unsigned, only the unsigned code exists.
template <class Op>
void fold_signless(DType type, const Work& work) {
  switch (type) {
    case DType::kF32: return fold<Plain<float>, Op>(work);
    case DType::kF64: return fold<Plain<double>, Op>(work);
    case DType::kF16: return fold<Float16, Op>(work);
    case DType::kBF16: return fold<BFloat16, Op>(work);
    case DType::kBytes:
    case DType::kI8:
    case DType::kU8: return fold<Plain<std::uint8_t>, Op>(work);
    case DType::kI16:
    case DType::kU16: return fold<Plain<std::uint16_t>, Op>(work);
    case DType::kI32:
    case DType::kU32: return fold<Plain<std::uint32_t>, Op>(work);
    case DType::kI64:
    case DType::kU64: return fold<Plain<std::uint64_t>, Op>(work);
  }
}

template <class Op>
void fold_ordered(DType type, const Work& work) {
  switch (type) {
    case DType::kI8: return fold<Plain<std::int8_t>, Op>(work);
    case DType::kI16: return fold<Plain<std::int16_t>, Op>(work);
    case DType::kI32: return fold<Plain<std::int32_t>, Op>(work);
    case DType::kI64: return fold<Plain<std::int64_t>, Op>(work);
    default: return fold_signless<Op>(type, work);
  }
}

// --- median ---------------------------------------------------------------------------------------------------------------

// Half of a + b; where that sum is too large for the type, the sum of the halves.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V midpoint(D d, V a, V b) {
  const V half = hn::Set(d, static_cast<hn::TFromD<D>>(0.5));
  const V sum = hn::Add(a, b);
  const auto is_finite = hn::Lt(hn::Abs(sum), hn::Inf(d));
  return hn::IfThenElse(is_finite, hn::Mul(sum, half), hn::Add(hn::Mul(a, half), hn::Mul(b, half)));
}

// The scratch holds the smaller half of what was read so far, in ascending order, a vector for each rank; each input is
// inserted from below. That is a sorting network in every lane, without branches.
template <class Type>
HWY_NOINLINE void median(const Work work) {
  using D = typename Type::D;
  using Lane = hn::TFromD<D>;
  const D d;
  const std::size_t ranks = work.count / 2 + 1;
  auto* const sorted = reinterpret_cast<Lane*>(work.scratch);
  const std::size_t row = hn::Lanes(d);
  const std::size_t step = Type::step_bytes();
  for (std::size_t at = 0; at < work.bytes; at += step) {
    const std::size_t some = HWY_MIN(step, work.bytes - at);
    auto nan = hn::Zero(d);
    for (std::size_t k = 0; k < work.count; ++k) {
      auto x = load_some<Type>(work.inputs[k] + at, some);
      nan = hn::IfThenElse(hn::IsNaN(x), x, nan);
      const std::size_t held = HWY_MIN(k, ranks);
      for (std::size_t rank = 0; rank < held; ++rank) {
        const auto y = hn::LoadU(d, sorted + rank * row);
        hn::StoreU(hn::Min(y, x), d, sorted + rank * row);
        x = hn::Max(y, x);
      }
      if (held < ranks) hn::StoreU(x, d, sorted + held * row);
    }
    auto middle = hn::LoadU(d, sorted + (ranks - 1) * row);
    if (work.count % 2 == 0) middle = midpoint(d, hn::LoadU(d, sorted + (ranks - 2) * row), middle);
    store_some<Type>(hn::IfThenElse(hn::IsNaN(nan), nan, middle), work.out + at, some);
  }
}

// --- division -------------------------------------------------------------------------------------------------------------

template <class Type>
HWY_NOINLINE void divide_lanes(std::byte* data, std::size_t bytes, std::uint64_t by) {
  using Lane = hn::TFromD<typename Type::D>;
  const auto divisor = hn::Set(typename Type::D(), static_cast<Lane>(by));
  const std::size_t step = Type::step_bytes();
  for (std::size_t at = 0; at < bytes; at += step) {
    const std::size_t some = HWY_MIN(step, bytes - at);
    store_some<Type>(hn::Div(load_some<Type>(data + at, some), divisor), data + at, some);
  }
}

// --- what is dispatched -----------------------------------------------------------------------------------------------------

void median_of(DType type, const Work& work) {
  switch (type) {
    case DType::kF32: return median<Plain<float>>(work);
    case DType::kF64: return median<Plain<double>>(work);
    case DType::kF16: return median<Float16>(work);
    case DType::kBF16: return median<BFloat16>(work);
    default: return;
  }
}

void combine_here(ReduceOp op, DType type, const Work& work) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kMean: return fold_signless<Sum>(type, work);
    case ReduceOp::kProduct: return fold_signless<Product>(type, work);
    case ReduceOp::kMin: return fold_ordered<Min>(type, work);
    case ReduceOp::kMax: return fold_ordered<Max>(type, work);
    case ReduceOp::kMedian: return median_of(type, work);
  }
}

void divide_here(DType type, std::byte* data, std::size_t bytes, std::uint64_t by) {
  switch (type) {
    case DType::kF32: return divide_lanes<Plain<float>>(data, bytes, by);
    case DType::kF64: return divide_lanes<Plain<double>>(data, bytes, by);
    case DType::kF16: return divide_lanes<Float16>(data, bytes, by);
    case DType::kBF16: return divide_lanes<BFloat16>(data, bytes, by);
    default: return;
  }
}

std::int64_t target_here() { return HWY_TARGET; }

}  // namespace hoplite::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hoplite::simd {
namespace {

HWY_EXPORT(combine_here);
HWY_EXPORT(divide_here);
HWY_EXPORT(target_here);

std::string_view name_of(std::int64_t target) {
  switch (target) {
    case HWY_AVX3: return "AVX-512";
    case HWY_AVX2: return "AVX2";
    case HWY_SSE4: return "SSE4";
    case HWY_NEON: return "NEON";
    default: return "scalar";
  }
}

// A bit for each, the lowest being the best.
std::int64_t usable_targets() { return (hwy::SupportedTargets() | HWY_STATIC_TARGET) & HWY_TARGETS; }

}  // namespace

void combine(ReduceOp op, DType type, const Work& work) { HWY_DYNAMIC_DISPATCH(combine_here)(op, type, work); }

void divide(DType type, std::byte* data, std::size_t bytes, std::uint64_t by) {
  HWY_DYNAMIC_DISPATCH(divide_here)(type, data, bytes, by);
}

std::string_view target() { return name_of(HWY_DYNAMIC_DISPATCH(target_here)()); }

std::vector<std::string_view> targets() {
  std::vector<std::string_view> names;
  for (std::int64_t left = usable_targets(); left != 0; left &= left - 1) names.push_back(name_of(left & -left));
  return names;
}

void use(std::string_view target) {
  for (std::int64_t left = usable_targets(); left != 0; left &= left - 1) {
    if (name_of(left & -left) == target) return hwy::GetChosenTarget().Update(left & -left);
  }
  CHECK(false, target);
}

}  // namespace hoplite::simd
#endif  // HWY_ONCE
