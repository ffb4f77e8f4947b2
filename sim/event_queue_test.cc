#include "sim/event_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace hoplite::sim {
namespace {

TEST(EventQueue, RunsByTimeThenInsertion) {
  EventQueue queue;
  std::vector<int> order;
  std::vector<int>* out = &order;
  for (int i = 0; i < 4; ++i) queue.at(Time{10}, [out, i] { out->push_back(i); });
  queue.at(Time{5}, [out] { out->push_back(100); });
  queue.at(Time{10}, [out] { out->push_back(4); });
  while (!queue.empty()) queue.run_next();
  EXPECT_EQ(order, (std::vector<int>{100, 0, 1, 2, 3, 4}));
  EXPECT_EQ(queue.now(), Time{10});
  EXPECT_EQ(queue.executed(), 6u);
}

TEST(EventQueue, EventsMayAddEvents) {
  EventQueue queue;
  int runs = 0;
  struct Again {
    EventQueue* queue;
    int* runs;
    void operator()() const {
      if (++*runs < 1000) queue->after(Duration{1}, *this);
    }
  };
  queue.after(Duration{0}, Again{&queue, &runs});
  while (!queue.empty()) queue.run_next();
  EXPECT_EQ(runs, 1000);
  EXPECT_EQ(queue.now(), Time{999});
}

TEST(EventQueue, AdvancesWithoutEvents) {
  EventQueue queue;
  EXPECT_EQ(queue.next_time(), Time::never());
  queue.advance_to(Time{50});
  EXPECT_EQ(queue.now(), Time{50});
}

TEST(EventQueueDeathTest, TheFutureIsNotInThePast) {
  EventQueue queue;
  queue.advance_to(Time{50});
  EXPECT_DEATH(queue.at(Time{49}, [] {}), "past");
}

}  // namespace
}  // namespace hoplite::sim
