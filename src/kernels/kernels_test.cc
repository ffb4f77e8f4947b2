#include "kernels/kernels.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <string>

#include "base/random.h"
#include "kernels/simd.h"
#include "kernels/test_reference.h"

namespace hoplite {
namespace {

using Array = std::vector<std::byte>;

constexpr DType kTypes[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI8,  DType::kI16,
                            DType::kI32, DType::kI64, DType::kU8,  DType::kU16,  DType::kU32, DType::kU64};
constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kProduct, ReduceOp::kMin,
                             ReduceOp::kMax, ReduceOp::kMean,    ReduceOp::kMedian};

// Every test runs with each instruction set that this machine has.
class Kernels : public testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override { simd::use(GetParam()); }
  void TearDown() override { simd::use(simd::targets().front()); }
};

std::string test_name(const testing::TestParamInfo<std::string_view>& info) {
  std::string name(info.param);
  std::erase(name, '-');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Simd, Kernels, testing::ValuesIn(simd::targets()), test_name);

// --- values -----------------------------------------------------------------------------------------------------------------

// Some number of a type: of ordinary size (so that sums and products stay finite for a while), any bits at all (NaN, inf and
// denormals among them), or one of the extremes.
template <typename T>
T draw_value(Random& random, bool ordinary) {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_integral_v<T>) {
    if (random.chance(0.8)) return static_cast<T>(random.next());
    const T extremes[] = {Limits::min(), Limits::max(), T{0}, T{1}, static_cast<T>(-1)};
    return extremes[random.below(std::size(extremes))];
  } else {
    if (ordinary) return static_cast<T>((random.uniform() * 4 - 2) * (random.chance(0.1) ? 1e-3 : 1));
    const T extremes[] = {Limits::quiet_NaN(),
                          Limits::infinity(),
                          -Limits::infinity(),
                          Limits::denorm_min(),
                          Limits::min() / 2,
                          -Limits::max(),
                          Limits::max(),
                          T{0},
                          -T{0}};
    if (random.chance(0.5)) return extremes[random.below(std::size(extremes))];
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    return std::bit_cast<T>(static_cast<Bits>(random.next()));
  }
}

void draw_element(Random& random, DType type, bool ordinary, std::byte* to) {
  reference::with_access(type, [&](auto access) {
    using T = decltype(access.read(nullptr));
    if (size_of(type) < sizeof(T) && !ordinary && random.chance(0.7)) {
      reference::Plain<std::uint16_t>::write(static_cast<std::uint16_t>(random.next()), to);  // any of its own values
    } else {
      access.write(draw_value<T>(random, ordinary), to);
    }
  });
}

// Equal bits; or both NaN; or, where the choice is free, zeros of different signs.
::testing::AssertionResult same(DType type, const std::byte* found, const Array& expected, bool any_zero = false) {
  for (std::size_t at = 0; at < expected.size(); at += size_of(type)) {
    if (std::memcmp(found + at, expected.data() + at, size_of(type)) == 0) continue;
    const bool fine = reference::with_access(type, [&](auto access) {
      const auto a = access.read(found + at);
      const auto b = access.read(expected.data() + at);
      return (a != a && b != b) || (any_zero && a == 0 && b == 0);
    });
    if (fine) continue;
    auto failure = ::testing::AssertionFailure() << to_string(type) << " element " << at / size_of(type) << ": ";
    reference::with_access(type, [&](auto access) {
      failure << +access.read(found + at) << " instead of " << +access.read(expected.data() + at);
    });
    return failure;
  }
  return ::testing::AssertionSuccess();
}

bool zeros_are_free(ReduceOp op) { return op == ReduceOp::kMin || op == ReduceOp::kMax || op == ReduceOp::kMedian; }

// --- one call, with all that could go wrong around it -----------------------------------------------------------------------

// Arrays at a chosen distance from a cache line, with marked bytes around them.
class Arena {
 public:
  Arena(std::size_t offset, std::size_t bytes) : memory_(kMargin + offset + bytes + kMargin, kMark), offset_(offset) {
    size_ = bytes;
    base_ = kMargin - reinterpret_cast<std::uintptr_t>(memory_.data()) % kLine;
  }
  std::byte* data() { return memory_.data() + base_ + offset_; }
  bool margins_are_untouched() {
    const auto is_mark = [](std::byte b) { return b == kMark; };
    return std::all_of(memory_.data(), data(), is_mark) &&
           std::all_of(data() + size_, memory_.data() + memory_.size(), is_mark);
  }

