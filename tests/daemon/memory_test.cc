// The store is bounded: what happens when it is full, and what may go.
#include <sys/sysinfo.h>

#include <cstring>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "cluster.h"

namespace hoplite::testing {
namespace {

using ::testing::ContainsRegex;

constexpr std::size_t kMiB = 1 << 20;

TEST(Memory, AFullStoreSaysSoWithTheNumbers) {
  Cluster cluster;
  Client client = cluster.start({.memory = "32MiB"}).connect();
  ASSERT_TRUE(client.put(pattern(20 * kMiB, 1)).ok());
  for (const std::size_t size : {20 * kMiB, 33 * kMiB}) {
    const auto full = client.put(pattern(size, 2), {.timeout = 300ms});
    ASSERT_FALSE(full.ok());
    EXPECT_EQ(full.code(), Code::kStoreFull) << full.error().to_string();
    EXPECT_THAT(full.error().message, ContainsRegex("32.*MiB")) << "the capacity is named";
  }
  EXPECT_TRUE(client.put(pattern(kMiB, 3), {.timeout = 10s}).ok()) << "there is room for less";
}

TEST(Memory, APutWaitsForRoom) {
  Cluster cluster;
  Client client = cluster.start({.memory = "32MiB"}).connect();
  Client other = cluster[0].connect();
  const auto first = client.put(pattern(20 * kMiB, 1));
  ASSERT_TRUE(first.ok());
  std::thread remover([&] {
    EXPECT_TRUE(eventually([&] { return other.status()->waiting > 0; }));
    EXPECT_TRUE(other.remove(*first, 10s).ok());
  });
  const auto second = client.put(pattern(20 * kMiB, 2), {.timeout = 60s});
  remover.join();
  ASSERT_TRUE(second.ok()) << second.error().to_string();
  const auto view = client.get(*second, {.timeout = 10s});
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(difference(view->bytes(), 20 * kMiB, 2), "");
}

// Ten objects of 8 MiB at a large node, and a small node that has room for four.
class SmallReader : public ::testing::Test {
 protected:
  static constexpr std::size_t kBytes = 8 * kMiB;

  void SetUp() override {
    cluster_.start({.memory = "128MiB"});
    cluster_.start({.memory = "32MiB"});
    cluster_.wait_for_members(2);
    Client source = cluster_[0].connect();
    for (std::uint64_t i = 0; i < 10; ++i) {
      const auto id = source.put(pattern(kBytes, i));
      ASSERT_TRUE(id.ok()) << id.error().to_string();
      ids_.push_back(*id);
    }
  }
  void expect_readable(Client& client, std::size_t i) {
    const auto view = client.get(ids_[i], {.timeout = 60s});
    ASSERT_TRUE(view.ok()) << i << ": " << view.error().to_string();
    EXPECT_EQ(difference(view->bytes(), kBytes, i), "") << i;
  }

  Cluster cluster_;
  std::vector<ObjectId> ids_;
};

TEST_F(SmallReader, FetchedCopiesNobodyHoldsMakeRoom) {
  Client reader = cluster_[1].connect();
  for (int round = 0; round < 2; ++round)
    for (std::size_t i = 0; i < ids_.size(); ++i) expect_readable(reader, i);
}

TEST_F(SmallReader, ACopySomebodyReadsIsNotEvicted) {
  Client reader = cluster_[1].connect();
  const auto held = reader.get(ids_[0], {.timeout = 60s});
  ASSERT_TRUE(held.ok()) << held.error().to_string();
  for (std::size_t i = 1; i < ids_.size(); ++i) expect_readable(reader, i);
  EXPECT_EQ(difference(held->bytes(), kBytes, 0), "") << "it was overwritten while it was held";
}

TEST_F(SmallReader, ViewsThatFillTheStoreMakeTheNextGetFail) {
  Client reader = cluster_[1].connect();
  std::vector<View> held;
  for (std::size_t i = 0; i < 4; ++i) {
    auto view = reader.get(ids_[i], {.timeout = 60s});
    ASSERT_TRUE(view.ok()) << view.error().to_string();
    held.push_back(*view);
  }
  const auto too_many = reader.get(ids_[4], {.timeout = 500ms});
  ASSERT_FALSE(too_many.ok());
  EXPECT_EQ(too_many.code(), Code::kStoreFull) << too_many.error().to_string();
  held.clear();
  expect_readable(reader, 4);
}

TEST_F(SmallReader, WhatWasPutThereStays) {
  Client reader = cluster_[1].connect();
  const auto own = reader.put(pattern(kBytes, 77));
  ASSERT_TRUE(own.ok());
  for (std::size_t i = 0; i < ids_.size(); ++i) expect_readable(reader, i);
  Client far = cluster_[0].connect();
  const auto view = far.get(*own, {.timeout = 60s});
  ASSERT_TRUE(view.ok()) << view.error().to_string();
  EXPECT_EQ(difference(view->bytes(), kBytes, 77), "");
}

// Beyond 2^31 and 2^32 - 2^30: a 32-bit length anywhere would show.
class ThreeGigabytes : public ::testing::Test {
 protected:
  static constexpr std::size_t kSize = (3ULL << 30) + 12344;
  static constexpr std::size_t kStep = 64 * kMiB;

