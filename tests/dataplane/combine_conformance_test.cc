// What the data plane promises over every kind of link about combining copies, and about copies that have only one slice of their object.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/dataplane/conformance.h"

namespace hoplite {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

template <typename T>
DType type_of();
template <>
DType type_of<std::uint8_t>() {
  return DType::kU8;
}
template <>
DType type_of<std::uint64_t>() {
  return DType::kU64;
}
template <>
DType type_of<float>() {
  return DType::kF32;
}

template <typename T>
std::vector<std::byte> to_bytes(const std::vector<T>& numbers) {
  std::vector<std::byte> bytes(numbers.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

// Numbers that are different at every position and for every seed; sums of a few floats among them are exact.
template <typename T>
std::vector<T> numbers(std::uint64_t count, std::uint64_t seed) {
  std::vector<T> out(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t word = mix64(seed * 0x100001 + i);
    if constexpr (std::is_integral_v<T>) out[i] = static_cast<T>(word);
    else out[i] = static_cast<T>(static_cast<double>(word % 200'001) / 8 - 12'500);
  }
  return out;
}

template <typename T>
std::vector<T> sum(const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> out(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) out[i] = static_cast<T>(a[i] + b[i]);
  return out;
}

class CombineConformanceTest : public ConformanceTest {
 protected:
  static constexpr ObjectId kId{7, 1};
  static constexpr ObjectId kLeft{7, 2};
  static constexpr ObjectId kRight{7, 3};
  static constexpr CopyKey kOut = 10;

  static NodeOptions with_threads(std::uint32_t threads) {
    NodeOptions options;
    options.lanes = threads;
    return options;
  }
  template <typename T>
  static effect::Combine sum_of(std::vector<effect::Combine::Input> inputs, CopyKey out = kOut,
                                std::uint32_t slice = 0) {
    return {out, slice, ReduceOp::kSum, type_of<T>(), 1, true, std::move(inputs)};
  }
  // A copy with these bytes of which none are valid yet, served to whoever asks for `id`.
  static void write_slowly(TestNode& node, ObjectId id, CopyKey copy, const std::vector<std::byte>& bytes) {
    std::copy(bytes.begin(), bytes.end(), node.arena.begin());
    node.open({copy, {0, bytes.size()}, 1, false});
    node.served[id] = copy;
  }
  void fetch(TestNode& child, const TestNode& parent, CopyKey copy, Extent extent, TransferId transfer,
             ObjectId id) const {
    child.open({copy, extent, 1, false});
    pull(child, parent, copy, request(transfer, id));
  }
  static bool holds_front(const TestNode& node, std::uint64_t offset, const std::vector<std::byte>& bytes,
                          std::uint64_t count) {
    return std::memcmp(node.arena.data() + offset, bytes.data(), count) == 0;
  }

  // left, right -> middle (with a source of its own) -> child
  template <typename T>
  void sums_while_they_grow(std::uint32_t threads);
};
HOPLITE_ALL_LINKS(CombineConformanceTest);

template <typename T>
void CombineConformanceTest::sums_while_they_grow(std::uint32_t threads) {
  SCOPED_TRACE(threads);
  const auto left = make_node(1);
  const auto right = make_node(2);
  const auto middle = make_node(3, with_threads(threads));
  const auto child = make_node(4);
  constexpr std::uint64_t kCount = 3 * kMiB / sizeof(T) + 3;
  constexpr std::uint64_t kSize = kCount * sizeof(T);
  constexpr std::uint64_t kRoom = round_up(kSize, 64);
  const auto a = numbers<T>(kCount, 1);
  const auto b = numbers<T>(kCount, 2);
  const auto own = numbers<T>(kCount, 3);
  const auto expected = to_bytes(sum(sum(a, b), own));
  write_slowly(*left, kLeft, 1, to_bytes(a));
  write_slowly(*right, kRight, 1, to_bytes(b));

  middle->offer(ObjectId{9, 9}, 1, 0, to_bytes(own));
  fetch(*middle, *left, 2, {kRoom, kSize}, 1, kLeft);
  fetch(*middle, *right, 3, {2 * kRoom, kSize}, 2, kRight);
  middle->open({kOut, {3 * kRoom, kSize}, 1, false});
  middle->served[kId] = kOut;
  middle->combine(sum_of<T>({{2, 0, 0}, {3, 0, 0}, {1, 0, 0}}));
  fetch(*child, *middle, 1, {0, kSize}, 1, kId);

  // As far as the slower one is, in whole elements.
  left->grow(1, kSize / 2);
  right->grow(1, 100'001);
  const std::uint64_t part = 100'001 / sizeof(T) * sizeof(T);
  ASSERT_TRUE(runs_until([&] { return child->valid(1, 0).front() == part; }));
  ASSERT_TRUE(runs_until([&] { return middle->valid(2, 0).front() == kSize / 2; }));
  EXPECT_EQ(middle->valid(kOut, 0).front(), part);
  EXPECT_TRUE(holds_front(*child, 0, expected, part));

  right->grow(1, kSize);
  left->grow(1, kSize);
  ASSERT_TRUE(runs_until([&] { return child->ended_as(1, PullEnd::kComplete) && !middle->combined.empty(); }));
  EXPECT_TRUE(child->holds(0, expected));
  EXPECT_TRUE(middle->holds(3 * kRoom, expected));
  EXPECT_THAT(middle->ended, IsEmpty()) << "the inputs' ends are not needed: their bytes are there";
  run_for(Duration::ms(5));
  EXPECT_THAT(middle->combined, ElementsAre(Pair(kOut, 0)));
}

TEST_P(CombineConformanceTest, IntegersAreSummedAndPassedOnWhileTheyArrive) {
  sums_while_they_grow<std::uint64_t>(1);
  sums_while_they_grow<std::uint64_t>(3);
}

TEST_P(CombineConformanceTest, FloatsAreSummedAndPassedOnWhileTheyArrive) {
  sums_while_they_grow<float>(1);
  sums_while_they_grow<float>(3);
}

TEST_P(CombineConformanceTest, ResultsOfEverySize) {
  const auto node = make_node(1);
  const std::vector<std::uint64_t> sizes{0, 1, 7, 63, 64, 65, 100'001, kMiB, kMiB + 1, 3 * kMiB + 13};
  std::uint64_t offset = 0;
  CopyKey key = 0;
  std::vector<std::pair<std::uint64_t, std::vector<std::byte>>> expected;
  for (const std::uint64_t size : sizes) {
    const std::uint64_t room = round_up(size, 64);
    const auto a = numbers<std::uint8_t>(size, size);
    const auto b = numbers<std::uint8_t>(size, size + 1);
    node->offer(ObjectId{1, ++key}, key, offset, to_bytes(a));
    node->offer(ObjectId{1, ++key}, key, offset + room, to_bytes(b));
    node->open({++key, {offset + 2 * room, size}, 1, false});
    node->combine(sum_of<std::uint8_t>({{key - 2, 0, 0}, {key - 1, 0, 0}}, key));
    expected.emplace_back(offset + 2 * room, to_bytes(sum(a, b)));
    offset += 3 * room;
  }
  ASSERT_TRUE(runs_until([&] { return node->combined.size() == sizes.size(); }));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_TRUE(node->holds(expected[i].first, expected[i].second)) << sizes[i];
    EXPECT_EQ(node->valid(3 * (i + 1), 0).front(), sizes[i]);
  }
}

TEST_P(CombineConformanceTest, NoBytesAreCombinedAtOnceAndServedToTheirEnd) {
  const auto node = make_node(1);
  const auto child = make_node(2);
  node->open({1, {0, 0}, 1, false});  // not sealed, and still it is all there
  node->open({kOut, {0, 0}, 1, false});
  node->served[kId] = kOut;
  fetch(*child, *node, 1, {0, 0}, 1, kId);
  ASSERT_TRUE(runs_until([&] { return !child->accepted.empty(); }));
  node->combine(sum_of<float>({{1, 0, 0}}));
  EXPECT_THAT(node->combined, IsEmpty()) << "never from inside the call";
  ASSERT_TRUE(runs_until([&] { return child->ended_as(1, PullEnd::kComplete) && !node->combined.empty(); }));
  EXPECT_THAT(node->combined, ElementsAre(Pair(kOut, 0)));
}

TEST_P(CombineConformanceTest, OneInputIsCopiedAndAMeanIsDivided) {
  const auto node = make_node(1);
  constexpr std::uint64_t kCount = 1001;
  constexpr std::uint64_t kSize = kCount * sizeof(float);
  const auto a = numbers<float>(kCount, 1);
  const auto b = numbers<float>(kCount, 2);
  node->offer(ObjectId{1, 1}, 1, 0, to_bytes(a));
  node->offer(ObjectId{1, 2}, 2, 8192, to_bytes(b));
  node->open({3, {16'384, kSize}, 1, false});
  node->open({4, {24'576, kSize}, 1, false});
  node->combine(sum_of<float>({{1, 0, 0}}, 3));
  node->combine({4, 0, ReduceOp::kMean, DType::kF32, 2, true, {{1, 0, 0}, {2, 0, 0}}});
  ASSERT_TRUE(runs_until([&] { return node->combined.size() == 2; }));
  EXPECT_TRUE(node->holds(16'384, to_bytes(a)));
  auto mean = sum(a, b);
  for (float& value : mean) value /= 2;
  EXPECT_TRUE(node->holds(24'576, to_bytes(mean)));
}

TEST_P(CombineConformanceTest, WhatIsNotFinalEndsWhenItIsSealed) {
  const auto node = make_node(1);
  const auto child = make_node(2);
  constexpr std::uint64_t kSize = 800;
  const auto a = to_bytes(numbers<std::uint64_t>(100, 1));
  node->offer(ObjectId{1, 1}, 1, 0, a);
  node->open({kOut, {kMiB, kSize}, 2, false});
  node->served[kId] = kOut;
  const SliceRange half = slice_range(kSize, 2, 1);
  effect::Combine order = sum_of<std::uint64_t>({{1, 0, half.begin}}, kOut, 1);
  order.final = false;
  node->combine(order);
  child->open({1, {0, kSize}, 2, false});
  pull(*child, *node, 1, slice_request(1, kId, kSize, 1, 2));
  ASSERT_TRUE(runs_until([&] { return child->valid(1, 1).front() == kSize && !node->combined.empty(); }));
  run_for(Duration::ms(5));
  EXPECT_THAT(child->ended, IsEmpty());
  node->seal(kOut, 1);
  ASSERT_TRUE(runs_until([&] { return child->ended_as(1, PullEnd::kComplete); }));
  EXPECT_EQ(node->valid(kOut, 0).front(), 0U) << "the other slice is still to come";
  EXPECT_EQ(std::memcmp(child->arena.data() + half.begin, a.data() + half.begin, kSize - half.begin), 0);
}

TEST_P(CombineConformanceTest, WhatOneMakesIsTheNextOnesInput) {
  for (const std::uint32_t threads : {1, 3}) {
    const auto source = make_node(1);
    const auto node = make_node(2, with_threads(threads));
    constexpr std::uint64_t kCount = kMiB / 8;
    constexpr std::uint64_t kChain = 6;
    const auto first = numbers<std::uint64_t>(kCount, 1);
    write_slowly(*source, kId, 1, to_bytes(first));
    // Copies 1 and 101..106 are there or come; 2..7 are made, each from the one before it.
    for (std::uint64_t i = 1; i <= kChain; ++i) {
      node->offer(ObjectId{1, i}, 100 + i, (10 + i) * kMiB, to_bytes(numbers<std::uint64_t>(kCount, 10 + i)));
      node->open({1 + i, {i * kMiB, kMiB}, 1, false});
    }
    fetch(*node, *source, 1, {0, kMiB}, 1, kId);
    for (std::uint64_t i = kChain; i >= 1; --i)  // the last one first: it waits for the others
      node->combine(sum_of<std::uint64_t>({{i, 0, 0}, {100 + i, 0, 0}}, 1 + i));
    source->grow(1, 12'345);
    ASSERT_TRUE(runs_until([&] { return node->valid(1 + kChain, 0).front() == 12'344; })) << threads;
    source->grow(1, kMiB);
    ASSERT_TRUE(runs_until([&] { return node->combined.size() == kChain; })) << threads;
    auto expected = first;
    for (std::uint64_t i = 1; i <= kChain; ++i) expected = sum(expected, numbers<std::uint64_t>(kCount, 10 + i));
    EXPECT_TRUE(node->holds(kChain * kMiB, to_bytes(expected))) << threads;
  }
}

// --- copies of one slice

TEST_P(CombineConformanceTest, ASliceAloneIsPulledServedAndCombined) {
  const auto source = make_node(1);
  const auto relay = make_node(2);
  const auto root = make_node(3);
  constexpr std::uint32_t kSlices = 3;
  constexpr std::uint32_t kSlice = 1;
  constexpr std::uint64_t kCount = kMiB / 8;
  constexpr std::uint64_t kSize = kCount * 8;
  constexpr SliceRange kPart = slice_range(kSize, kSlices, kSlice);
  constexpr std::uint64_t kLength = kPart.end - kPart.begin;
  const auto a = numbers<std::uint64_t>(kCount, 1);
  const auto b = numbers<std::uint64_t>(kCount, 2);
  const auto c = numbers<std::uint64_t>(kCount, 3);
  source->offer(kId, 1, 0, to_bytes(a));
  relay->offer(kRight, 1, 0, to_bytes(b));
  root->offer(kRight, 1, 0, to_bytes(c));

  // The relay has room for that slice of the source and of what it makes of it, and not for more.
  const effect::OpenCopy only{2, {4 * kMiB, kLength}, kSlices, false, kSize, kSlice};
  const effect::OpenCopy made{3, {5 * kMiB, kLength}, kSlices, false, kSize, kSlice};
  std::fill(relay->arena.begin() + 4 * kMiB, relay->arena.end(), std::byte{0xAB});
  relay->open(only);
  EXPECT_EQ(relay->valid(2, kSlice).front(), kPart.begin);
  pull(*relay, *source, 2, slice_request(1, kId, kSize, kSlice, kSlices));
  relay->open(made);
  relay->served[kId] = 3;
  relay->combine(sum_of<std::uint64_t>({{2, kSlice, kPart.begin}, {1, 0, kPart.begin}}, 3, kSlice));
  // The root puts the sum into its place in the whole.
  root->open(only);
  pull(*root, *relay, 2, slice_request(1, kId, kSize, kSlice, kSlices));
  root->open({kOut, {8 * kMiB, kSize}, kSlices, false});
  root->combine(sum_of<std::uint64_t>({{2, kSlice, kPart.begin}, {1, 0, kPart.begin}}, kOut, kSlice));
  ASSERT_TRUE(runs_until([&] { return !root->combined.empty() && root->ended_as(1, PullEnd::kComplete); }));
  EXPECT_EQ(root->ended[1].valid.front(), kPart.end);
  EXPECT_EQ(root->valid(kOut, kSlice).front(), kPart.end);
  EXPECT_EQ(root->valid(kOut, 0).front(), 0U);
  const auto expected = to_bytes(sum(sum(a, b), c));
  EXPECT_EQ(std::memcmp(root->arena.data() + 8 * kMiB + kPart.begin, expected.data() + kPart.begin, kLength), 0);
  const auto after = relay->arena.begin() + 4 * kMiB + kLength;
  EXPECT_EQ(std::count(after, relay->arena.begin() + 5 * kMiB, std::byte{0xAB}),
            static_cast<std::ptrdiff_t>(kMiB - kLength))
      << "bytes outside the extent";

  // Nothing but that slice can be had there, sealed or not.
  root->open({20, {16 * kMiB, kSize}, kSlices, false});
  pull(*root, *relay, 20, slice_request(2, kId, kSize, 0, kSlices));
  ASSERT_TRUE(runs_until([&] { return root->ended_as(2, PullEnd::kRefused); }));
  relay->seal(3, kAllSlices);
  pull(*root, *relay, 20, slice_request(3, kId, kSize, 0, kSlices));
  ASSERT_TRUE(runs_until([&] { return root->ended_as(3, PullEnd::kRefused); }));
  root->open({21, {20 * kMiB, kSize}, 1, false});
  pull(*root, *relay, 21, slice_request(4, kId, kSize, 0, 1));
  ASSERT_TRUE(runs_until([&] { return root->ended_as(4, PullEnd::kRefused); }));
  pull(*root, *relay, 20, slice_request(5, kId, kSize, kSlice, kSlices));
  ASSERT_TRUE(runs_until([&] { return root->ended_as(5, PullEnd::kComplete); }));
}

TEST_P(CombineConformanceTest, SlicesOfOneCopyAreCombinedAndPulledSideBySide) {
  const auto other = make_node(1);
  const auto node = make_node(2, with_threads(2));
  constexpr std::uint32_t kSlices = 4;
  constexpr std::uint64_t kCount = kMiB / 4 + 5;
  constexpr std::uint64_t kSize = kCount * 4;
  const auto a = numbers<float>(kCount, 1);
  const auto b = numbers<float>(kCount, 2);
  const auto expected = to_bytes(sum(a, b));
  other->offer(kId, 1, 0, expected);
  node->offer(kLeft, 1, 0, to_bytes(a));
  node->offer(kRight, 2, 2 * kMiB, to_bytes(b));
  node->open({kOut, {4 * kMiB, kSize}, kSlices, false});
  for (std::uint32_t slice = 0; slice < kSlices; ++slice) {
    const std::uint64_t begin = slice_range(kSize, kSlices, slice).begin;
    if (slice % 2 == 0) node->combine(sum_of<float>({{1, 0, begin}, {2, 0, begin}}, kOut, slice));
    else pull(*node, *other, kOut, slice_request(slice, kId, kSize, slice, kSlices));
  }
  ASSERT_TRUE(runs_until([&] { return node->ended.size() == 2 && node->combined.size() == 2; }));
  EXPECT_TRUE(node->holds(4 * kMiB, expected));
  node->seal(kOut, kAllSlices);
}

// --- closing

TEST_P(CombineConformanceTest, ClosingWhatIsMadeStopsIt) {
  for (const std::uint32_t threads : {1, 2}) {
    const auto node = make_node(1, with_threads(threads));
    const auto child = make_node(2);
    constexpr std::uint64_t kSize = 6 * kMiB;
    node->offer(kLeft, 1, 0, to_bytes(numbers<float>(kSize / 4, 1)));
    node->offer(kRight, 2, kSize, to_bytes(numbers<float>(kSize / 4, 2)));
    node->open({3, {2 * kSize, kSize}, 1, false});  // never complete
    node->grow(3, kSize / 2);
    const auto marker = pattern(kSize, 77);
    for (CopyKey round = kOut; round < kOut + 12; ++round) {
      const bool waits = round % 3 == 0;  // for an input, in the middle; the others are caught at work
      node->open({round, {3 * kSize, kSize}, 1, false});
      node->served[kId] = round;
      fetch(*child, *node, round, {0, kSize}, round, kId);
      ASSERT_TRUE(runs_until([&] { return child->accepted.size() == round - kOut + 1; }));
      std::vector<effect::Combine::Input> inputs{{1, 0, 0}, {2, 0, 0}};
      if (waits) inputs.push_back({3, 0, 0});
      node->combine(sum_of<float>(std::move(inputs), round));
      const std::uint64_t reached = waits ? kSize / 2 : round % 3 == 1 ? 0 : kMiB;
      ASSERT_TRUE(lanes_run_until([&] { return node->valid(round, 0).front() >= reached; }));
      node->order.clear();
      node->close(round);
      ASSERT_TRUE(runs_until([&] { return !node->closed.empty() && node->closed.back() == round; }));
      EXPECT_THAT(node->order, ElementsAre("serve ended", "copy closed"));
      std::copy(marker.begin(), marker.end(), node->arena.begin() + 3 * kSize);
      run_for(Duration::ms(2));
      ASSERT_TRUE(node->holds(3 * kSize, marker)) << "late arithmetic in round " << round;
      ASSERT_TRUE(runs_until([&] { return child->ended.contains(round); }));
      child->close(round);
      ASSERT_TRUE(runs_until([&] { return !child->closed.empty() && child->closed.back() == round; }));
    }
    EXPECT_THAT(node->combined, IsEmpty());
    // Nobody uses the inputs any more.
    for (const CopyKey input : {1, 2, 3}) node->close(input);
    ASSERT_TRUE(runs_until([&] { return node->closed.size() == 12 + 3; }));
  }
}

TEST_P(CombineConformanceTest, InputsMayBeClosedAsSoonAsItIsSaidToBeDone) {
  const auto node = make_node(1, with_threads(2));
  constexpr std::uint64_t kSize = 2 * kMiB;
  const auto a = numbers<float>(kSize / 4, 1);
  node->offer(kLeft, 1, 0, to_bytes(a));
  node->offer(kRight, 2, kSize, to_bytes(a));
  node->open({kOut, {2 * kSize, kSize}, 1, false});
  node->when_combined = [&] {
    node->close(1);
    node->close(2);
  };
  node->combine(sum_of<float>({{1, 0, 0}, {2, 0, 0}}));
  ASSERT_TRUE(runs_until([&] { return node->closed.size() == 2; }));
  EXPECT_THAT(node->combined, SizeIs(1));
  EXPECT_TRUE(node->holds(2 * kSize, to_bytes(sum(a, a))));
}

TEST_P(CombineConformanceTest, ManyAtOnceOverSeveralThreads) {
  const auto left = make_node(1, with_threads(2));
  const auto right = make_node(2, with_threads(2));
  const auto node = make_node(3, with_threads(3));
  const auto child = make_node(4, with_threads(2));
  constexpr std::uint64_t kObjects = 30;
  constexpr std::uint64_t kCount = 25'001;
  constexpr std::uint64_t kSize = kCount * 8;
  constexpr std::uint64_t kRoom = round_up(kSize, 64);
  constexpr std::uint64_t kMade = 100;
  for (std::uint64_t i = 0; i < kObjects; ++i) {
    left->offer({1, i}, i + 1, i * kRoom, to_bytes(numbers<std::uint64_t>(kCount, i)));
    right->offer({2, i}, i + 1, i * kRoom, to_bytes(numbers<std::uint64_t>(kCount, 1000 + i)));
    fetch(*node, *left, 2 * i + 1, {3 * i * kRoom, kSize}, 2 * i + 1, {1, i});
    fetch(*node, *right, 2 * i + 2, {(3 * i + 1) * kRoom, kSize}, 2 * i + 2, {2, i});
    node->open({kMade + i, {(3 * i + 2) * kRoom, kSize}, 1, false});
    node->combine(sum_of<std::uint64_t>({{2 * i + 1, 0, 0}, {2 * i + 2, 0, 0}}, kMade + i));
    node->served[{3, i}] = kMade + i;
    fetch(*child, *node, i + 1, {i * kRoom, kSize}, i + 1, {3, i});
  }
  ASSERT_TRUE(runs_until([&] { return child->ended.size() == kObjects && node->combined.size() == kObjects; }));
  for (std::uint64_t i = 0; i < kObjects; ++i) {
    const auto expected = sum(numbers<std::uint64_t>(kCount, i), numbers<std::uint64_t>(kCount, 1000 + i));
    EXPECT_TRUE(child->ended_as(i + 1, PullEnd::kComplete)) << i;
    EXPECT_TRUE(child->holds(i * kRoom, to_bytes(expected))) << i;
  }
}

// --- what callers must not do

class CombineConformanceDeathTest : public CombineConformanceTest {
 protected:
  // The processes that are to die begin anew: threads do not survive a fork.
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};
HOPLITE_ALL_LINKS(CombineConformanceDeathTest);

TEST_P(CombineConformanceDeathTest, AnInputThatIsClosedTooEarlyIsABug) {
  const auto node = make_node(1);
  node->open({1, {0, 64}, 1, false});
  node->open({kOut, {64, 64}, 1, false});
  node->combine(sum_of<float>({{1, 0, 0}}));
  EXPECT_DEATH(node->close(1), "an input is closed before its combination has ended");
  node->close(kOut);
  EXPECT_DEATH(node->close(1), "an input is closed before its combination has ended");
  ASSERT_TRUE(runs_until([&] { return !node->closed.empty(); }));
  node->close(1);
}

TEST_P(CombineConformanceDeathTest, ASliceThatIsNotCompleteCannotBeSealed) {
  const auto node = make_node(1);
  node->open({1, {0, 128}, 2, false});
  EXPECT_DEATH(node->seal(1, 1), "not all bytes are there");
}

}  // namespace
}  // namespace hoplite
