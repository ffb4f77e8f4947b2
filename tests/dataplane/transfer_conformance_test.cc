// What the data plane promises over every kind of link about bulk bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/dataplane/conformance.h"

namespace hoplite {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

class TransferConformanceTest : public ConformanceTest {
 protected:
  static constexpr ObjectId kId{7, 1};

  // Opens a growing copy and pulls the object into it.
  void fetch(TestNode& child, const TestNode& parent, CopyKey copy, Extent extent, TransferId transfer,
             ObjectId id = kId) const {
    child.open({copy, extent, 1, false});
    pull(child, parent, copy, request(transfer, id));
  }
};
HOPLITE_ALL_LINKS(TransferConformanceTest);

TEST_P(TransferConformanceTest, ObjectsOfEverySizeArriveByteForByte) {
  const auto parent = make_node(1);
  const auto child = make_node(2);
  const std::vector<std::uint64_t> sizes{0, 1, 63, 64, 65, 4096, 100'001, kMiB, kMiB + 1, 9 * kMiB + 77};
  std::uint64_t offset = 0;
  for (std::uint64_t i = 0; i < sizes.size(); ++i) {
    const ObjectId id{7, i + 1};
    parent->offer(id, i + 1, offset, pattern(sizes[i], i));
    fetch(*child, *parent, i + 1, {offset, sizes[i]}, i + 1, id);
    offset += round_up(sizes[i], 64);
  }
  ASSERT_TRUE(runs_until([&] { return child->ended.size() == sizes.size(); }));
  offset = 0;
  for (std::uint64_t i = 0; i < sizes.size(); ++i) {
    EXPECT_TRUE(child->ended_as(i + 1, PullEnd::kComplete)) << sizes[i];
    EXPECT_EQ(child->ended[i + 1].valid.front(), sizes[i]);
    EXPECT_EQ(child->valid(i + 1, 0).front(), sizes[i]);
    EXPECT_TRUE(child->holds(offset, pattern(sizes[i], i))) << sizes[i];
    offset += round_up(sizes[i], 64);
  }
  ASSERT_TRUE(runs_until([&] { return parent->serves_ended.size() == sizes.size(); }));
  const std::uint64_t total = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
  EXPECT_EQ(parent->bytes_sent(), total);
  EXPECT_THAT(child->accepted, SizeIs(sizes.size()));
}

TEST_P(TransferConformanceTest, ARelayPassesOnWhatItHasNotFinished) {
  const auto source = make_node(1);
  const auto relay = make_node(2);
  const auto child = make_node(3);
  constexpr std::uint64_t kSize = 4 * kMiB;
  const auto bytes = pattern(kSize, 1);
  std::copy(bytes.begin(), bytes.end(), source->arena.begin());
  source->open({1, {0, kSize}, 1, false});
  source->served[kId] = 1;
  fetch(*relay, *source, 1, {0, kSize}, 1);
  relay->served[kId] = 1;
  fetch(*child, *relay, 1, {0, kSize}, 1);
  // The source has half of it: exactly that half reaches the end of the chain.
  source->grow(1, kSize / 2);
  ASSERT_TRUE(runs_until([&] { return child->valid(1, 0).front() == kSize / 2; }));
  EXPECT_THAT(relay->ended, IsEmpty());
  source->grow(1, kSize);
  ASSERT_TRUE(runs_until([&] { return child->valid(1, 0).front() == kSize; }));
  EXPECT_THAT(relay->ended, IsEmpty()) << "all bytes are there, but nobody said that they are final";
  source->seal(1, kAllSlices);
  ASSERT_TRUE(runs_until([&] { return relay->ended_as(1, PullEnd::kComplete); }));
  // The end of a slice is passed on like its bytes; the relay's loop is not asked.
  ASSERT_TRUE(runs_until([&] { return child->ended_as(1, PullEnd::kComplete); }));
  EXPECT_TRUE(child->holds(0, bytes));
}

TEST_P(TransferConformanceTest, SmallStepsReachTheChildOneByOne) {
  const auto parent = make_node(1);
  const auto child = make_node(2);
  const auto bytes = pattern(kMiB, 1);
  std::copy(bytes.begin(), bytes.end(), parent->arena.begin());
  parent->open({1, {0, kMiB}, 1, false});
  parent->served[kId] = 1;
  fetch(*child, *parent, 1, {0, kMiB}, 1);
  for (const std::uint64_t step : {1, 2, 100, 1500, 70'000}) {
    parent->grow(1, step);
    ASSERT_TRUE(runs_until([&] { return child->valid(1, 0).front() == step; })) << step;
    ASSERT_EQ(std::memcmp(child->arena.data(), bytes.data(), step), 0);
  }
}

TEST_P(TransferConformanceTest, ManyStreamsAtOnceOverSeveralThreads) {
  NodeOptions options;
  options.lanes = 3;
  const auto source = make_node(1, options);
  const auto relay = make_node(2, options);
  const auto child = make_node(3, options);
  constexpr std::uint64_t kCount = 60;
  constexpr std::uint64_t kSize = 200'000;
  constexpr std::uint64_t kRoom = round_up(kSize, 64);
  for (std::uint64_t i = 1; i <= kCount; ++i) {
    const ObjectId id{7, i};
    source->offer(id, i, i * kRoom, pattern(kSize, i));
    fetch(*relay, *source, i, {i * kRoom, kSize}, i, id);
    relay->served[id] = i;
    fetch(*child, *relay, i, {i * kRoom, kSize}, i, id);
  }
  ASSERT_TRUE(runs_until([&] { return relay->ended.size() == kCount; }));
  for (std::uint64_t i = 1; i <= kCount; ++i) relay->seal(i, kAllSlices);
  ASSERT_TRUE(runs_until([&] { return child->ended.size() == kCount; }));
  for (std::uint64_t i = 1; i <= kCount; ++i) {
    EXPECT_TRUE(child->ended_as(i, PullEnd::kComplete));
    EXPECT_TRUE(child->holds(i * kRoom, pattern(kSize, i))) << i;
  }
}

TEST_P(TransferConformanceTest, SlicesArePulledOnTheirOwn) {
  const auto left = make_node(1);
  const auto right = make_node(2);
  const auto child = make_node(3);
  constexpr std::uint64_t kSize = 3 * kMiB + 5;
  constexpr std::uint32_t kSlices = 3;
  left->offer(kId, 1, 0, pattern(kSize, 1), kSlices);
  right->offer(kId, 1, 0, pattern(kSize, 1), 1);  // a sealed copy has all bytes, however it was cut
  child->open({1, {64, kSize}, kSlices, false});
  for (std::uint32_t slice = 0; slice < kSlices; ++slice) {
    const PullRequest pull_slice = slice_request(slice + 1, kId, kSize, slice, kSlices);
    EXPECT_EQ(child->valid(1, slice).front(), pull_slice.offset);
    pull(*child, slice == 1 ? *right : *left, 1, pull_slice);
  }
  ASSERT_TRUE(runs_until([&] { return child->ended.size() == kSlices; }));
  for (std::uint32_t slice = 0; slice < kSlices; ++slice) {
    EXPECT_TRUE(child->ended_as(slice + 1, PullEnd::kComplete));
    EXPECT_EQ(child->ended[slice + 1].valid.front(), slice_range(kSize, kSlices, slice).end);
  }
  EXPECT_TRUE(child->holds(64, pattern(kSize, 1)));
}

TEST_P(TransferConformanceTest, APullIsResumedFromAnotherParentWhereItStopped) {
  auto first = make_node(1);
  const auto second = make_node(2);
  const auto child = make_node(3);
  constexpr std::uint64_t kSize = 2 * kMiB;
  const auto bytes = pattern(kSize, 1);
  std::copy(bytes.begin(), bytes.end(), first->arena.begin());
  first->open({1, {0, kSize}, 1, false});
  first->served[kId] = 1;
  fetch(*child, *first, 1, {0, kSize}, 1);
  first->grow(1, 777'777);
  ASSERT_TRUE(runs_until([&] { return child->valid(1, 0).front() == 777'777; }));
  first.reset();
  ASSERT_TRUE(runs_until([&] { return child->ended_as(1, PullEnd::kConnectionLost); }));
  EXPECT_EQ(child->ended[1].valid.front(), 777'777U);
  second->offer(kId, 1, 0, bytes);
  pull(*child, *second, 1, request(2, kId, 777'777));
  ASSERT_TRUE(runs_until([&] { return child->ended_as(2, PullEnd::kComplete); }));
  EXPECT_TRUE(child->holds(0, bytes));
  EXPECT_EQ(second->bytes_sent(), kSize - 777'777);
}

TEST_P(TransferConformanceTest, AParentThatCannotBeReachedOrIsSomebodyElse) {
  const auto child = make_node(2);
  const auto other = make_node(3);
  child->open({1, {0, 100}, 1, false});
  child->pull_from({NodeId{9}, 1}, {"127.0.0.1", 1}, 1, request(1, kId), patience);
  ASSERT_TRUE(runs_until([&] { return child->ended_as(1, PullEnd::kConnectionLost); }));
  child->pull_from({NodeId{9}, 1}, other->address(), 1, request(2, kId), patience);
  ASSERT_TRUE(runs_until([&] { return child->ended_as(2, PullEnd::kConnectionLost); }));
  EXPECT_THAT(other->asked, IsEmpty());
}

TEST_P(TransferConformanceTest, RefusedAndClosedByTheParent) {
  const auto parent = make_node(1);
  const auto child = make_node(2);
  fetch(*child, *parent, 1, {0, 100}, 1, {7, 99});
  ASSERT_TRUE(runs_until([&] { return parent->asked.size() == 1; }));
  EXPECT_EQ(parent->asked[0].peer, child->self);
  parent->refuse(parent->asked[0].channel, 1, Code::kUnavailable);
  ASSERT_TRUE(runs_until([&] { return child->ended_as(1, PullEnd::kRefused); }));

  parent->open({5, {0, kMiB}, 1, false});
  parent->served[kId] = 5;
  fetch(*child, *parent, 2, {0, kMiB}, 2);
  ASSERT_TRUE(runs_until([&] { return child->accepted.size() == 1; }));
  parent->order.clear();
  parent->close(5);
  ASSERT_TRUE(runs_until([&] { return child->ended_as(2, PullEnd::kAborted) && !parent->closed.empty(); }));
  EXPECT_THAT(parent->order, ElementsAre("serve ended", "copy closed"));
}

TEST_P(TransferConformanceTest, ARefusedRangeDoesNotHurt) {
  const auto parent = make_node(1);
  const auto child = make_node(2);
  parent->offer(kId, 1, 0, pattern(1000, 1));
  child->open({1, {0, 5000}, 1, false});  // it believes that the object is larger
  child->grow(1, 3000);
  pull(*child, *parent, 1, request(1, kId, 3000));
  ASSERT_TRUE(runs_until([&] { return child->ended_as(1, PullEnd::kRefused); }));
  ASSERT_TRUE(runs_until([&] { return !parent->serves_ended.empty(); }));
}

TEST_P(TransferConformanceTest, AnExtentIsUsedAgainAfterACancelAndNoLateByteLandsThere) {
  NodeOptions options;
  options.slow = true;  // so that it can be caught in the middle
  const auto parent = make_node(1, options);
  const auto child = make_node(2);
  constexpr std::uint64_t kSize = 6 * kMiB;
  parent->offer_unsealed(kId, 1, pattern(kSize, 1));
  for (std::uint64_t round = 1; round <= 10; ++round) {
    fetch(*child, *parent, round, {0, kSize}, round);
    ASSERT_TRUE(runs_until([&] { return child->valid(round, 0).front() > round * 100'000; }));
    child->order.clear();
    child->cancel(round);
    child->close(round);
    ASSERT_TRUE(runs_until([&] { return !child->closed.empty() && child->closed.back() == round; }));
    EXPECT_THAT(child->order, ElementsAre("pull ended", "copy closed"));
    EXPECT_TRUE(child->ended_as(round, PullEnd::kCancelled));
    const auto marker = pattern(kSize, 1000 + round);
    std::copy(marker.begin(), marker.end(), child->arena.begin());
    run_for(Duration::ms(3));
    ASSERT_TRUE(child->holds(0, marker)) << "late bytes in round " << round;
  }
  ASSERT_TRUE(runs_until([&] { return parent->serves_ended.size() == 10; }));
  // The connection is still good.
  parent->seal(1, kAllSlices);
  fetch(*child, *parent, 100, {0, kSize}, 100);
  ASSERT_TRUE(runs_until([&] { return child->ended_as(100, PullEnd::kComplete); }));
  EXPECT_TRUE(child->holds(0, pattern(kSize, 1)));
}

TEST_P(TransferConformanceTest, AClosedCopyIsNotSentFromAnyMore) {
  NodeOptions options;
  options.slow = true;  // so that it can be caught in the middle
  const auto parent = make_node(1, options);
  const auto child = make_node(2);
  constexpr std::uint64_t kSize = 6 * kMiB;
  const auto bytes = pattern(kSize, 1);
  for (std::uint64_t round = 1; round <= 10; ++round) {
    parent->offer_unsealed(kId, round, bytes);
    fetch(*child, *parent, round, {0, kSize}, round);
    ASSERT_TRUE(runs_until([&] { return child->valid(round, 0).front() > round * 200'000; }));
    parent->close(round);
    ASSERT_TRUE(runs_until([&] { return !parent->closed.empty() && parent->closed.back() == round; }));
    std::fill_n(parent->arena.begin(), kSize, std::byte{0xEE});
    ASSERT_TRUE(runs_until([&] { return child->ended.contains(round); }));
    const std::uint64_t valid = child->ended[round].valid.front();
    EXPECT_TRUE(child->ended_as(round, PullEnd::kAborted));
    EXPECT_EQ(std::memcmp(child->arena.data(), bytes.data(), valid), 0)
        << "bytes of recycled memory in round " << round;
    child->close(round);
    ASSERT_TRUE(runs_until([&] { return !child->closed.empty() && child->closed.back() == round; }));
  }
}

TEST_P(TransferConformanceTest, AParkedPullCanBeCancelled) {
  const auto parent = make_node(1);
  const auto child = make_node(2);
  fetch(*child, *parent, 1, {0, 100}, 1);
  ASSERT_TRUE(runs_until([&] { return parent->asked.size() == 1; }));
  child->cancel(1);
  ASSERT_TRUE(runs_until([&] { return child->ended_as(1, PullEnd::kCancelled); }));
  run_for(Duration::ms(30));
  parent->open({1, {0, 100}, 1, true});
  parent->accept(parent->asked[0].channel, 5, 1, parent->asked[0].pull);
  ASSERT_TRUE(runs_until([&] { return !parent->serves_ended.empty(); }));
  EXPECT_THAT(parent->serves_ended, ElementsAre(5));
  EXPECT_THAT(child->accepted, IsEmpty());
}

TEST_P(TransferConformanceTest, ClosingAnUnusedCopyIsAnsweredFromTheLoop) {
  const auto node = make_node(1);
  node->open({1, {0, 100}, 1, false});
  node->close(1);
  EXPECT_THAT(node->closed, IsEmpty());
  ASSERT_TRUE(runs_until([&] { return !node->closed.empty(); }));
  EXPECT_EQ(node->valid(1, 0).front(), 0U);
}

TEST_P(TransferConformanceTest, DisconnectEndsTransfersOnBothSides) {
  const auto parent = make_node(1);
  const auto child = make_node(2);
  parent->open({1, {0, kMiB}, 1, false});
  parent->served[kId] = 1;
  fetch(*child, *parent, 1, {0, kMiB}, 1);
  ASSERT_TRUE(runs_until([&] { return child->accepted.size() == 1; }));
  child->disconnect(parent->self.id);
  ASSERT_TRUE(
      runs_until([&] { return child->ended_as(1, PullEnd::kConnectionLost) && !parent->serves_ended.empty(); }));

  pull(*child, *parent, 1, request(2, kId));
  ASSERT_TRUE(runs_until([&] { return child->accepted.size() == 2; }));
  parent->disconnect_all();
  ASSERT_TRUE(
      runs_until([&] { return child->ended_as(2, PullEnd::kConnectionLost) && parent->serves_ended.size() == 2; }));
}

TEST_P(TransferConformanceTest, AStarvedParentIsNotSilentAndAParkedPullIs) {
  NodeOptions options;
  options.limits.starved_every = Duration::ms(20);
  patience = Duration::ms(800);
  const auto parent = make_node(1, options);
  const auto child = make_node(2, options);
  parent->open({1, {0, kMiB}, 1, false});
  parent->served[kId] = 1;
  fetch(*child, *parent, 1, {0, kMiB}, 1);                     // accepted, but there is nothing to send
  fetch(*child, *parent, 2, {kMiB, kMiB}, 2, ObjectId{8, 8});  // not accepted
  ASSERT_TRUE(runs_until([&] { return !child->silent.empty(); }));
  run_for(Duration::ms(1700));
  EXPECT_THAT(child->silent, ElementsAre(2)) << "once for each period of silence";
  // From its acceptance on it is starved as well.
  parent->open({2, {kMiB, kMiB}, 1, false});
  parent->accept(parent->asked[1].channel, 50, 2, parent->asked[1].pull);
  ASSERT_TRUE(runs_until([&] { return child->accepted.size() == 2; }));
  run_for(Duration::ms(1000));
  EXPECT_THAT(child->silent, ElementsAre(2));
}

// Several pulls of one object that is sealed when all of them are accepted: they become ready in the same moment.
class SharedConnectionTest : public TransferConformanceTest {
 protected:
  static constexpr std::uint64_t kSize = 4 * kMiB;

  void start(const std::vector<PullRequest>& pulls) {
    NodeOptions slow;
    slow.slow = true;  // so that it can be caught in the middle
    parent = make_node(1, slow);
    child = make_node(2);
    const auto bytes = pattern(kSize, 1);
    std::copy(bytes.begin(), bytes.end(), parent->arena.begin());
    parent->open({1, {0, kSize}, 1, false});
    parent->served[kId] = 1;
    for (const PullRequest& one : pulls) {
      child->open({one.transfer, {(one.transfer - 1) * kSize, kSize}, 1, false});
      pull(*child, *parent, one.transfer, one);
    }
    ASSERT_TRUE(runs_until([&] { return child->accepted.size() == pulls.size(); }));
    parent->grow(1, kSize);
    parent->seal(1, kAllSlices);
  }

  std::unique_ptr<TestNode> parent;
  std::unique_ptr<TestNode> child;
};
HOPLITE_ALL_LINKS(SharedConnectionTest);

TEST_P(SharedConnectionTest, UrgentStreamsOvertakeOthers) {
  std::vector<PullRequest> pulls{request(1, kId), request(2, kId), request(3, kId)};
  pulls[0].priority = Priority::kLow;
  pulls[1].priority = Priority::kNormal;
  pulls[2].priority = Priority::kHigh;
  start(pulls);
  ASSERT_TRUE(runs_until([&] { return child->ended.size() == 3; }));
  EXPECT_THAT(child->end_order, ElementsAre(3, 2, 1));
}

TEST_P(SharedConnectionTest, APriorityCanChangeOnTheWay) {
  start({request(1, kId), request(2, kId)});
  ASSERT_TRUE(runs_until([&] { return child->valid(1, 0).front() > 0; }));
  child->prioritize(2, Priority::kHigh);
  ASSERT_TRUE(runs_until([&] { return child->ended.size() == 2; }));
  EXPECT_THAT(child->end_order, ElementsAre(2, 1));
  EXPECT_THAT(parent->prioritized, ElementsAre(testing::Pair(2, Priority::kHigh)));
}

TEST_P(SharedConnectionTest, EqualJobsShare) {
  PullRequest other = request(2, kId);
  other.target = {1, 2};
  other.slot = true;
  start({request(1, kId), other});
  ASSERT_TRUE(runs_until([&] { return child->valid(1, 0).front() > kSize / 2; }));
  EXPECT_GT(child->valid(2, 0).front(), kSize / 4);
  ASSERT_TRUE(runs_until([&] { return child->ended.size() == 2; }));
  EXPECT_TRUE(child->holds(0, pattern(kSize, 1)));
  EXPECT_TRUE(child->holds(kSize, pattern(kSize, 1)));
}

// Neither parent sees that the child's link is shared: the child tells the less urgent one to wait.
class UrgentPullTest : public TransferConformanceTest {
 protected:
  static constexpr std::uint64_t kSize = 8 * kMiB;

  UrgentPullTest() {
    other->offer({7, 2}, 1, 0, pattern(kSize, 1));
    urgent->offer(kId, 1, 0, pattern(kSize, 2));
  }
  void fetch_other() { fetch(*child, *other, 1, {0, kSize}, 1, {7, 2}); }
  void fetch_urgent() {
    child->open({2, {kSize, kSize}, 1, false});
    PullRequest first = request(2, kId);
    first.priority = Priority::kHigh;
    pull(*child, *urgent, 2, first);
  }
  static NodeOptions slow() {
    NodeOptions options;
    options.slow = true;
    return options;
  }

  const std::unique_ptr<TestNode> other = make_node(1, slow());
  const std::unique_ptr<TestNode> urgent = make_node(2, slow());
  const std::unique_ptr<TestNode> child = make_node(3);
};
HOPLITE_ALL_LINKS(UrgentPullTest);

TEST_P(UrgentPullTest, IsNotSlowedByOthersFromElsewhere) {
  fetch_other();
  ASSERT_TRUE(runs_until([&] { return child->valid(1, 0).front() > 0; }));
  fetch_urgent();
  ASSERT_TRUE(runs_until([&] { return child->valid(2, 0).front() > kSize / 2; }));
  const std::uint64_t before = child->valid(1, 0).front();
  ASSERT_TRUE(runs_until([&] { return child->ended_as(2, PullEnd::kComplete); }));
  EXPECT_LE(child->valid(1, 0).front() - before, kSize / 2 / 10) << "a twentieth, and a grant that was under way";
  ASSERT_TRUE(runs_until([&] { return child->ended_as(1, PullEnd::kComplete); }));
  EXPECT_TRUE(child->holds(0, pattern(kSize, 1)));
  EXPECT_TRUE(child->holds(kSize, pattern(kSize, 2)));
  EXPECT_THAT(child->silent, IsEmpty()) << "who waits gives signs of life";
}

TEST_P(UrgentPullTest, MakesOneThatStartsBehindItWaitForItsShare) {
  fetch_urgent();
  ASSERT_TRUE(runs_until([&] { return child->valid(2, 0).front() > 0; }));
  fetch_other();
  ASSERT_TRUE(runs_until([&] { return child->ended_as(2, PullEnd::kComplete); }));
  EXPECT_LE(child->valid(1, 0).front(), kSize / 10);
  ASSERT_TRUE(runs_until([&] { return child->ended_as(1, PullEnd::kComplete); }));
  EXPECT_TRUE(child->holds(0, pattern(kSize, 1)));
}

TEST_P(TransferConformanceTest, SlicesOfOneObjectComeOneAfterTheOther) {
  NodeOptions slow;
  slow.slow = true;  // so that it can be caught in the middle
  const auto parent = make_node(1, slow);
  const auto child = make_node(2);
  constexpr std::uint64_t kSize = 8 * kMiB;
  parent->offer(kId, 1, 0, pattern(kSize, 1));
  child->open({1, {0, kSize}, 2, false});
  const std::uint64_t second = slice_range(kSize, 2, 1).begin;
  for (std::uint32_t slice = 0; slice < 2; ++slice)
    pull(*child, *parent, 1, slice_request(slice + 1, kId, kSize, slice, 2));
  ASSERT_TRUE(runs_until([&] { return child->valid(1, 0).front() > second / 2; }));
  EXPECT_EQ(child->valid(1, 1).front(), second) << "not before all of the first";
  ASSERT_TRUE(runs_until([&] { return child->ended.size() == 2; }));
  EXPECT_THAT(child->end_order, ElementsAre(1, 2));
  EXPECT_TRUE(child->holds(0, pattern(kSize, 1)));
}

TEST_P(TransferConformanceTest, GrowthIsReportedToFollowersAndNotToOthers) {
  const auto parent = make_node(1);
  const auto child = make_node(2);
  parent->offer(kId, 1, 0, pattern(8 * kMiB, 1));
  child->open({1, {0, 8 * kMiB}, 1, false});
  child->follow(1);
  pull(*child, *parent, 1, request(1, kId));
  fetch(*child, *parent, 2, {8 * kMiB, 8 * kMiB}, 2);
  ASSERT_TRUE(runs_until([&] { return child->ended.size() == 2; }));
  EXPECT_FALSE(child->grown.empty());
  EXPECT_THAT(child->grown, testing::Each(1));

  parent->open({9, {16 * kMiB, 100}, 1, false});
  parent->follow(9);
  parent->grow(9, 10);
  parent->grow(9, 20);
  EXPECT_THAT(parent->grown, IsEmpty());
  run_for(Duration::ms(5));
  EXPECT_THAT(parent->grown, ElementsAre(9));
}

}  // namespace
}  // namespace hoplite
