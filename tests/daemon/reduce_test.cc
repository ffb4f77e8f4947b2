// Reduces, allreduces and gathers among real daemons: the results.
#include <algorithm>
#include <array>
#include <cmath>
#include <thread>

#include "reduce_fixture.h"

namespace hoplite::testing {
namespace {

constexpr ReduceOptions kSumOfI64 = {.op = ReduceOp::kSum, .type = DType::kI64};

class Reduce : public ReduceFixture {};

TEST_F(Reduce, SumsOfIntegersAreExactOnEveryNode) {
  start(4);
  for (const std::size_t elements : {1UL, 100UL, 8'193UL, 500'003UL}) {  // inline, small, odd, large
    const auto ids = new_ids(4);
    const auto arrays = put_integers(ids, elements);
    const ObjectId target = reduce(ids, kSumOfI64);
    for (std::size_t node = 0; node < 4; ++node) expect_values(node, target, wrapping_sum(arrays));
  }
}

TEST_F(Reduce, SumsOfFloatsAreExactWithinRounding) {
  start(4);
  constexpr std::size_t kElements = 300'001;
  const auto ids = new_ids(4);
  std::vector<double> expected(kElements, 0);
  std::vector<double> magnitude(kElements, 0);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto values = numbers<float>(kElements, i);
    put(i, ids[i], values);
    for (std::size_t e = 0; e < kElements; ++e) {
      expected[e] += static_cast<double>(values[e]);
      magnitude[e] += std::abs(static_cast<double>(values[e]));
    }
  }
  const ObjectId target = reduce(ids, {.type = DType::kF32});
  const auto view = clients_[2].get(target, {.timeout = kPatience});
  ASSERT_TRUE(view.ok()) << view.error().to_string();
  const auto sum = values_of<float>(*view);
  ASSERT_EQ(sum.size(), kElements);
  for (std::size_t e = 0; e < kElements; ++e)
    ASSERT_NEAR(static_cast<double>(sum[e]), expected[e], 3 * std::ldexp(magnitude[e], -23)) << e;
}

// Three arrays on three nodes, for which every operator gives something else.
TEST_F(Reduce, EveryOperatorDoesWhatItsNameSays) {
  start(3);
  const auto check = [&]<typename T>(T) {
    const auto ids = new_ids(3);
    put(0, ids[0], std::vector<T>{2, 1, 0});
    put(1, ids[1], std::vector<T>{3, 2, 3});
    put(2, ids[2], std::vector<T>{7, 6, 9});
    const auto expect = [&](ReduceOp op, const std::vector<T>& expected) {
      SCOPED_TRACE(std::string(to_string(op)) + " of " + std::string(to_string(dtype_of<T>())));
      expect_values(1, reduce(ids, {.op = op, .type = dtype_of<T>()}), expected);
    };
    expect(ReduceOp::kSum, {12, 9, 12});
    expect(ReduceOp::kProduct, {42, 12, 0});
    expect(ReduceOp::kMin, {2, 1, 0});
    expect(ReduceOp::kMax, {7, 6, 9});
    if constexpr (std::is_floating_point_v<T>) {
      expect(ReduceOp::kMean, {4, 3, 4});
      expect(ReduceOp::kMedian, {3, 2, 3});
    }
  };
  check(float{});
  check(double{});
  check(std::int32_t{});
  check(std::uint8_t{});
}

TEST_F(Reduce, OfOneSourceIsThatSource) {
  start(2);
  for (const std::size_t elements : {3UL, 200'000UL}) {
    const std::vector ids = {clients_[1].new_id()};
    const auto arrays = put_integers(ids, elements);  // on node 0
    expect_values(1, reduce(ids, kSumOfI64), arrays[0]);
    const std::vector floats = {clients_[1].new_id()};
    put(1, floats[0], std::vector<float>(elements, 1.5F));
    expect_values(0, reduce(floats, {.op = ReduceOp::kMean}), std::vector<float>(elements, 1.5F));
  }
}

TEST_F(Reduce, SourcesMayBePutLongAfterTheCall) {
  start(3);
  for (const std::size_t elements : {10UL, 300'000UL}) {
    const auto ids = new_ids(3);
    const ObjectId target = reduce(ids, kSumOfI64);
    auto early = clients_[2].get_async(target, {.timeout = kPatience});
    EXPECT_FALSE(early.wait_for(50ms));
    const auto status = status_of(target);
    EXPECT_EQ(status.phase, ReducePhase::kWaiting);
    EXPECT_EQ(status.awaited(), 3U);
    const auto arrays = put_integers(ids, elements);
    const auto view = early.get();
    ASSERT_TRUE(view.ok()) << view.error().to_string();
    EXPECT_EQ(values_of<std::int64_t>(*view), wrapping_sum(arrays));
  }
}

TEST_F(Reduce, OfTheFirstTwoOfFourWaitsForNobodyElse) {
  start(4);
  constexpr std::size_t kElements = 100'000;
  const auto ids = new_ids(4);
  const ObjectId target = reduce(ids, {.type = DType::kI64, .count = 2});
  const std::vector arrays = {numbers<std::int64_t>(kElements, 7), numbers<std::int64_t>(kElements, 8)};
  put(3, ids[3], arrays[0]);
  put(1, ids[1], arrays[1]);
  expect_values(2, target, wrapping_sum(arrays));
  put(0, ids[0], numbers<std::int64_t>(kElements, 9));  // too late
  expect_values(0, target, wrapping_sum(arrays));
  const auto status = status_of(target);
  ASSERT_EQ(status.sources.size(), 4U);
  EXPECT_EQ(status.phase, ReducePhase::kDone);
  EXPECT_EQ(status.sources[3].state, SourceState::kUsed);
  EXPECT_EQ(status.sources[1].state, SourceState::kUsed);
  EXPECT_NE(status.sources[0].state, SourceState::kUsed);
  EXPECT_EQ(status.sources[2].state, SourceState::kAwaited);
}

TEST_F(Reduce, SeveralSourcesOnOneNodeAreCombinedThere) {
  start(2);
  const auto ids = new_ids(10);
  const auto arrays = put_integers(ids, 70'000);  // five on each
  const std::uint64_t before = clients_[1].status()->bytes_out;
  const ObjectId target = reduce(ids, kSumOfI64);
  expect_values(0, target, wrapping_sum(arrays));
  EXPECT_LE(clients_[1].status()->bytes_out - before, 70'000 * 8) << "five arrays left as one, or none";
}

TEST_F(Reduce, SourcesCanBeAddedWhileTooFewHaveArrived) {
  start(2);
  const auto ids = new_ids(3);
  const ObjectId target =
      reduce(std::span(ids).first(1), {.type = DType::kI64, .count = 3, .more_sources_follow = true});
  const auto arrays = put_integers(ids, 1000);
  const auto added = clients_[1].add_sources(target, std::span(ids).subspan(1), 30s);
  ASSERT_TRUE(added.ok()) << added.error().to_string();
  expect_values(1, target, wrapping_sum(arrays));
  EXPECT_FALSE(clients_[1].add_sources(target, new_ids(1), 30s).ok()) << "all have arrived";
}

TEST_F(Reduce, ATargetMayBeASourceOfAnother) {
  start(4);
  constexpr std::size_t kElements = 200'000;
  const auto ids = new_ids(4);
  const ObjectId left = reduce(std::span(ids).first(2), kSumOfI64);
  const ObjectId right = reduce(std::span(ids).last(2), kSumOfI64);
  const auto both = clients_[3].reduce(std::array{left, right}, kSumOfI64);
  ASSERT_TRUE(both.ok()) << both.error().to_string();
  const auto arrays = put_integers(ids, kElements);
  expect_values(1, *both, wrapping_sum(arrays));
  expect_values(2, left, wrapping_sum({arrays[0], arrays[1]}));
}

TEST_F(Reduce, OfArraysWithoutElementsHasNone) {
  start(3);
  const auto ids = new_ids(3);
  const ObjectId target = reduce(ids, kSumOfI64);
  put_integers(ids, 0);
  expect_values(1, target, std::vector<std::int64_t>());
  EXPECT_EQ(status_of(target).phase, ReducePhase::kDone);
}

TEST_F(Reduce, TheReportSaysWhoDidWhat) {
  start(3);
  const auto ids = new_ids(3);
  const auto arrays = put_integers(ids, 50'000);
  const ObjectId target = reduce(ids, kSumOfI64);
  expect_values(0, target, wrapping_sum(arrays));
  for (const std::size_t asked : {0UL, 2UL}) {  // the coordinator, and somebody else
    const auto status = status_of(target, asked);
    EXPECT_EQ(status.target, target);
    EXPECT_EQ(status.type, DType::kI64);
    EXPECT_EQ(status.phase, ReducePhase::kDone);
    EXPECT_EQ(status.coordinator, node_name(0));
    EXPECT_EQ(status.count, 3U);
    EXPECT_EQ(status.awaited(), 0U);
    EXPECT_EQ(status.size, 50'000U * 8);
    EXPECT_EQ(status.bytes, status.size);
    ASSERT_EQ(status.sources.size(), 3U);
    std::vector<std::uint32_t> orders;
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(status.sources[i].id, ids[i]);
      EXPECT_EQ(status.sources[i].state, SourceState::kUsed);
      EXPECT_EQ(status.sources[i].node, node_name(i));
      orders.push_back(status.sources[i].order);
    }
    EXPECT_THAT(orders, ::testing::UnorderedElementsAre(1, 2, 3));
  }
  const auto unknown = clients_[1].reduce_status(clients_[0].new_id(), 30s);
  EXPECT_FALSE(unknown.ok());
}

TEST_F(Reduce, TheResultCanBeFollowedWhileItGrows) {
  start_slow(3, "80mbit");
  constexpr std::size_t kElements = 1'500'000;  // 12 MB: more than a second
  const auto ids = new_ids(2);
  const auto arrays = put_integers(ids, kElements);
  const auto expected = wrapping_sum(arrays);
  auto follower = clients_[2].follow(reduce(ids, kSumOfI64), {.timeout = kPatience});
  ASSERT_TRUE(follower.ok()) << follower.error().to_string();
  std::size_t steps = 0;
  while (true) {
    const auto progress = follower->next(kPatience);
    ASSERT_TRUE(progress.ok()) << progress.error().to_string();
    if (progress->event == Follower::Event::kReset) continue;
    const std::size_t whole = progress->bytes.size() / 8 * 8;
    ASSERT_TRUE(whole == 0 || std::memcmp(progress->bytes.data(), expected.data(), whole) == 0);
    if (progress->event == Follower::Event::kComplete) break;
    if (progress->bytes.size() > 0 && progress->bytes.size() < progress->size) ++steps;
  }
  EXPECT_EQ(follower->view().size(), kElements * 8);
  EXPECT_GT(steps, 2U) << "it was seen growing";
}

TEST_F(Reduce, AnAllReduceReachesEveryNode) {
  start(4);
  for (const Spread spread : {Spread::kByCost, Spread::kWhole, Spread::kSlices})
    for (const std::size_t elements : {1UL, 1'000UL, 400'001UL}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(spread)) + ", " + std::to_string(elements));
      const auto ids = new_ids(4);
      const auto target = clients_[1].allreduce(ids, {.type = DType::kI64, .spread = spread});
      ASSERT_TRUE(target.ok()) << target.error().to_string();
      std::vector<Future<View>> gets;
      for (Client& client : clients_) gets.push_back(client.get_async(*target, {.timeout = kPatience}));
      const auto expected = wrapping_sum(put_integers(ids, elements));
      for (auto& get : gets) {
        const auto view = get.get();
        ASSERT_TRUE(view.ok()) << view.error().to_string();
        EXPECT_TRUE(values_of<std::int64_t>(*view) == expected);
      }
    }
}

TEST_F(Reduce, AReduceScatterGivesThePartsOfTheSum) {
  start(3);
  for (const std::size_t elements : {5UL, 300'007UL}) {
    const auto ids = new_ids(3);
    const auto expected = wrapping_sum(put_integers(ids, elements));
    const auto targets = clients_[0].reduce_scatter(ids, kSumOfI64);
    ASSERT_TRUE(targets.ok()) << targets.error().to_string();
    ASSERT_EQ(targets->size(), 3U);
    std::vector<std::int64_t> joined;
    for (std::size_t i = 0; i < targets->size(); ++i) {
      const auto view = clients_[i].get((*targets)[i], {.timeout = kPatience});
      ASSERT_TRUE(view.ok()) << view.error().to_string();
      const auto part = values_of<std::int64_t>(*view);
      joined.insert(joined.end(), part.begin(), part.end());
    }
    EXPECT_TRUE(joined == expected);
  }
}

TEST_F(Reduce, AGatherBringsEverythingAndAnAllGatherDoesSoEverywhere) {
  start(4);
  const auto ids = new_ids(12);
  std::vector<std::vector<std::int64_t>> arrays;
  std::thread putter([&] { arrays = put_integers(ids, 60'000); });  // while the gather waits
  const auto views = clients_[0].gather(ids, {.timeout = kPatience});
  putter.join();
  ASSERT_TRUE(views.ok()) << views.error().to_string();
  ASSERT_EQ(views->size(), ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) EXPECT_TRUE(values_of<std::int64_t>((*views)[i]) == arrays[i]) << i;
  std::vector<std::thread> threads;
  for (Client& client : clients_)
    threads.emplace_back([&] {
      const auto all = client.allgather(ids, {.timeout = kPatience});
      ASSERT_TRUE(all.ok()) << all.error().to_string();
      for (std::size_t i = 0; i < ids.size(); ++i) EXPECT_TRUE(values_of<std::int64_t>((*all)[i]) == arrays[i]) << i;
    });
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace hoplite::testing
