#include "core/objects/extent_allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"

namespace hoplite {
namespace {

constexpr std::uint64_t kLine = ExtentAllocator::kLineBytes;
constexpr std::uint64_t kPage = ExtentAllocator::kPageBytes;

// Of the long random runs: all of it where it takes seconds, a part where each step is watched.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kShare = 10;
#else
constexpr int kShare = 1;
#endif

// Which lines of the arena are taken: one byte each, searched from end to end.
class SlowModel {
 public:
  explicit SlowModel(std::uint64_t capacity) : taken_(capacity / kLine, 0) {}

  void take(Extent extent, std::uint64_t reserved) {
    ASSERT_LE(extent.offset + reserved, taken_.size() * kLine);
    unsigned char* first = taken_.data() + extent.offset / kLine;
    ASSERT_EQ(std::memchr(first, 1, reserved / kLine), nullptr) << "overlap at " << extent.offset;
    std::memset(first, 1, reserved / kLine);
    used_ += reserved;
  }
  void give_back(Extent extent, std::uint64_t reserved) {
    std::memset(taken_.data() + extent.offset / kLine, 0, reserved / kLine);
    used_ -= reserved;
  }

  std::uint64_t used() const { return used_; }

  // The longest stretch of pages without a taken line.
  std::uint64_t longest_free_pages() const {
    std::uint64_t longest = 0;
    std::uint64_t stretch = 0;
    for (std::size_t line = 0; line < taken_.size(); line += kPage / kLine) {
      const bool free = std::memchr(taken_.data() + line, 1, kPage / kLine) == nullptr;
      stretch = free ? stretch + kPage : 0;
      longest = std::max(longest, stretch);
    }
    return longest;
  }

