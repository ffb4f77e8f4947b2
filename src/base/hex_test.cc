#include "base/hex.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace hoplite {
namespace {

TEST(Hex, IsSixteenLowerCaseDigits) {
  EXPECT_EQ(hex64(0), "0000000000000000");
  EXPECT_EQ(hex64(0x0123456789abcdefULL), "0123456789abcdef");
  EXPECT_EQ(hex64(~0ULL), "ffffffffffffffff");
}

TEST(Hex, ReadsBackWhatItWrote) {
  Random random(1);
  for (int round = 0; round < 1000; ++round) {
    const std::uint64_t value = random.next() >> random.below(64);
    EXPECT_EQ(parse_hex64(hex64(value)), value);
  }
  EXPECT_EQ(parse_hex64("0123456789ABCDEF"), 0x0123456789abcdefULL);
}

TEST(Hex, RefusesEverythingElse) {
  for (const char* text : {"", "0", "0123456789abcde", "0123456789abcdef0", "0123456789abcdeg", "-123456789abcdef",
                           "0x23456789abcdef", " 123456789abcdef"})
    EXPECT_EQ(parse_hex64(text), std::nullopt) << text;
}

}  // namespace
}  // namespace hoplite