  void start(const std::string& memory, std::uint64_t needed_gib) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "too slow with a sanitizer; the plain build runs it";
#endif
    struct sysinfo info{};
    ASSERT_EQ(::sysinfo(&info), 0);
    if (info.freeram * info.mem_unit < needed_gib << 30)
      GTEST_SKIP() << "needs " << needed_gib << " GiB of free memory";
    cluster_.start_many(2, {.memory = memory});
    for (std::uint64_t& word : step_) word = random_.next();
  }
  // Steps of the same words, but for the first, which is where the step begins.
  void write(ObjectWriter& writer) {
    for (std::size_t at = 0; at < kSize; at += kStep) {
      const std::size_t size = std::min(kStep, kSize - at);
      std::memcpy(writer.buffer().data() + at, step_.data(), size);
      std::memcpy(writer.buffer().data() + at, &at, sizeof at);
      ASSERT_TRUE(writer.advance(at + size).ok());
    }
    const auto sealed = writer.seal(60s);
    ASSERT_TRUE(sealed.ok()) << sealed.error().to_string();
  }
  // Every word is `times` what was written.
  void expect_written(const Result<View>& view, std::uint64_t times) {
    ASSERT_TRUE(view.ok()) << view.error().to_string();
    ASSERT_EQ(view->size(), kSize);
    std::vector<std::uint64_t> expected = step_;
    for (std::uint64_t& word : expected) word *= times;
    for (std::size_t at = 0; at < kSize; at += kStep) {
      expected.front() = at * times;
      ASSERT_EQ(std::memcmp(view->data() + at, expected.data(), std::min(kStep, kSize - at)), 0) << at;
    }
  }

  Cluster cluster_;
  Random random_{1};
  std::vector<std::uint64_t> step_ = std::vector<std::uint64_t>(kStep / sizeof(std::uint64_t));
};

TEST_F(ThreeGigabytes, AreAnObject) {
  ASSERT_NO_FATAL_FAILURE(start("3300MiB", 9));
  if (IsSkipped()) return;
  Client source = cluster_[0].connect();
  Client reader = cluster_[1].connect();
  auto writer = source.create(kSize, {.timeout = 60s});
  ASSERT_TRUE(writer.ok()) << writer.error().to_string();
  auto arriving = reader.get_async(writer->id(), {.timeout = 300s});
  write(*writer);
  expect_written(arriving.get(), 1);
}

TEST_F(ThreeGigabytes, CanBeSummed) {
  // Where the sum comes into being: one source, what comes of the other, and the sum.
  ASSERT_NO_FATAL_FAILURE(start("9500MiB", 13));
  if (IsSkipped()) return;
  const ArrayType array{DType::kU64, {kSize / sizeof(std::uint64_t)}};
  std::vector<Client> clients;
  std::vector<ObjectId> sources;
  for (int node = 0; node < 2; ++node) {
    clients.push_back(cluster_[node].connect());
    auto writer = clients.back().create(kSize, {.array = array, .timeout = 60s});
    ASSERT_TRUE(writer.ok()) << writer.error().to_string();
    sources.push_back(writer->id());
    ASSERT_NO_FATAL_FAILURE(write(*writer));
  }
  const auto target = clients[0].reduce(sources, {.op = ReduceOp::kSum, .type = DType::kU64});
  ASSERT_TRUE(target.ok()) << target.error().to_string();
  const auto ready = clients[0].wait({*target}, 1, 300s);
  ASSERT_TRUE(ready.ok() && ready->size() == 1);
  const int at = clients[0].status()->used_bytes > 2 * kSize - kMiB ? 0 : 1;
  expect_written(clients[at].get(*target, {.timeout = 300s}), 2);
}

}  // namespace
}  // namespace hoplite::testing
