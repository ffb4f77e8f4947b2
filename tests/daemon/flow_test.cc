// Many small objects at once, from one node to another: whoever sends slows down, and nobody is taken for dead.
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "cluster.h"

namespace hoplite::testing {
namespace {

constexpr std::size_t kGets = 40'000;
constexpr std::size_t kBytes = 16 * kKiB;

// 640 MB in answers that travel with their bytes: ten times what may be queued for a peer.
TEST(Flow, FortyThousandGetsOfSmallObjectsAllArriveOverOneConnection) {
  Cluster cluster;
  cluster.start_many(2, {.memory = "1GiB"});
  Client producer = cluster[0].connect();
  Client consumer = cluster[1].connect();
  std::vector<Future<ObjectId>> puts;
  for (std::size_t i = 0; i < kGets; ++i) puts.push_back(producer.put_async(pattern(kBytes, i), {.timeout = 120s}));
  std::vector<ObjectId> ids;
  for (std::size_t i = 0; i < kGets; ++i) {
    const auto put = puts[i].get();
    ASSERT_TRUE(put.ok()) << i << ": " << put.error().to_string();
    ids.push_back(*put);
  }
  std::vector<Future<View>> gets;
  for (const ObjectId& id : ids) gets.push_back(consumer.get_async(id, {.timeout = 120s}));
  for (std::size_t i = 0; i < kGets; ++i) {
    const auto view = gets[i].get();
    ASSERT_TRUE(view.ok()) << i << ": " << view.error().to_string();
    ASSERT_EQ(difference(view->bytes(), kBytes, i), "") << i;
  }
  for (std::size_t i = 0; i < 2; ++i) {
    const auto status = cluster[i].connect().status();
    ASSERT_TRUE(status.ok()) << status.error().to_string();
    EXPECT_EQ(status->members, 2u) << i;
    EXPECT_EQ(cluster[i].log().find("declared dead"), std::string::npos) << cluster[i].log();
    EXPECT_EQ(cluster[i].log().find("given up"), std::string::npos) << cluster[i].log();
  }
}

}  // namespace
}  // namespace hoplite::testing