 private:
  std::vector<unsigned char> taken_;
  std::uint64_t used_ = 0;
};

std::uint64_t log_uniform(Random& random, std::uint64_t low, std::uint64_t high) {
  const double from = std::log(static_cast<double>(low));
  const double to = std::log(static_cast<double>(high));
  return std::min(high, static_cast<std::uint64_t>(std::exp(from + (to - from) * random.uniform())));
}

Alignment any_alignment(Random& random) { return random.chance(0.5) ? Alignment::kPage : Alignment::kCacheLine; }

Extent take_random(Random& random, std::vector<Extent>& live) {
  std::swap(live[random.below(live.size())], live.back());
  const Extent extent = live.back();
  live.pop_back();
  return extent;
}

void expect_empty(const ExtentAllocator& allocator) {
  EXPECT_EQ(allocator.used(), 0u);
  EXPECT_EQ(allocator.live_extents(), 0u);
  EXPECT_EQ(allocator.free_ranges(), 1u);
  EXPECT_EQ(allocator.largest_free(), allocator.capacity());
}

TEST(ExtentAllocatorTest, StartsAsOneFreeRange) {
  ExtentAllocator allocator(1 * kMiB + 100);
  EXPECT_EQ(allocator.capacity(), 1 * kMiB);
  EXPECT_EQ(allocator.free_bytes(), 1 * kMiB);
  EXPECT_EQ(allocator.high_water(), 0u);
  EXPECT_EQ(allocator.low_water(), 1 * kMiB);
  expect_empty(allocator);
}

TEST(ExtentAllocatorTest, ZeroBytesCostNothingEvenWhenFull) {
  ExtentAllocator allocator(kPage);
  ASSERT_TRUE(allocator.allocate(kPage, Alignment::kPage));
  const std::optional<Extent> empty = allocator.allocate(0, Alignment::kPage);
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->size, 0u);
  EXPECT_EQ(allocator.used(), kPage);
  EXPECT_EQ(allocator.live_extents(), 2u);
  allocator.free(*empty);
  EXPECT_EQ(allocator.live_extents(), 1u);
}

TEST(ExtentAllocatorTest, RoundsToWhatItKeepsAside) {
  ExtentAllocator allocator(64 * kMiB);
  const Extent line = *allocator.allocate(1, Alignment::kCacheLine);
  EXPECT_EQ(allocator.used(), kLine);
  const Extent page = *allocator.allocate(1, Alignment::kPage);
  EXPECT_EQ(allocator.used(), kLine + kPage);
  EXPECT_EQ(line.size, 1u);
  EXPECT_EQ(page.size, 1u);
  EXPECT_EQ(page.offset % kPage, 0u);
  allocator.free(line);
  allocator.free(page);
  expect_empty(allocator);
}

TEST(ExtentAllocatorTest, WholeArenaAndNotAByteMore) {
  ExtentAllocator allocator(1 * kMiB);
  EXPECT_TRUE(allocator.fits(1 * kMiB));
  EXPECT_FALSE(allocator.fits(1 * kMiB + 1));
  EXPECT_FALSE(allocator.allocate(1 * kMiB + 1, Alignment::kCacheLine));
  EXPECT_FALSE(allocator.allocate(~std::uint64_t{0}, Alignment::kPage));
  const std::optional<Extent> all = allocator.allocate(1 * kMiB - 10, Alignment::kPage);
  ASSERT_TRUE(all);
  EXPECT_EQ(allocator.free_bytes(), 0u);
  EXPECT_EQ(allocator.largest_free(), 0u);
  EXPECT_FALSE(allocator.allocate(1, Alignment::kCacheLine));
  allocator.free(*all);
  expect_empty(allocator);
}

TEST(ExtentAllocatorTest, NoCapacityRefusesEverythingButNothing) {
  ExtentAllocator allocator(kPage - 1);
  EXPECT_FALSE(allocator.allocate(1, Alignment::kCacheLine));
  EXPECT_TRUE(allocator.allocate(0, Alignment::kCacheLine));
}

TEST(ExtentAllocatorTest, FillsToTheLastLineWithSmallExtents) {
  ExtentAllocator allocator(8 * kMiB);
  std::vector<Extent> live;
  while (const std::optional<Extent> extent = allocator.allocate(kLine, Alignment::kCacheLine)) live.push_back(*extent);
  EXPECT_EQ(live.size(), 8 * kMiB / kLine);
  for (const Extent& extent : live) allocator.free(extent);
  expect_empty(allocator);
}

TEST(ExtentAllocatorTest, ReusesWarmMemory) {
  ExtentAllocator allocator(1 * kGiB);
  for (int round = 0; round < 100; ++round) {
    const Extent big = *allocator.allocate(64 * kMiB, Alignment::kPage);
    const Extent medium = *allocator.allocate(1 * kMiB, Alignment::kPage);
    const Extent small = *allocator.allocate(1 * kKiB, Alignment::kCacheLine);
    allocator.free(big);
    allocator.free(small);
    allocator.free(medium);
  }
  EXPECT_EQ(allocator.high_water(), 64 * kMiB);
  EXPECT_GE(allocator.low_water(), 1 * kGiB - 2 * kMiB);
}

// Small objects that outlive big ones, put in turns with them, must not cut the arena into pieces.
TEST(ExtentAllocatorTest, SmallSurvivorsDoNotCutTheRoomOfBigOnes) {
  ExtentAllocator allocator(1 * kGiB);
  Random random(7);
  std::vector<Extent> big;
  std::uint64_t small_bytes = 0;
  while (true) {
    const std::optional<Extent> extent = allocator.allocate(20 * kMiB, Alignment::kPage);
    if (!extent) break;
    big.push_back(*extent);
    for (int i = 0; i < 20; ++i) {
      const std::uint64_t size = log_uniform(random, 1, 200 * kKiB);
      if (allocator.allocate(size, any_alignment(random))) small_bytes += round_up(size, kPage);
    }
  }
  ASSERT_GE(big.size(), 45u);
  for (const Extent& extent : big) allocator.free(extent);
  EXPECT_GE(allocator.largest_free(), 1 * kGiB - small_bytes - 1 * kMiB);
}

class ExtentAllocatorDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(ExtentAllocatorDeathTest, FreeingWhatIsNotAllocatedIsABug) {
  ExtentAllocator allocator(1 * kMiB);
  const Extent extent = *allocator.allocate(5000, Alignment::kPage);
  EXPECT_DEATH(allocator.free({extent.offset, 4999}), "unknown extent");
  EXPECT_DEATH(allocator.free({extent.offset + kPage, 904}), "unknown extent");
  EXPECT_DEATH(allocator.free({0, 0}), "no empty extent");
  allocator.free(extent);
  EXPECT_DEATH(allocator.free(extent), "unknown extent");
}

std::uint64_t reserved_for(const ExtentAllocator& allocator, std::uint64_t used_before) {
  return allocator.used() - used_before;
}

// Random work on a small arena, compared step by step with the model.
class ExtentAllocatorModelTest : public testing::TestWithParam<std::uint64_t> {};

TEST_P(ExtentAllocatorModelTest, AgreesWithTheSlowModel) {
  constexpr std::uint64_t kCapacity = 4 * kMiB;
  constexpr std::uint64_t kRunBytes = 16 * kKiB;  // of an arena of this size
  constexpr int kOperations = 400'000 / kShare;
  struct Live {
    Extent extent;
    std::uint64_t reserved;
  };
  Random random(GetParam());
  ExtentAllocator allocator(kCapacity);
  SlowModel model(kCapacity);
  std::vector<Live> live;
  double allocate_share = 0.5;
  for (int i = 0; i < kOperations; ++i) {
    if (i % 10'000 == 0) allocate_share = 0.35 + 0.4 * random.uniform();  // ebb and flow
    if (live.empty() || random.chance(allocate_share)) {
      const std::uint64_t size =
          random.chance(0.7) ? log_uniform(random, 1, 8 * kKiB) : log_uniform(random, 1, 512 * kKiB);
      const Alignment alignment = any_alignment(random);
      const std::uint64_t used_before = allocator.used();
      const bool expected = allocator.can_allocate(size, alignment);
      const std::optional<Extent> extent = allocator.allocate(size, alignment);
      ASSERT_EQ(extent.has_value(), expected);
      if (!extent) {
        // A run with free lines may lie at either end of what the model sees as free.
        ASSERT_LT(model.longest_free_pages(), round_up(size, kPage) + 2 * kRunBytes);
        continue;
      }
      const std::uint64_t unit = alignment == Alignment::kPage ? kPage : kLine;
      ASSERT_EQ(extent->size, size);
      ASSERT_EQ(extent->offset % unit, 0u);
      const std::uint64_t reserved = reserved_for(allocator, used_before);
      ASSERT_GE(reserved, round_up(size, unit));
      ASSERT_LE(reserved, round_up(size, kPage));
      model.take(*extent, reserved);
      if (HasFatalFailure()) return;
      live.push_back({*extent, reserved});
    } else {
      std::swap(live[random.below(live.size())], live.back());
      allocator.free(live.back().extent);
      model.give_back(live.back().extent, live.back().reserved);
      live.pop_back();
    }
    ASSERT_EQ(allocator.used(), model.used());
    ASSERT_EQ(allocator.live_extents(), live.size());
    if (i % 1000 == 0) {
      ASSERT_LE(allocator.largest_free(), model.longest_free_pages() + 2 * kPage);
    }
  }
  for (const Live& each : live) allocator.free(each.extent);
  expect_empty(allocator);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ExtentAllocatorModelTest, testing::Values(1, 2, 3, 4));

// Sizes log-uniform from 64 bytes to 1/16 of the arena, random deaths: what the arena is cut into after long churn.
class Churn {
 public:
  Churn(std::uint64_t capacity, std::uint64_t seed) : random_(seed), allocator_(capacity) {}

  // One request; as many random extents die as it takes to keep the fill at or below `fill`. False if it was refused.
  bool step(double fill) {
    const double target = fill * static_cast<double>(allocator_.capacity());
    const std::uint64_t size = log_uniform(random_, 64, allocator_.capacity() / 16);
    while (static_cast<double>(allocator_.used() + size) > target) allocator_.free(take_random(random_, live_));
    const std::optional<Extent> extent = allocator_.allocate(size, any_alignment(random_));
    if (extent) live_.push_back(*extent);
    return extent.has_value();
  }
  double fill() const { return static_cast<double>(allocator_.used()) / static_cast<double>(allocator_.capacity()); }
  const ExtentAllocator& allocator() const { return allocator_; }
  void free_all() {
    for (const Extent& extent : live_) allocator_.free(extent);
    live_.clear();
  }

 private:
  Random random_;
  ExtentAllocator allocator_;
  std::vector<Extent> live_;
};

TEST(ExtentAllocatorFragmentationTest, HalfEmptyNeverRefuses) {
  constexpr double kHalfAndTheLargestRequest = 0.5 + 1.0 / 16;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Churn churn(1 * kGiB, seed);
    for (int i = 0; i < 250'000 / kShare; ++i) {
      ASSERT_TRUE(churn.step(kHalfAndTheLargestRequest)) << "at fill " << churn.fill() << ", seed " << seed;
    }
    churn.free_all();
    expect_empty(churn.allocator());
  }
}

TEST(ExtentAllocatorFragmentationTest, RefusalsStayRareAboveHalf) {
  int refused = 0;
  double lowest_fill = 1;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Churn churn(1 * kGiB, seed);
    for (int i = 0; i < 100'000 / kShare; ++i) {
      if (churn.step(0.65)) continue;
      ++refused;
      lowest_fill = std::min(lowest_fill, churn.fill());
    }
  }
  EXPECT_LE(refused, 40);  // 1 in 10,000; best fit refuses 6
  EXPECT_GT(lowest_fill, 0.5);
}

TEST(ExtentAllocatorTest, SameWorkSamePlaces) {
  Churn one(64 * kMiB, 9);
  Churn two(64 * kMiB, 9);
  for (int i = 0; i < 20'000; ++i) ASSERT_EQ(one.step(0.9), two.step(0.9));
  EXPECT_EQ(one.allocator().used(), two.allocator().used());
  EXPECT_EQ(one.allocator().largest_free(), two.allocator().largest_free());
}

}  // namespace
}  // namespace hoplite
