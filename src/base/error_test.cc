#include "hoplite/error.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "base/check.h"
#include "base/time.h"

namespace hoplite {
namespace {

TEST(Error, ReadsAsASentence) {
  EXPECT_EQ((Error{Code::kTimedOut, "waiting for x"}).to_string(), "timed out: waiting for x");
  EXPECT_EQ((Error{Code::kLost, ""}).to_string(), "lost");
}

TEST(Error, EveryCodeHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(last_enumerator(Code{})); ++code)
    names.insert(code_name(static_cast<Code>(code)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(last_enumerator(Code{})) + 1);
  EXPECT_EQ(names.count("unknown"), 0U);
}

Result<std::unique_ptr<int>> make(bool succeed) {
  if (succeed) return std::make_unique<int>(7);
  return Error{Code::kStoreFull, "no room"};
}

TEST(Result, HoldsAValueOrAnError) {
  auto good = make(true);
  ASSERT_TRUE(good);
  EXPECT_EQ(good.code(), Code::kOk);
  EXPECT_EQ(**good, 7);
  const std::unique_ptr<int> moved = std::move(good).value();
  EXPECT_EQ(*moved, 7);

  const auto bad = make(false);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.code(), Code::kStoreFull);
  EXPECT_EQ(bad.error().message, "no room");
}

TEST(Result, AskingForWhatIsNotThereThrows) {
  EXPECT_THROW((void)make(false).value(), std::bad_variant_access);
  EXPECT_THROW((void)make(true).error(), std::bad_variant_access);
}

TEST(Status, IsOkByDefault) {
  const Result<void> ok;
  EXPECT_TRUE(ok);
  EXPECT_EQ(ok.code(), Code::kOk);
  const Result<void> failed = Error{Code::kDeleted, "gone"};
  EXPECT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "gone");
}

TEST(CheckDeathTest, PrintsThePlaceTheConditionAndTheValues) {
  const int size = 3;
  CHECK(size == 3, size);
  EXPECT_DEATH(CHECK(size == 4, size, "bytes"), R"(error_test\.cc:[0-9]+: CHECK\(size == 4\) failed: 3 bytes)");
  EXPECT_DEATH(CHECK(size < 0), R"(CHECK\(size < 0\) failed:)");
}

TEST(Time, NeverPlusAnythingIsNever) {
  EXPECT_EQ(Time::never() + Duration::s(1), Time::never());
  EXPECT_EQ(Time{Time::never().ns - 1} + Duration::s(1), Time::never());
  EXPECT_EQ(Time{5} + Duration{-3}, Time{2});
  EXPECT_EQ(Time{5} - Time{7}, Duration{-2});
  EXPECT_EQ(Duration::from_seconds(0.25), Duration::ms(250));
}

}  // namespace
}  // namespace hoplite