 private:
  static constexpr std::size_t kLine = 64;
  static constexpr std::size_t kMargin = 128;
  static constexpr std::byte kMark{0xA5};
  std::vector<std::byte> memory_;
  std::size_t offset_;
  std::size_t size_ = 0;
  std::size_t base_ = 0;
};

struct Case {
  ReduceOp op;
  DType type;
  std::size_t count;
  std::size_t elements;
  bool in_place;
  bool aligned = false;  // to cache lines
};

void try_case(const Case& c, Random& random) {
  const std::size_t size = size_of(c.type);
  const auto draw_offset = [&] { return c.aligned ? 0 : random.below(64 / size) * size; };
  std::vector<Arena> arenas;
  for (std::size_t k = 0; k < c.count + 1; ++k) arenas.emplace_back(draw_offset(), c.elements * size);
  for (std::size_t i = 0; i < c.elements; ++i) {
    const bool ordinary = random.chance(0.7);  // one NaN hides all others
    for (std::size_t k = 0; k < c.count; ++k) draw_element(random, c.type, ordinary, arenas[k].data() + i * size);
  }
  std::vector<const std::byte*> inputs;
  std::vector<Array> before;
  for (std::size_t k = 0; k < c.count; ++k) {
    inputs.push_back(arenas[k].data());
    before.emplace_back(inputs[k], inputs[k] + c.elements * size);
  }
  const Array expected = reference::combine(c.op, c.type, inputs, c.elements * size);

  std::byte* const out = arenas[c.in_place ? 0 : c.count].data();
  combine(c.op, c.type, out, inputs, c.elements * size);

  const auto where = [&] {
    return std::string(to_string(c.op)) + " of " + std::to_string(c.count) + " x " + std::to_string(c.elements) +
           (c.in_place ? " in place" : "");
  };
  ASSERT_TRUE(same(c.type, out, expected, zeros_are_free(c.op))) << where();
  for (std::size_t k = c.in_place ? 1 : 0; k < c.count; ++k)
    ASSERT_TRUE(std::equal(before[k].begin(), before[k].end(), inputs[k])) << where() << ", input " << k;
  for (auto& arena : arenas) ASSERT_TRUE(arena.margins_are_untouched()) << to_string(c.type) << ' ' << where();
}

TEST_P(Kernels, EqualTheReferenceForAllTypesOperatorsAndNumbersOfInputs) {
  Random random(1);
  for (const DType type : kTypes) {
    for (const ReduceOp op : kOps) {
      if (!can_reduce(op, type)) continue;
      for (std::size_t count = 1; count <= 9; ++count) {
        for (const bool in_place : {false, true}) {
          const std::size_t lengths[] = {random.between(1, 20), random.between(20, 200), random.between(100, 600)};
          for (const std::size_t elements : lengths) {
            ASSERT_NO_FATAL_FAILURE(try_case({op, type, count, elements, in_place}, random));
          }
        }
      }
    }
  }
}

// Up to more than four of the longest vectors, which is one turn of the main loop, and on to the second.
TEST_P(Kernels, EqualTheReferenceForEveryLength) {
  Random random(2);
  for (const DType type : kTypes) {
    for (std::size_t elements = 0; elements * size_of(type) <= 9 * simd::kMaxVectorBytes; ++elements) {
      const bool in_place = random.chance(0.5);
      ASSERT_NO_FATAL_FAILURE(try_case({ReduceOp::kSum, type, 2, elements, in_place, random.chance(0.2)}, random));
      if (!is_floating(type)) continue;
      ASSERT_NO_FATAL_FAILURE(try_case({ReduceOp::kMedian, type, 4, elements, in_place}, random));
    }
  }
}

TEST_P(Kernels, TakeManyInputs) {
  Random random(3);
  for (const DType type : {DType::kF32, DType::kBF16, DType::kI64}) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMedian}) {
      if (!can_reduce(op, type)) continue;
      for (const std::size_t count : {64, 65, 300}) {
        ASSERT_NO_FATAL_FAILURE(try_case({op, type, count, 101, false}, random));
      }
    }
  }
}

// A page that may be used between two that may not.
class GuardedPage {
 public:
  GuardedPage() : page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))) {
    void* const map = ::mmap(nullptr, 3 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(map != MAP_FAILED);
    map_ = static_cast<std::byte*>(map);
    CHECK(::mprotect(map_ + page_, page_, PROT_READ | PROT_WRITE) == 0);
  }
  ~GuardedPage() { ::munmap(map_, 3 * page_); }
  GuardedPage(const GuardedPage&) = delete;
  GuardedPage& operator=(const GuardedPage&) = delete;

  std::byte* at_front() { return map_ + page_; }
  std::byte* at_end(std::size_t bytes) { return map_ + 2 * page_ - bytes; }

 private:
  std::size_t page_;
  std::byte* map_ = nullptr;
};

