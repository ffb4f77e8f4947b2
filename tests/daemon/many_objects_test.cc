// 1,000 objects at once among 8 daemons, with random sizes, kills and deletes; every byte that arrives is compared, and
// every failure must have a true reason.
#include <cstdio>
#include <cstdlib>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "cluster.h"

namespace hoplite::testing {
namespace {

constexpr std::size_t kDaemons = 8;
constexpr std::size_t kObjects = 1000;
// HOPLITE_TEST_SEED chooses another run.
std::uint64_t seed() {
  const char* text = std::getenv("HOPLITE_TEST_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 2021;
}
constexpr auto kGetTimeout = 30s;

struct Slot {
  std::size_t daemon = 0;  // index in the cluster; another one after a restart
  std::unique_ptr<Client> client;
};
struct Object {
  ObjectId id;
  std::size_t size = 0;
  std::uint64_t seed = 0;
  std::size_t source = 0;  // daemon
  bool deleted = false;
};
struct Reading {
  std::size_t object = 0;
  std::size_t daemon = 0;
  Future<View> view;
};

class ManyObjects : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.start_many(kDaemons, setup());
    for (std::size_t i = 0; i < kDaemons; ++i) slots_.push_back({i, std::make_unique<Client>(cluster_[i].connect())});
    killed_.resize(kDaemons);
  }

  // Slow enough that hundreds of transfers are under way when a daemon dies.
  static DaemonSetup setup() { return {.arguments = {"--max-rate", "200mbit"}, .memory = "256MiB"}; }

  std::size_t random_size() {
    switch (random_.below(4)) {
      case 0: return random_.below(2000);
      case 1: return random_.below(70'000);
      case 2: return random_.below(400'000);
      default: return random_.below(20) == 0 ? 4'000'000 : 0;
    }
  }
  Slot& random_slot() { return slots_[random_.below(slots_.size())]; }

  void read(std::size_t object, Slot& slot) {
    readings_.push_back({object, slot.daemon, slot.client->get_async(objects_[object].id, {.timeout = kGetTimeout})});
  }
  // Some gets come before the put, some after it.
  void put_one() {
    Slot& source = random_slot();
    const std::size_t number = objects_.size();
    const ObjectId id =
        random_.chance(0.3) ? ObjectId::named("object " + std::to_string(number)) : source.client->new_id();
    objects_.push_back({id, random_size(), number, source.daemon});
    const Object& object = objects_.back();
    if (random_.chance(0.5)) read(number, random_slot());
    const auto done = source.client->put(pattern(object.size, object.seed), {.id = id, .timeout = 60s});
    ASSERT_TRUE(done.ok()) << "object " << number << ": " << done.error().to_string();
    read(number, random_slot());
  }
  void delete_one() {
    Object& object = objects_[random_.below(objects_.size())];
    const auto removed = random_slot().client->remove(object.id, 60s);
    ASSERT_TRUE(removed.ok()) << removed.error().to_string();
    object.deleted = true;
  }
  void kill_and_restart_one() {
    Slot& victim = random_slot();
    const std::string address = cluster_[victim.daemon].address();
    killed_[victim.daemon] = true;
    cluster_[victim.daemon].kill();
    DaemonSetup again = setup();
    again.listen = address;
    cluster_.start(again);
    killed_.push_back(false);
    victim = {cluster_.size() - 1, std::make_unique<Client>(cluster_[cluster_.size() - 1].connect())};
  }

  // The bytes, or a failure with a true reason.
  void check(Reading& reading) {
    const Object& object = objects_[reading.object];
    const std::string name =
        "object " + std::to_string(reading.object) + " at daemon " + std::to_string(reading.daemon);
    const auto view = reading.view.get();
    if (view.ok()) {
      EXPECT_EQ(difference(view->bytes(), object.size, object.seed), "") << name;
      ++arrived_;
      return;
    }
    ++failed_[std::string(code_name(view.code()))];
    const std::string why = view.error().to_string();
    switch (view.code()) {
      case Code::kDeleted: EXPECT_TRUE(object.deleted) << name << ": " << why; break;
      case Code::kLost: EXPECT_TRUE(killed_[object.source]) << name << ": " << why; break;
      case Code::kUnavailable: EXPECT_TRUE(killed_[reading.daemon]) << name << ": " << why; break;
      // Nobody who lives knew of it: its source was its home, and nobody had asked before both died.
      case Code::kTimedOut: EXPECT_TRUE(killed_[object.source]) << name << ": " << why; break;
      default: ADD_FAILURE() << name << ": " << why;
    }
  }

  Random random_{seed()};
  Cluster cluster_;
  std::vector<Slot> slots_;
  std::vector<bool> killed_;  // by daemon
  std::vector<Object> objects_;
  std::vector<Reading> readings_;
  std::size_t arrived_ = 0;
  std::map<std::string, int> failed_;  // by reason
};

TEST_F(ManyObjects, ArriveOrFailForATrueReason) {
  for (std::size_t i = 0; i < kObjects; ++i) {
    ASSERT_NO_FATAL_FAILURE(put_one()) << i;
    if (i % 10 == 9) {
      ASSERT_NO_FATAL_FAILURE(delete_one()) << i;
    }
    if (i == kObjects / 3 || i == kObjects * 2 / 3) kill_and_restart_one();
  }
  for (Reading& reading : readings_) check(reading);
  std::printf("%zu arrived", arrived_);
  for (const auto& [reason, count] : failed_) std::printf(", %d %s", count, reason.c_str());
  std::printf("\n");
  EXPECT_GT(arrived_, kObjects) << "most must arrive, whatever happens";
  readings_.clear();

  for (Object& object : objects_) {
    const auto removed = slots_[0].client->remove(object.id, 60s);
    EXPECT_TRUE(removed.ok()) << removed.error().to_string();
  }
  for (Slot& slot : slots_)
    EXPECT_TRUE(eventually([&] {
      const auto status = slot.client->status();
      return status.ok() && status->used_bytes == 0;
    })) << "daemon "
        << slot.daemon << " keeps " << slot.client->status()->used_bytes << " bytes";
}

}  // namespace
}  // namespace hoplite::testing
