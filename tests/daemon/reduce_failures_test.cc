// Reduces among real daemons that cannot, or must not, end as they began: each ends with a reason, and harms nothing else.
#include <algorithm>
#include <array>

#include "reduce_fixture.h"

namespace hoplite::testing {
namespace {

using ::testing::HasSubstr;

constexpr ReduceOptions kSumOfI64 = {.op = ReduceOp::kSum, .type = DType::kI64};

class ReduceFailures : public ReduceFixture {
 protected:
  // A get of `target` and its report tell of `code`, and name the object.
  void expect_fails(ObjectId target, Code code, ObjectId named) {
    for (std::size_t node = 0; node < clients_.size(); ++node) {
      const Error error = error_of(node, target);
      EXPECT_EQ(error.code, code) << node << ": " << error.to_string();
      EXPECT_THAT(error.message, HasSubstr(named.to_string())) << node;
    }
    const auto status = status_of(target);
    EXPECT_EQ(status.phase, ReducePhase::kFailed);
    ASSERT_TRUE(status.error.has_value());
    EXPECT_EQ(status.error->code, code);
    EXPECT_THAT(status.error->message, HasSubstr(named.to_string()));
  }
  // Until bytes of it have been reduced, and not all.
  void wait_for_the_middle(ObjectId target) {
    ASSERT_TRUE(eventually([&] {
      const auto status = clients_[0].reduce_status(target, 30s);
      return status.ok() && status->bytes > 0;
    }));
    ASSERT_EQ(status_of(target).phase, ReducePhase::kRunning);
  }
};

TEST_F(ReduceFailures, ASourceOfAnotherTypeIsNamed) {
  start(3);
  const auto ids = new_ids(3);
  const ObjectId target = reduce(ids, kSumOfI64);
  const auto right = numbers<std::int64_t>(1000, 1);
  put(0, ids[0], right);
  put(1, ids[1], numbers<double>(1000, 1));
  put(2, ids[2], right);
  expect_fails(target, Code::kTypeMismatch, ids[1]);
  expect_values(1, ids[0], right);  // nothing else is harmed
  expect_values(2, reduce(std::array{ids[0], ids[2]}, kSumOfI64), wrapping_sum({right, right}));
}

TEST_F(ReduceFailures, ASourceWithoutATypeIsTakenForWhatTheReduceSays) {
  start(2);
  const auto ids = new_ids(2);
  const auto ones = numbers<std::int64_t>(1000, 1);
  put(0, ids[0], ones);
  const ObjectId target = reduce(ids, kSumOfI64);
  ASSERT_TRUE(clients_[1].put(std::as_bytes(std::span(ones)), {.id = ids[1]}).ok());
  const auto view = clients_[0].get(target, {.timeout = std::chrono::seconds(20)});
  ASSERT_TRUE(view.ok()) << view.error().to_string();
  const auto* sums = reinterpret_cast<const std::int64_t*>(view->data());
  const auto expected = wrapping_sum({ones, ones});
  for (std::size_t i = 0; i < ones.size(); ++i) ASSERT_EQ(sums[i], expected[i]);
}

TEST_F(ReduceFailures, ASourceOfAnotherSizeIsNamed) {
  start(3);
  for (const std::size_t elements : {100UL, 100'000UL}) {
    const auto ids = new_ids(3);
    put(0, ids[0], numbers<std::int64_t>(elements, 1));
    put(1, ids[1], numbers<std::int64_t>(elements, 2));
    const ObjectId target = reduce(ids, kSumOfI64);
    put(2, ids[2], numbers<std::int64_t>(elements + 1, 3));
    expect_fails(target, Code::kSizeMismatch, ids[2]);
  }
}

TEST_F(ReduceFailures, AFailureInPlaceOfASourceDoesNotCount) {
  start(3);
  const auto ids = new_ids(3);
  const auto ones = numbers<std::int64_t>(1000, 1);
  const ObjectId all = reduce(ids, kSumOfI64);
  ReduceOptions first_two = kSumOfI64;
  first_two.count = 2;
  const ObjectId some = reduce(ids, first_two);
  ASSERT_TRUE(clients_[1].fail(ids[1], "out of cheese").ok());
  expect_fails(all, Code::kFailed, ids[1]);
  EXPECT_THAT(clients_[2].get(all, {.timeout = 30s}).error().message, HasSubstr("out of cheese"));
  put(0, ids[0], ones);
  put(2, ids[2], ones);
  expect_values(1, some, wrapping_sum({ones, ones}));
}

TEST_F(ReduceFailures, ADeletedSourceIsNamed) {
  start(2);
  const auto ids = new_ids(2);
  put_integers(ids, 1000);
  ASSERT_TRUE(clients_[0].remove(ids[1], 30s).ok());
  expect_fails(reduce(ids, kSumOfI64), Code::kDeleted, ids[1]);
}

TEST_F(ReduceFailures, ADeletedSourceIsNotMissedIfThereAreEnough) {
  start(3);
  const auto ids = new_ids(3);
  const auto arrays = put_integers(ids, 1000);
  ASSERT_TRUE(clients_[0].remove(ids[1], 30s).ok());
  const ObjectId target = reduce(ids, {.type = DType::kI64, .count = 2});
  expect_values(1, target, wrapping_sum({arrays[0], arrays[2]}));
}

TEST_F(ReduceFailures, ASourceThatIsDeletedWhileItIsUsedCountsAllTheSame) {
  start_slow(3, "20mbit");
  const auto ids = new_ids(3);
  const auto arrays = put_integers(ids, 1'000'000);
  const ObjectId target = reduce(ids, kSumOfI64);
  ASSERT_NO_FATAL_FAILURE(wait_for_the_middle(target));
  ASSERT_TRUE(clients_[0].remove(ids[1], 30s).ok());
  expect_values(0, target, wrapping_sum(arrays));
}

TEST_F(ReduceFailures, DeletingTheTargetCancels) {
  start_slow(3, "20mbit");
  const auto ids = new_ids(3);
  put_integers(ids, 1'000'000);
  const ObjectId target = reduce(ids, kSumOfI64);
  auto pending = clients_[1].get_async(target, {.timeout = kPatience});
  ASSERT_NO_FATAL_FAILURE(wait_for_the_middle(target));
  const auto removed = clients_[2].remove(target, 30s);
  ASSERT_TRUE(removed.ok()) << removed.error().to_string();
  EXPECT_TRUE(*removed);
  EXPECT_EQ(pending.get().code(), Code::kDeleted);
  for (const ObjectId id : ids) ASSERT_TRUE(clients_[0].remove(id, 30s).ok());
  for (Client& client : clients_)
    EXPECT_TRUE(eventually([&] {
      const auto status = client.status();
      return status.ok() && status->used_bytes == 0;
    })) << "all memory is given back, that of the tree too";
}

TEST_F(ReduceFailures, ADeadlineEndsAReduceAndSaysWhoWasAwaited) {
  start(2);
  const auto ids = new_ids(2);
  put(0, ids[0], numbers<std::int64_t>(1000, 1));
  ReduceOptions options = kSumOfI64;
  options.timeout = 300ms;
  expect_fails(reduce(ids, options), Code::kTimedOut, ids[1]);
}

TEST_F(ReduceFailures, ATargetThatExistsIsNotReducedAgain) {
  start(2);
  const auto ids = new_ids(2);
  const auto arrays = put_integers(ids, 1000);
  ReduceOptions options = kSumOfI64;
  options.target = clients_[1].new_id();
  const ObjectId target = reduce(ids, options);
  expect_values(0, target, wrapping_sum(arrays));
  EXPECT_EQ(clients_[0].reduce(ids, options).code(), Code::kExists);
  EXPECT_EQ(clients_[0].put(pattern(10, 1), {.id = target, .timeout = 30s}).code(), Code::kExists);
  options.target = ids[0];
  EXPECT_EQ(clients_[1].reduce(std::array{ids[1]}, options).code(), Code::kExists);
}

TEST_F(ReduceFailures, NoRoomForTheResultAnywhereIsSaid) {
  start(2, {.memory = "32MiB"});
  const auto ids = new_ids(2);
  put_integers(ids, 20 * 131'072);  // 20 MiB on each
  ReduceOptions options = kSumOfI64;
  options.timeout = 2s;
  const ObjectId target = reduce(ids, options);
  for (std::size_t node = 0; node < 2; ++node) {
    const Error error = error_of(node, target);
    EXPECT_EQ(error.code, Code::kStoreFull) << error.to_string();
    EXPECT_THAT(error.message, HasSubstr("MiB"));
  }
}

TEST_F(ReduceFailures, NoRoomAtAReaderIsItsOwnTrouble) {
  cluster_.start({.memory = "128MiB"});
  cluster_.start({.memory = "128MiB"});
  cluster_.start({.memory = "16MiB"});
  cluster_.wait_for_members(3);
  for (std::size_t i = 0; i < 3; ++i) clients_.push_back(cluster_[i].connect());
  const std::vector ids = {clients_[0].new_id(), clients_[1].new_id()};
  const auto arrays = put_integers(ids, 20 * 131'072);
  const ObjectId target = reduce(ids, kSumOfI64);
  EXPECT_EQ(clients_[2].get(target, {.timeout = 2s}).code(), Code::kStoreFull);
  expect_values(1, target, wrapping_sum(arrays));
}

TEST_F(ReduceFailures, ALostSourceIsNamedOrWaitedFor) {
  start(3);
  const auto ids = new_ids(2);
  const auto mine = numbers<std::int64_t>(100'000, 1);
  put(0, ids[0], mine);
  put(2, ids[1], numbers<std::int64_t>(100'000, 2));
  cluster_[2].kill();
  clients_.pop_back();
  cluster_.wait_for_members(2);
  expect_fails(reduce(ids, kSumOfI64), Code::kLost, ids[1]);

  ReduceOptions options = kSumOfI64;
  options.on_lost = OnLost::kWait;
  const ObjectId target = reduce(ids, options);
  put(1, ids[1], mine);  // again, and different
  expect_values(1, target, wrapping_sum({mine, mine}));
}

// Which sources count is the reduce's to choose; the result must be theirs exactly.
TEST_F(ReduceFailures, ASourceThatDiesInTheMiddleIsReplacedByTheSpare) {
  start_slow(5, "20mbit");
  std::vector<ObjectId> ids;
  for (std::size_t i = 0; i < 4; ++i) ids.push_back(clients_[0].new_id());
  std::vector<std::vector<std::int64_t>> arrays;
  for (std::size_t i = 0; i < 4; ++i) {
    arrays.push_back(numbers<std::int64_t>(1'000'000, i));
    put(i + 1, ids[i], arrays.back());  // node 0 has none: it coordinates
  }
  const ObjectId target = reduce(ids, {.type = DType::kI64, .count = 3});
  ASSERT_NO_FATAL_FAILURE(wait_for_the_middle(target));
  const auto before = status_of(target);
  const auto victim = std::find_if(before.sources.begin(), before.sources.end(),
                                   [](const auto& source) { return source.state == SourceState::kUsed; });
  ASSERT_NE(victim, before.sources.end());
  cluster_[static_cast<std::size_t>(victim - before.sources.begin()) + 1].kill();

  const auto view = clients_[0].get(target, {.timeout = kPatience});
  ASSERT_TRUE(view.ok()) << view.error().to_string();
  const auto after = status_of(target);
  std::vector<std::vector<std::int64_t>> used;
  for (std::size_t i = 0; i < after.sources.size(); ++i)
    if (after.sources[i].state == SourceState::kUsed) used.push_back(arrays[i]);
  ASSERT_EQ(used.size(), 3U);
  EXPECT_TRUE(values_of<std::int64_t>(*view) == wrapping_sum(used));
}

// What was pulled of one window is of no use for another one.
TEST_F(ReduceFailures, AMedianIsMendedInTheMiddleOfItsWindows) {
  start_slow(5, "30mbit");
  std::vector<ObjectId> ids;
  std::vector<std::vector<float>> arrays;
  for (std::size_t i = 0; i < 4; ++i) {
    ids.push_back(clients_[0].new_id());
    arrays.push_back(numbers<float>(2 << 20, i));
    put(i + 1, ids[i], arrays.back());  // node 0 has none: it coordinates
  }
  const ObjectId target = reduce(ids, {.op = ReduceOp::kMedian, .type = DType::kF32, .count = 3});
  ASSERT_TRUE(eventually([&] { return status_of(target).bytes > 2 << 20; }));
  const auto before = status_of(target);
  ASSERT_EQ(before.phase, ReducePhase::kRunning);
  const auto root = std::ranges::find_if(before.slots, [](const auto& slot) { return !slot.parent; });
  ASSERT_NE(root, before.slots.end());
  const auto victim = std::ranges::find_if(before.sources, [&](const auto& source) {
    return source.state == SourceState::kUsed && source.node != root->node;
  });
  ASSERT_NE(victim, before.sources.end());
  cluster_[static_cast<std::size_t>(victim - before.sources.begin()) + 1].kill();

  const auto view = clients_[0].get(target, {.timeout = kPatience});
  ASSERT_TRUE(view.ok()) << view.error().to_string();
  const auto after = status_of(target);
  std::vector<const std::vector<float>*> used;
  for (std::size_t i = 0; i < after.sources.size(); ++i)
    if (after.sources[i].state == SourceState::kUsed) used.push_back(&arrays[i]);
  ASSERT_EQ(used.size(), 3U);
  const std::vector<float> values = values_of<float>(*view);
  for (std::size_t e = 0; e < values.size(); ++e) {
    const float a = (*used[0])[e];
    const float b = (*used[1])[e];
    ASSERT_EQ(values[e], std::max(std::min(a, b), std::min(std::max(a, b), (*used[2])[e]))) << e;
  }
}

}  // namespace
}  // namespace hoplite::testing