TEST_P(Kernels, ReadAndWriteNothingOutsideTheArrays) {
  GuardedPage a;
  GuardedPage b;
  for (const DType type : kTypes) {
    const ReduceOp other = is_floating(type) ? ReduceOp::kMedian : ReduceOp::kMax;
    for (std::size_t bytes = 0; bytes <= 5 * simd::kMaxVectorBytes; bytes += size_of(type)) {
      for (const ReduceOp op : {ReduceOp::kSum, other}) {
        const std::byte* const ends[] = {a.at_end(bytes), b.at_end(bytes)};
        combine(op, type, a.at_end(bytes), ends, bytes);
        const std::byte* const fronts[] = {a.at_front(), b.at_front()};
        combine(op, type, a.at_front(), fronts, bytes);
      }
      if (is_floating(type)) divide(type, a.at_end(bytes), bytes, 3);
    }
  }
}

// --- f16 and bf16 -----------------------------------------------------------------------------------------------------------

constexpr std::size_t kAll = 0x10000;

template <typename F>
Array halves(F f) {
  Array array(kAll * 2);
  for (std::size_t i = 0; i < kAll; ++i)
    reference::Plain<std::uint16_t>::write(static_cast<std::uint16_t>(f(static_cast<std::uint16_t>(i))), &array[2 * i]);
  return array;
}

reference::Format format_of(DType type) { return type == DType::kF16 ? reference::kHalf : reference::kBrain; }

TEST(Reference, DecodesWhatItEncodes) {
  for (const auto format : {reference::kHalf, reference::kBrain}) {
    for (std::size_t i = 0; i < kAll; ++i) {
      const auto bits = static_cast<std::uint16_t>(i);
      const float value = reference::decode(format, bits);
      if (std::isnan(value)) continue;
      ASSERT_EQ(reference::encode(format, value), bits) << value;
    }
  }
}

TEST(Reference, KnowsTheFormats) {
  using reference::decode;
  using reference::encode;
  using reference::kBrain;
  using reference::kHalf;
  EXPECT_EQ(decode(kHalf, 0x3C00), 1.0F);
  EXPECT_EQ(decode(kHalf, 0xC000), -2.0F);
  EXPECT_EQ(decode(kHalf, 0x7BFF), 65504.0F);
  EXPECT_EQ(decode(kHalf, 0x0001), 0x1p-24F);
  EXPECT_EQ(decode(kHalf, 0xFC00), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(decode(kHalf, 0x7C01)));
  EXPECT_EQ(encode(kHalf, 65519.0F), 0x7BFF);
  EXPECT_EQ(encode(kHalf, 65520.0F), 0x7C00);
  EXPECT_EQ(encode(kHalf, 0x1p-25F), 0x0000);  // a tie, to even
  EXPECT_EQ(encode(kHalf, 0x1.8p-24F), 0x0002);
  EXPECT_EQ(decode(kBrain, 0x3F80), 1.0F);
  EXPECT_EQ(decode(kBrain, 0x0001), 0x1p-133F);
  EXPECT_EQ(encode(kBrain, 1.0F + 0x1p-8F), 0x3F80);  // a tie, to even
  EXPECT_EQ(encode(kBrain, 1.0F + 0x1.8p-7F), 0x3F82);
  EXPECT_EQ(encode(kBrain, std::numeric_limits<float>::max()), 0x7F80);
}

TEST_P(Kernels, ConvertEveryHalfThereAndBack) {
  for (const DType type : {DType::kF16, DType::kBF16}) {
    const auto one = reference::encode(format_of(type), 1.0F);
    const Array all = halves([](std::uint16_t bits) { return bits; });
    const Array ones = halves([&](std::uint16_t) { return one; });
    Array out(all.size());
    const std::byte* const inputs[] = {all.data(), ones.data()};
    combine(ReduceOp::kProduct, type, out.data(), inputs, out.size());
    EXPECT_TRUE(same(type, out.data(), all));
    combine(ReduceOp::kMin, type, out.data(), std::array{all.data(), all.data()}, out.size());
    EXPECT_TRUE(same(type, out.data(), all));
  }
}

// Products reach far below the smallest number and above the largest, with all bits that can be rounded away.
TEST_P(Kernels, RoundEveryHalfTimesManyOthers) {
  Random random(4);
  for (const DType type : {DType::kF16, DType::kBF16}) {
    const Array all = halves([](std::uint16_t bits) { return bits; });
    Array out(all.size());
    for (int i = 0; i < 20; ++i) {
      const Array others = halves([&](std::uint16_t) { return random.next(); });
      const std::vector<const std::byte*> inputs = {all.data(), others.data()};
      combine(ReduceOp::kProduct, type, out.data(), inputs, out.size());
      ASSERT_TRUE(same(type, out.data(), reference::combine(ReduceOp::kProduct, type, inputs, out.size())));
    }
  }
}

