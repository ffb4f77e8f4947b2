#include "base/printable.h"

#include <gtest/gtest.h>

namespace hoplite {
namespace {

TEST(Printable, LeavesTextAlone) {
  for (const char* text :
       {"", "weights-17", "gr\xc3\xbc\xc3\x9f", "\xe9\x87\x8d\xe3\x81\xbf", "\xf0\x9f\x8e\x89", "a\\b"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(printable("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(printable("\x1b]0;title\x07\x1b[2J"), "\\x1b]0;title\\x07\\x1b[2J");
  EXPECT_EQ(printable(std::string_view("\0\x7f", 2)), "\\x00\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "\\u009b2J")
      << "CSI as one character, which terminals obey as well";
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "abc"),
            "\\u202eabc")
      << "right to left: what follows would be shown backwards";
  EXPECT_EQ(printable("\xe2\x80\xa8"), "\\u2028");
}

TEST(Printable, BytesThatAreNoTextAreEscapedOneByOne) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\x9b"
                      "2J"),
            "\\x9b2J")
      << "a terminal that is not set to UTF-8 would obey it";
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf") << "overlong";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82") << "cut";
  EXPECT_EQ(printable("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80") << "beyond Unicode";
}

TEST(Printable, EveryByteAndEveryPairOfBytesBecomesCleanText) {
  for (int first = 0; first < 256; ++first)
    for (int second = 0; second < 256; ++second) {
      const std::string shown = printable(std::string{static_cast<char>(first), static_cast<char>(second)});
      EXPECT_EQ(printable(shown), shown) << first << " " << second;
      for (const char c : shown)
        EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) << first << " " << second;
    }
}

TEST(Printable, LinesOfOurOwnStay) {
  EXPECT_EQ(printable_lines("one\ntwo\x1b\n"), "one\ntwo\\x1b\n");
  EXPECT_EQ(printable_lines(""), "");
}

TEST(Printable, CountsAndCutsColumns) {
  EXPECT_EQ(columns_of("abc"), 3U);
  EXPECT_EQ(columns_of("\xc3\xbc"), 1U);
  EXPECT_EQ(columns_of("\xe9\x87\x8d\xf0\x9f\x8e\x89"), 4U);
  EXPECT_EQ(cut_to_columns("a\xe9\x87\x8d"
                           "b",
                           2),
            "a")
      << "half of a wide character does not fit";
  EXPECT_EQ(cut_to_columns("a\xe9\x87\x8d"
                           "b",
                           3),
            "a\xe9\x87\x8d");
  EXPECT_EQ(cut_to_columns("\xc3\xbc\xc3\xbc", 1), "\xc3\xbc");
  EXPECT_EQ(shorten_to_columns("abcdef", 6), "abcdef");
  EXPECT_EQ(shorten_to_columns("abcdefg", 6), "abc...");
  EXPECT_EQ(shorten_to_columns("abcdefg", 2), "..");
}

}  // namespace
}  // namespace hoplite
