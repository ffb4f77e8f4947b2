#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "sim/bulk_fixture.h"
#include "sim/contents.h"

namespace hoplite::sim {
namespace {

// Copies of 8-byte numbers: on every node copy 1 is its own source, 2 and 3 are inputs that grow, 4 is the sum.
class CombineTest : public BulkTest {
 protected:
  static constexpr CopyKey kOwn = 1, kLeft = 2, kRight = 3, kOut = 4;
  static constexpr std::uint64_t kRoom = 256'000;

  static Extent room(CopyKey copy, std::uint64_t size) { return {(copy - 1) * kRoom, size}; }
  void open(NodeIndex node, CopyKey copy, std::uint64_t size, std::uint32_t slices = 1) {
    bulk_->open_copy(node, {copy, room(copy, size), slices, false});
  }
  void put_number(NodeIndex node, PutNumber put, std::uint64_t size, bool complete = true) {
    bulk_->open_copy(node, {kOwn, room(kOwn, size), 1, complete});
    fill_contents(put, 0, memory(node, kOwn, size));
  }
  ByteSpan memory(NodeIndex node, CopyKey copy, std::uint64_t size) {
    return ByteSpan(arenas_[node]).subspan((copy - 1) * kRoom, size);
  }
  void sum(NodeIndex node, std::vector<effect::Combine::Input> inputs, std::uint32_t slice = 0, bool final = true) {
    bulk_->combine(node, {kOut, slice, ReduceOp::kSum, DType::kU64, 1, final, std::move(inputs)});
  }
  // Whether the words from number `first` on are the sums of those words of the puts.
  static bool is_sum(ByteView bytes, std::vector<PutNumber> puts, std::uint64_t first = 0) {
    for (std::size_t i = 0; i < bytes.size() / 8; ++i) {
      std::uint64_t expected = 0;
      for (const PutNumber put : puts) expected += content_word(put, first + i);
      if (std::memcmp(bytes.data() + 8 * i, &expected, 8) != 0) return false;
    }
    return true;
  }
  std::size_t times(NodeIndex node, const std::string& what) const {
    const auto lines = said(node);
    return static_cast<std::size_t>(std::count(lines.begin(), lines.end(), what));
  }
};

TEST_F(CombineTest, ASumIsPassedOnWhileItsInputsArrive) {
  make(4, 1e6, pieces(10'000));
  const std::uint64_t size = 200'000;
  for (const NodeIndex node : {0, 1, 2}) put_number(node, node + 1, size);
  open(2, kLeft, size);
  open(2, kRight, size);
  open(2, kOut, size);
  pull_into(2, kLeft, 0);
  pull_into(2, kRight, 1);
  sum(2, {{kLeft, 0, 0}, {kOwn, 0, 0}, {kRight, 0, 0}});
  run(Duration::ms(100));
  served_ = kOut;  // the two above have been accepted from copy 1
  open(3, kOut, size);
  pull_into(3, kOut, 2);
  run(Duration::ms(200));
  const std::uint64_t there = bulk_->valid(3, kOut, 0).front();
  EXPECT_GT(there, 100'000u);
  EXPECT_LT(bulk_->valid(2, kLeft, 0).front(), size);
  EXPECT_TRUE(is_sum(memory(3, kOut, there / 8 * 8), {1, 2, 3}));
  run();
  // Both inputs share the downlink: 0.4 s. The child has the last of it two pieces and a latency later.
  EXPECT_NEAR(ended_at(3), 0.4 + 0.03, 0.02);
  EXPECT_EQ(times(2, "combined 4/0"), 1u);
  EXPECT_TRUE(is_sum(memory(3, kOut, size), {1, 2, 3}));
  EXPECT_TRUE(broken_.empty()) << broken_.front();
}

TEST_F(CombineTest, AnInputThatGrowsLater) {
  make(1, 1e6);
  put_number(0, 1, 1000);
  open(0, kLeft, 1000);
  fill_contents(2, 0, memory(0, kLeft, 1000));
  open(0, kOut, 1000);
  sum(0, {{kOwn, 0, 0}, {kLeft, 0, 0}});
  EXPECT_EQ(bulk_->valid(0, kOut, 0).front(), 0u);
  bulk_->grow_copy(0, {kLeft, 7});
  EXPECT_EQ(bulk_->valid(0, kOut, 0).front(), 0u);
  bulk_->grow_copy(0, {kLeft, 501});
  EXPECT_EQ(bulk_->valid(0, kOut, 0).front(), 496u) << "whole elements";
  run();
  EXPECT_EQ(times(0, "combined 4/0"), 0u);
  bulk_->grow_copy(0, {kLeft, 1000});
  EXPECT_EQ(bulk_->valid(0, kOut, 0).front(), 1000u);
  run();
  EXPECT_EQ(times(0, "combined 4/0"), 1u);
  EXPECT_TRUE(is_sum(memory(0, kOut, 1000), {1, 2}));
  bulk_->close_copy(0, kOwn);  // nobody reads them any more
  bulk_->close_copy(0, kLeft);
  EXPECT_TRUE(broken_.empty()) << broken_.front();
}

TEST_F(CombineTest, WhatOneMakesIsTheNextOnesInput) {
  make(1, 1e6);
  put_number(0, 1, 1000);
  open(0, kLeft, 1000);
  fill_contents(2, 0, memory(0, kLeft, 1000));
  open(0, kRight, 1000);
  open(0, kOut, 1000);
  sum(0, {{kRight, 0, 0}, {kOwn, 0, 0}});
  bulk_->combine(0, {kRight, 0, ReduceOp::kSum, DType::kU64, 1, false, {{kLeft, 0, 0}, {kOwn, 0, 0}}});
  bulk_->grow_copy(0, {kLeft, 400});
  EXPECT_EQ(bulk_->valid(0, kOut, 0).front(), 400u);
  bulk_->grow_copy(0, {kLeft, 1000});
  run();
  EXPECT_TRUE(is_sum(memory(0, kOut, 1000), {1, 1, 2}));
  EXPECT_EQ(times(0, "combined 3/0"), 1u);
  EXPECT_EQ(times(0, "combined 4/0"), 1u);
}

TEST_F(CombineTest, ASliceAloneIsPulledServedAndCombined) {
  make(3, 1e6, pieces(1000));
  const std::uint64_t size = 30'000;
  const std::uint32_t slices = 3, slice = 1;
  const SliceRange part = slice_range(size, slices, slice);
  const std::uint64_t length = part.end - part.begin;
  for (const NodeIndex node : {0, 1, 2}) put_number(node, node + 1, size);
  std::fill(arenas_[1].begin() + kRoom, arenas_[1].end(), std::byte{0xAB});
  for (const CopyKey copy : {kLeft, kOut}) bulk_->open_copy(1, {copy, room(copy, length), slices, false, size, slice});
  pull_into(1, kLeft, 0, slice, slices);
  sum(1, {{kLeft, slice, part.begin}, {kOwn, 0, part.begin}}, slice);
  run(Duration::ms(5));
  served_ = kOut;
  bulk_->open_copy(2, {kLeft, room(kLeft, length), slices, false, size, slice});
  open(2, kOut, size, slices);
  pull_into(2, kLeft, 1, slice, slices);
  sum(2, {{kLeft, slice, part.begin}, {kOwn, 0, part.begin}}, slice);
  run();
  EXPECT_EQ(bulk_->valid(2, kOut, slice).front(), part.end);
  EXPECT_TRUE(is_sum(memory(2, kOut, size).subspan(part.begin, length), {1, 2, 3}, part.begin / 8));
  const ByteView beyond = memory(1, kLeft, kRoom).subspan(length);
  EXPECT_EQ(static_cast<std::size_t>(std::count(beyond.begin(), beyond.end(), std::byte{0xAB})), beyond.size());
  EXPECT_TRUE(broken_.empty()) << broken_.front();
  pull_into(2, kOut, 1, 0, slices);  // node 1 has not that slice, and its agent should know
  run();
  EXPECT_EQ(broken_.size(), 1u);
}

TEST_F(CombineTest, NoBytesOneInputAndAMean) {
  make(1, 1e6);
  open(0, kLeft, 0);
  open(0, kOut, 0);
  sum(0, {{kLeft, 0, 0}});
  run();
  EXPECT_EQ(said(0), std::vector<std::string>{"combined 4/0"});

  const std::vector<float> values{1, 2.5, -7, 1e10f};
  bulk_->open_copy(0, {5, {4096, 16}, 1, true});
  std::memcpy(arenas_[0].data() + 4096, values.data(), 16);
  bulk_->open_copy(0, {6, {8192, 16}, 1, false});
  bulk_->combine(0, {6, 0, ReduceOp::kMean, DType::kF32, 4, true, {{5, 0, 0}}});
  run();
  for (std::size_t i = 0; i < values.size(); ++i) {
    float result = 0;
    std::memcpy(&result, arenas_[0].data() + 8192 + 4 * i, 4);
    EXPECT_EQ(result, values[i] / 4);
  }
}

TEST_F(CombineTest, WhatIsNotFinalEndsWhenItsSliceIsSealed) {
  make(2, 1e6, pieces(100));
  put_number(0, 1, 1024);
  open(0, kOut, 1024, 2);
  sum(0, {{kOwn, 0, 512}}, 1, false);
  served_ = kOut;
  open(1, kOut, 1024, 2);
  pull_into(1, kOut, 0, 1, 2);
  run(Duration::s(1));
  EXPECT_EQ(bulk_->valid(1, kOut, 1).front(), 1024u);
  EXPECT_EQ(said(1), std::vector<std::string>{"accepted"});
  bulk_->seal_copy(0, {kOut, 1});
  run(Duration::s(1));
  EXPECT_EQ(said(1).back(), "ended complete 1024");
  EXPECT_TRUE(broken_.empty()) << broken_.front();
  bulk_->seal_copy(0, {kOut, 0});
  EXPECT_EQ(broken_.size(), 1u);
}

TEST_F(CombineTest, ClosingStopsItAndTheInputsStayOpenUntilThen) {
  make(2, 1e6, pieces(1000));
  put_number(0, 1, 10'000);
  open(0, kLeft, 10'000);
  bulk_->grow_copy(0, {kLeft, 5000});
  open(0, kOut, 10'000);
  sum(0, {{kLeft, 0, 0}, {kOwn, 0, 0}});
  served_ = kOut;
  open(1, kOut, 10'000);
  pull_into(1, kOut, 0);
  run(Duration::ms(50));
  bulk_->close_copy(0, kLeft);
  EXPECT_EQ(broken_.size(), 1u) << "it is being read";
  bulk_->close_copy(0, kOut);
  bulk_->close_copy(0, kOwn);
  EXPECT_EQ(broken_.size(), 2u) << "a thread may be at it until the copy is closed";
  bulk_->grow_copy(0, {kLeft, 10'000});
  EXPECT_EQ(bulk_->valid(0, kOut, 0).front(), 5000u);
  std::fill(arenas_[0].begin() + 4 * kRoom, arenas_[0].end(), std::byte{0});
  run();
  EXPECT_EQ(said(0), (std::vector<std::string>{"serve ended", "closed"}));
  EXPECT_TRUE(std::all_of(arenas_[0].begin() + 3 * kRoom + 5064, arenas_[0].end(), [](std::byte byte) {
    return byte == std::byte{0};
  })) << "scribbled over others' memory";
  bulk_->close_copy(0, kLeft);
  bulk_->close_copy(0, kOwn);
  run();
  EXPECT_EQ(broken_.size(), 2u);
  EXPECT_TRUE(bulk_->copies(0).empty());
}

TEST_F(CombineTest, WithoutBytesOnlyTheWatermarksMove) {
  make(2, 1e6, pieces(1000));
  carries_bytes_ = false;
  put_number(0, 1, 10'000);
  put_number(1, 2, 10'000);
  open(1, kLeft, 10'000);
  open(1, kOut, 10'000);
  pull_into(1, kLeft, 0);
  sum(1, {{kLeft, 0, 0}, {kOwn, 0, 0}});
  run();
  EXPECT_EQ(times(1, "combined 4/0"), 1u);
  EXPECT_EQ(bulk_->valid(1, kOut, 0).front(), 10'000u);
  EXPECT_TRUE(is_sum(memory(1, kOut, 10'000), {})) << "still zeroes";
}

TEST_F(CombineTest, CombinationsThatBreakTheContractAreSeen) {
  make(2, 1e6, pieces(100));
  put_number(0, 1, 1000);
  open(0, kLeft, 1000);
  open(0, kOut, 1000, 2);
  const auto breaks = [&](effect::Combine order) {
    const std::size_t before = broken_.size();
    bulk_->combine(0, order);
    return broken_.size() == before + 1;
  };
  const effect::Combine good{kOut, 0, ReduceOp::kSum, DType::kU64, 1, true, {{kLeft, 0, 0}}};
  effect::Combine order = good;
  order.slice = 2;
  EXPECT_TRUE(breaks(order));
  order = good;
  order.out = kOwn;  // is complete
  EXPECT_TRUE(breaks(order));
  order = good;
  order.inputs = {};
  EXPECT_TRUE(breaks(order));
  order.inputs = {{77, 0, 0}};
  EXPECT_TRUE(breaks(order));
  order.inputs = {{kOut, 1, 512}};
  EXPECT_TRUE(breaks(order));
  order.inputs = {{kOwn, 0, 600}};  // less than a slice is left from there on
  EXPECT_TRUE(breaks(order));
  order = good;
  order.op = ReduceOp::kMedian;
  EXPECT_TRUE(breaks(order));
  order = good;
  order.divide_by = 2;
  EXPECT_TRUE(breaks(order));
  EXPECT_FALSE(breaks(good));
  EXPECT_TRUE(breaks(good)) << "twice";
  const std::size_t before = broken_.size();
  pull_into(0, kOut, 1, 0, 2);
  EXPECT_EQ(broken_.size(), before + 1) << "two fill one slice";
  bulk_->seal_copy(0, {kOut});
  EXPECT_EQ(broken_.size(), before + 2);
}

}  // namespace
}  // namespace hoplite::sim