// Half-way between every number and its neighbour, exactly, and a little more and less: the three inputs are a number, half
// of the distance, and next to nothing.
TEST_P(Kernels, RoundTiesToEvenAndOnlyOnce) {
  for (const DType type : {DType::kF16, DType::kBF16}) {
    const auto format = format_of(type);
    const auto half_distance = [&](std::uint16_t bits) {
      const auto next = static_cast<std::uint16_t>(bits + 1);
      return reference::encode(format, (reference::decode(format, next) - reference::decode(format, bits)) / 2);
    };
    const Array all = halves([](std::uint16_t bits) { return bits; });
    const Array ties = halves(half_distance);
    for (const float nudge : {0.0F, 0x1p-10F, -0x1p-10F}) {
      const Array nudges = halves([&](std::uint16_t bits) {
        return reference::encode(format, nudge * reference::decode(format, half_distance(bits)));
      });
      const std::vector<const std::byte*> inputs = {all.data(), ties.data(), nudges.data()};
      Array out(all.size());
      combine(ReduceOp::kSum, type, out.data(), inputs, out.size());
      ASSERT_TRUE(same(type, out.data(), reference::combine(ReduceOp::kSum, type, inputs, out.size()))) << nudge;
    }
  }
}

// Half the distance between denormals is no number of the format, but half of a number with an odd last bit is a tie.
TEST_P(Kernels, RoundTiesBetweenDenormals) {
  for (const DType type : {DType::kF16, DType::kBF16}) {
    const auto half = reference::encode(format_of(type), 0.5F);
    const Array all = halves([](std::uint16_t bits) { return bits; });
    const Array factors = halves([&](std::uint16_t) { return half; });
    const std::vector<const std::byte*> inputs = {all.data(), factors.data()};
    Array out(all.size());
    combine(ReduceOp::kProduct, type, out.data(), inputs, out.size());
    ASSERT_TRUE(same(type, out.data(), reference::combine(ReduceOp::kProduct, type, inputs, out.size())));
  }
}

TEST_P(Kernels, AddHalvesInFullPrecision) {
  // One by one in f16, 2048 + 1 is 2048 again and again.
  const std::uint16_t big = reference::encode(reference::kHalf, 2048);
  const std::uint16_t one = reference::encode(reference::kHalf, 1);
  const auto* const b = reinterpret_cast<const std::byte*>(&big);
  const auto* const o = reinterpret_cast<const std::byte*>(&one);
  std::uint16_t out = 0;
  combine(ReduceOp::kSum, DType::kF16, reinterpret_cast<std::byte*>(&out), std::array{b, o, o, o, o}, sizeof out);
  EXPECT_EQ(reference::decode(reference::kHalf, out), 2052.0F);
}

// --- single promises --------------------------------------------------------------------------------------------------------

template <typename T>
T combine_values(ReduceOp op, DType type, const std::vector<T>& values) {
  std::vector<const std::byte*> inputs;
  for (const T& value : values) inputs.push_back(reinterpret_cast<const std::byte*>(&value));
  T out{};
  combine(op, type, reinterpret_cast<std::byte*>(&out), inputs, sizeof out);
  return out;
}

TEST_P(Kernels, IntegersWrap) {
  EXPECT_EQ((combine_values<std::int8_t>(ReduceOp::kSum, DType::kI8, {127, 1})), -128);
  EXPECT_EQ((combine_values<std::int8_t>(ReduceOp::kProduct, DType::kI8, {-128, -1})), -128);
  EXPECT_EQ((combine_values<std::uint16_t>(ReduceOp::kProduct, DType::kU16, {65535, 65535})), 1);
  EXPECT_EQ((combine_values<std::int64_t>(ReduceOp::kSum, DType::kI64, {INT64_MIN, -1})), INT64_MAX);
  EXPECT_EQ((combine_values<std::int64_t>(ReduceOp::kProduct, DType::kI64, {INT64_MAX, 2})), -2);
}

TEST_P(Kernels, SignedAndUnsignedOrdersDiffer) {
  EXPECT_EQ((combine_values<std::int8_t>(ReduceOp::kMin, DType::kI8, {-1, 1})), -1);
  EXPECT_EQ((combine_values<std::uint8_t>(ReduceOp::kMin, DType::kU8, {255, 1})), 1);
  EXPECT_EQ((combine_values<std::int64_t>(ReduceOp::kMax, DType::kI64, {-1, 1})), 1);
  EXPECT_EQ((combine_values<std::uint64_t>(ReduceOp::kMax, DType::kU64, {UINT64_MAX, 1})), UINT64_MAX);
}

