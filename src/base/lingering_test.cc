#include "base/lingering.h"

#include <gtest/gtest.h>

namespace hoplite {
namespace {

int tries_of(Lingering& lingering, int waits, bool pays) {
  int tries = 0;
  for (int i = 0; i < waits; ++i) {
    if (!lingering.worth_a_try()) continue;
    ++tries;
    lingering.paid(pays);
  }
  return tries;
}

TEST(Lingering, GoesOnWhileItPaysAndIsRareWhenItDoesNot) {
  Lingering lingering;
  tries_of(lingering, 100, true);
  EXPECT_EQ(tries_of(lingering, 100, true), 100);
  tries_of(lingering, 100, false);
  EXPECT_LE(tries_of(lingering, 1600, false), 100);
  EXPECT_GE(tries_of(lingering, 1600, false), 50) << "it must notice that things have changed";
}

}  // namespace
}  // namespace hoplite
