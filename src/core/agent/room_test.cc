#include "core/agent/room.h"

#include <gtest/gtest.h>

#include <vector>

namespace hoplite {
namespace {

constexpr std::uint64_t kSmall = 10;

Room::Owner fetch(std::uint64_t n) { return Room::Fetch{ObjectId{1, n}}; }

class RoomTest : public testing::Test {
 protected:
  // Gives room to requests of up to `most` bytes. Who was asked, by the number of the object.
  std::vector<std::uint64_t> hand_out(std::uint64_t most) {
    std::vector<std::uint64_t> asked;
    needed_ = room_.hand_out([&](const Room::Waiter& waiter) {
      asked.push_back(std::get<Room::Fetch>(waiter.owner).id.lo);
      return waiter.bytes <= most;
    });
    room_.check_invariants();
    return asked;
  }

  Room room_{kSmall};
  std::uint64_t needed_ = 0;
};

TEST_F(RoomTest, OnlySmallRequestsPassOneThatDoesNotFit) {
  room_.wait(fetch(1), 100);
  room_.wait(fetch(2), 1000);
  room_.wait(fetch(3), 50);
  room_.wait(fetch(4), kSmall);
  EXPECT_FALSE(room_.is_free_for(kSmall + 1));
  EXPECT_TRUE(room_.is_free_for(kSmall));
  EXPECT_EQ(hand_out(100), (std::vector<std::uint64_t>{1, 2, 4}));
  EXPECT_EQ(needed_, 1000u);
  EXPECT_EQ(hand_out(1000), (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(needed_, 0u);
  EXPECT_TRUE(room_.empty());
}

TEST_F(RoomTest, EvenNothingMayHaveToWait) {
  room_.wait(fetch(1), 0);
  EXPECT_EQ(room_.hand_out([](const Room::Waiter&) { return false; }), 1u);
  EXPECT_TRUE(room_.is_waiting(fetch(1)));
}

TEST_F(RoomTest, WhoLeavesIsNotAskedAlsoWhileRoomIsHandedOut) {
  room_.wait(fetch(1), 5);
  room_.wait(fetch(2), 5);
  room_.wait(Room::Slot{{ObjectId{1, 2}, 7}}, 5);
  std::vector<std::size_t> asked;
  room_.hand_out([&](const Room::Waiter& waiter) {
    asked.push_back(waiter.owner.index());
    if (asked.size() > 1) return false;
    room_.leave(fetch(2));
    room_.wait(fetch(3), 5);
    return true;
  });
  EXPECT_EQ(asked, (std::vector<std::size_t>{1, 2})) << "one has left, and one has come since";
  EXPECT_TRUE(room_.is_waiting(fetch(3)));
  EXPECT_FALSE(room_.is_waiting(fetch(2)));
}

TEST_F(RoomTest, ItSaysWhetherTheQueueHasChanged) {
  EXPECT_FALSE(room_.take_changed());
  room_.reconsider();
  EXPECT_FALSE(room_.take_changed()) << "nobody waits";
  room_.wait(Room::Create{1, 2, {}, {}}, 70);
  EXPECT_TRUE(room_.take_changed());
  EXPECT_FALSE(room_.take_changed());
  EXPECT_EQ(room_.asked_by(Room::Create{1, 2, ObjectId{9, 9}, "meta"}), 70u) << "client and number name it";
  room_.leave(Room::Create{1, 3, {}, {}});
  EXPECT_FALSE(room_.take_changed());
  room_.leave(Room::Create{1, 2, {}, {}});
  EXPECT_TRUE(room_.take_changed());
}

}  // namespace
}  // namespace hoplite