TEST_P(Kernels, NanInAnyPlaceWins) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const ReduceOp op : kOps) {
    for (std::size_t place = 0; place < 4; ++place) {
      std::vector<float> values = {1, -std::numeric_limits<float>::infinity(), 3, 4};
      values[place] = nan;
      EXPECT_TRUE(std::isnan(combine_values(op, DType::kF32, values))) << to_string(op) << ' ' << place;
    }
  }
}

TEST_P(Kernels, MedianOfAnEvenNumberIsInTheMiddle) {
  EXPECT_EQ(combine_values<float>(ReduceOp::kMedian, DType::kF32, {9, 1, 5, 2}), 3.5F);
  EXPECT_EQ(combine_values<float>(ReduceOp::kMedian, DType::kF32, {9, 1, 5}), 5.0F);
  const double max = std::numeric_limits<double>::max();
  EXPECT_EQ(combine_values<double>(ReduceOp::kMedian, DType::kF64, {max, max}), max);  // their sum is infinite
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(combine_values<double>(ReduceOp::kMedian, DType::kF64, {1, inf}), inf);
}

TEST_P(Kernels, OneInputIsCopiedBitByBit) {
  const std::uint32_t signalling_nan = 0x7F800001;
  for (const ReduceOp op : kOps)
    EXPECT_EQ(combine_values<std::uint32_t>(op, DType::kF32, {signalling_nan}), signalling_nan) << to_string(op);
}

TEST_P(Kernels, DivideEqualsTheReference) {
  Random random(5);
  for (const DType type : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
    for (const std::uint64_t by : {1ULL, 2ULL, 3ULL, 7ULL, 100'000ULL, 1ULL << 40}) {
      for (const std::size_t elements : {1, 2, 15, 100, 257}) {
        Arena data(random.below(8) * size_of(type), elements * size_of(type));
        Array expected(elements * size_of(type));
        for (std::size_t at = 0; at < expected.size(); at += size_of(type)) {
          draw_element(random, type, random.chance(0.7), data.data() + at);
          reference::with_access(type, [&](auto access) {
            const auto value = access.read(data.data() + at);
            if constexpr (std::is_floating_point_v<decltype(access.read(nullptr))>)
              access.write(value / static_cast<decltype(access.read(nullptr))>(by), &expected[at]);
          });
        }
        divide(type, data.data(), expected.size(), by);
        ASSERT_TRUE(same(type, data.data(), expected)) << by;
        ASSERT_TRUE(data.margins_are_untouched());
      }
    }
  }
}

TEST(Supports, AllButBytesAndFractionsOfIntegers) {
  for (const ReduceOp op : kOps) {
    EXPECT_FALSE(can_reduce(op, DType::kBytes)) << to_string(op);
    EXPECT_TRUE(can_reduce(op, DType::kBF16)) << to_string(op);
    EXPECT_EQ(can_reduce(op, DType::kI32), op != ReduceOp::kMean && op != ReduceOp::kMedian) << to_string(op);
  }
}

TEST_P(Kernels, SayWhatTheyUse) { EXPECT_EQ(simd_target(), GetParam()); }

TEST(SimdTarget, IsTheBestThatTheMachineHas) { EXPECT_EQ(simd_target(), simd::targets().front()); }

TEST(KernelsDeathTest, MisuseIsABug) {
  alignas(8) std::byte memory[16] = {};
  const std::byte* const one[] = {memory};
  const std::byte* const crooked[] = {memory + 1};
  EXPECT_DEATH(combine(ReduceOp::kSum, DType::kBytes, memory, one, 8), "sum bytes");
  EXPECT_DEATH(combine(ReduceOp::kMean, DType::kI32, memory, one, 8), "mean i32");
  EXPECT_DEATH(combine(ReduceOp::kSum, DType::kF32, memory, {}, 8), "inputs");
  EXPECT_DEATH(combine(ReduceOp::kSum, DType::kF32, memory, one, 7), "7 f32");
  EXPECT_DEATH(combine(ReduceOp::kSum, DType::kF32, memory, crooked, 8), "is_aligned");
  EXPECT_DEATH(divide(DType::kI32, memory, 8, 2), "i32");
  EXPECT_DEATH(divide(DType::kF32, memory, 8, 0), "by != 0");
}

}  // namespace
}  // namespace hoplite
