#include "hoplite/dtype.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace hoplite {
namespace {

// The names of all values, each of which must be parsed back to its value.
template <typename Enum, typename Parse>
std::set<std::string_view> names_of(Parse parse) {
  std::set<std::string_view> names;
  for (int raw = 0; raw <= static_cast<int>(last_enumerator(Enum{})); ++raw) {
    const auto value = static_cast<Enum>(raw);
    EXPECT_EQ(parse(to_string(value)), value);
    names.insert(to_string(value));
  }
  return names;
}

TEST(DType, NamesAreDistinctAndParsedBack) {
  const std::set<std::string_view> expected = {"bytes", "f32", "f64", "f16", "bf16", "i8", "i16",
                                               "i32",   "i64", "u8",  "u16", "u32",  "u64"};
  EXPECT_EQ(names_of<DType>(parse_dtype), expected);
  for (const auto* const nonsense : {"", "f3", "f322", "F32", "float32", "unknown"})
    EXPECT_EQ(parse_dtype(nonsense), std::nullopt) << nonsense;
}

TEST(DType, ValuesOnTheWireNeverChange) {
  EXPECT_EQ(static_cast<int>(DType::kBytes), 0);
  EXPECT_EQ(static_cast<int>(DType::kF32), 1);
  EXPECT_EQ(static_cast<int>(DType::kBF16), 4);
  EXPECT_EQ(static_cast<int>(DType::kU64), 12);
  EXPECT_EQ(static_cast<int>(ReduceOp::kSum), 0);
  EXPECT_EQ(static_cast<int>(ReduceOp::kMedian), 5);
}

TEST(DType, SizesFollowTheNames) {
  EXPECT_EQ(size_of(DType::kBytes), 1U);
  for (int raw = 1; raw <= static_cast<int>(last_enumerator(DType{})); ++raw) {
    const auto type = static_cast<DType>(raw);
    const auto name = to_string(type);
    const auto bits = std::stoul(std::string(name.substr(name.find_first_of("0123456789"))));
    EXPECT_EQ(size_of(type) * 8, bits) << name;
    EXPECT_EQ(is_floating(type), name.find('f') != name.npos) << name;
  }
  EXPECT_FALSE(is_floating(DType::kBytes));
}

TEST(DType, FollowsFromTheElementsOfC) {
  static_assert(dtype_of<float>() == DType::kF32 && dtype_of<double>() == DType::kF64);
  static_assert(dtype_of<signed char>() == DType::kI8 && dtype_of<unsigned char>() == DType::kU8);
  static_assert(dtype_of<short>() == DType::kI16 && dtype_of<unsigned>() == DType::kU32);
  static_assert(dtype_of<long>() == DType::kI64 && dtype_of<long long>() == DType::kI64);
  static_assert(!Element<bool> && !Element<char> && !Element<std::byte> && !Element<long double>);
  EXPECT_EQ(size_of(dtype_of<std::uint16_t>()), sizeof(std::uint16_t));
}

TEST(ReduceOp, NamesAreDistinctAndParsedBack) {
  const std::set<std::string_view> expected = {"sum", "product", "min", "max", "mean", "median"};
  EXPECT_EQ(names_of<ReduceOp>(parse_reduce_op), expected);
  EXPECT_EQ(parse_reduce_op("plus"), std::nullopt);
}

}  // namespace
}  // namespace hoplite
