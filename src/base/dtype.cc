#include "hoplite/dtype.h"

#include "base/enum_names.h"
#include "hoplite/priority.h"

namespace hoplite {
namespace {

template <typename Enum>
std::optional<Enum> parse_enum(std::string_view text) {
  for (unsigned raw = 0; raw <= static_cast<unsigned>(last_enumerator(Enum{})); ++raw) {
    const auto value = static_cast<Enum>(raw);
    if (to_string(value) == text) return value;
  }
  return std::nullopt;
}

}  // namespace

std::size_t size_of(DType type) {
  switch (type) {
    case DType::kBytes:
    case DType::kI8:
    case DType::kU8: return 1;
    case DType::kF16:
    case DType::kBF16:
    case DType::kI16:
    case DType::kU16: return 2;
    case DType::kF32:
    case DType::kI32:
    case DType::kU32: return 4;
    case DType::kF64:
    case DType::kI64:
    case DType::kU64: return 8;
  }
  return 1;
}

bool is_floating(DType type) {
  return type == DType::kF32 || type == DType::kF64 || type == DType::kF16 || type == DType::kBF16;
}

bool can_reduce(ReduceOp op, DType type) {
  const bool needs_fractions = op == ReduceOp::kMean || op == ReduceOp::kMedian;
  return type != DType::kBytes && (!needs_fractions || is_floating(type));
}

std::string_view to_string(DType type) {
  static constexpr std::string_view kNames[] = {"bytes", "f32", "f64", "f16", "bf16", "i8", "i16",
                                                "i32",   "i64", "u8",  "u16", "u32",  "u64"};
  return name_in(kNames, type);
}

std::string_view to_string(ReduceOp op) {
  static constexpr std::string_view kNames[] = {"sum", "product", "min", "max", "mean", "median"};
  return name_in(kNames, op);
}

std::string_view to_string(Priority priority) {
  static constexpr std::string_view kNames[] = {"low", "normal", "high"};
  return name_in(kNames, priority);
}

std::optional<DType> parse_dtype(std::string_view text) { return parse_enum<DType>(text); }

std::optional<ReduceOp> parse_reduce_op(std::string_view text) { return parse_enum<ReduceOp>(text); }

std::optional<Priority> parse_priority(std::string_view text) { return parse_enum<Priority>(text); }

}  // namespace hoplite
