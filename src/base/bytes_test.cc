#include "base/bytes.h"

#include <gtest/gtest.h>

namespace hoplite {
namespace {

TEST(ParseSize, KnowsBinaryAndDecimalUnits) {
  EXPECT_EQ(parse_size("0").value(), 0U);
  EXPECT_EQ(parse_size("1000").value(), 1000U);
  EXPECT_EQ(parse_size("12 B").value(), 12U);
  EXPECT_EQ(parse_size("4KiB").value(), 4 * kKiB);
  EXPECT_EQ(parse_size("4kB").value(), 4000U);
  EXPECT_EQ(parse_size("4MB").value(), 4'000'000U);
  EXPECT_EQ(parse_size("512 MiB").value(), 512 * kMiB);
  EXPECT_EQ(parse_size("4GiB").value(), 4 * kGiB);
  EXPECT_EQ(parse_size("4g").value(), 4 * kGiB);
  EXPECT_EQ(parse_size("1.5GB").value(), 1'500'000'000U);
  EXPECT_EQ(parse_size("2TiB").value(), 2048 * kGiB);
}

TEST(ParseSize, SaysWhatIsWrong) {
  for (const char* text : {"", "GiB", "-1", "nan", "inf", "1x", "4 GiBs", "1e30", "99999999TiB", "0x10"}) {
    const auto size = parse_size(text);
    ASSERT_EQ(size.code(), Code::kInvalidArgument) << text;
    EXPECT_NE(size.error().message.find("'" + std::string(text) + "'"), std::string::npos) << size.error().message;
  }
}

TEST(ParseRate, IsInBytesPerSecond) {
  EXPECT_EQ(parse_rate("0").value(), 0U);
  EXPECT_EQ(parse_rate("none").value(), 0U);
  EXPECT_EQ(parse_rate("500mbit").value(), 62'500'000U);
  EXPECT_EQ(parse_rate("1.5gbit").value(), 187'500'000U);
  EXPECT_EQ(parse_rate("10 Gbit/s").value(), 1'250'000'000U);
  EXPECT_EQ(parse_rate("10MB/s").value(), 10'000'000U);
  EXPECT_EQ(parse_rate("500").code(), Code::kInvalidArgument);  // bits or bytes?
  EXPECT_EQ(parse_rate("fast").code(), Code::kInvalidArgument);
}

TEST(ParseDuration, ABareNumberIsSeconds) {
  EXPECT_EQ(parse_duration("5s").value(), Duration::s(5));
  EXPECT_EQ(parse_duration("200ms").value(), Duration::ms(200));
  EXPECT_EQ(parse_duration("50 us").value(), Duration::us(50));
  EXPECT_EQ(parse_duration("1.5").value(), Duration::ms(1500));
  EXPECT_EQ(parse_duration("2m").value(), Duration::s(120));
  EXPECT_EQ(parse_duration("0").value(), Duration{});
  for (const char* text : {"", "-1s", "soon", "1e18", "5 days", "999999999h"})
    EXPECT_EQ(parse_duration(text).code(), Code::kInvalidArgument) << text;
}

TEST(Format, IsForPeople) {
  EXPECT_EQ(format_size(0), "0 B");
  EXPECT_EQ(format_size(1023), "1023 B");
  EXPECT_EQ(format_size(64 * kMiB), "64 MiB");
  EXPECT_EQ(format_size(kGiB + kGiB / 2), "1.5 GiB");
  EXPECT_EQ(format_rate(62.5e6), "500.0 Mbit/s");
  EXPECT_EQ(format_rate(187.5e6), "1.50 Gbit/s");
  EXPECT_EQ(format_rate(1000), "8 kbit/s");
  EXPECT_EQ(format_duration(Duration::ms(1200)), "1.20 s");
  EXPECT_EQ(format_duration(Duration::ms(350)), "350.0 ms");
  EXPECT_EQ(format_duration(Duration::us(12)), "12 us");
}

TEST(Format, SizesReadBackAsTheyWere) {
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{17}, kKiB, 3 * kMiB, 7 * kGiB, 2048 * kGiB})
    EXPECT_EQ(parse_size(format_size(size)).value(), size);
}

TEST(RoundUp, IsTheNextMultiple) {
  EXPECT_EQ(round_up(0, 64), 0U);
  EXPECT_EQ(round_up(1, 64), 64U);
  EXPECT_EQ(round_up(64, 64), 64U);
  EXPECT_EQ(round_up(65, 64), 128U);
}

}  // namespace
}  // namespace hoplite
