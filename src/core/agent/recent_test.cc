#include "core/agent/recent.h"

#include <gtest/gtest.h>

namespace hoplite {
namespace {

constexpr ObjectId kFirst{1, 1}, kSecond{1, 2}, kThird{1, 3};

TEST(Recent, TheOldestIsPushedOut) {
  Recent<int> recent(2);
  recent.put(kFirst, 1);
  recent.put(kSecond, 2);
  recent.put(kFirst, 10);
  ASSERT_NE(recent.find(kFirst), nullptr);
  EXPECT_EQ(*recent.find(kFirst), 10);
  recent.put(kThird, 3);
  EXPECT_EQ(recent.find(kFirst), nullptr) << "a new value keeps its age";
  EXPECT_NE(recent.find(kSecond), nullptr);
  EXPECT_EQ(recent.all().size(), 2u);
}

TEST(Recent, WhatIsErasedAndPutAgainIsNew) {
  Recent<int> recent(2);
  recent.put(kFirst, 1);
  recent.put(kSecond, 2);
  recent.erase(kFirst);
  recent.erase(kThird);
  EXPECT_EQ(recent.find(kFirst), nullptr);
  recent.put(kFirst, 1);
  recent.put(kThird, 3);
  EXPECT_EQ(recent.find(kSecond), nullptr);
  EXPECT_NE(recent.find(kFirst), nullptr);
}

}  // namespace
}  // namespace hoplite
