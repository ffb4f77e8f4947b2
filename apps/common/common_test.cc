#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "common/daemon_process.h"
#include "common/json.h"
#include "common/terminal.h"

namespace hoplite {
namespace {

using ::testing::HasSubstr;

TEST(Json, QuotesWhatMustBe) {
  EXPECT_EQ(json_string("a \"quoted\" \\ line\n"), R"("a \"quoted\" \\ line\u000a")");
  EXPECT_EQ(json_string("gr\xc3\xbc\xc3\x9f"), "\"gr\xc3\xbc\xc3\x9f\"");
  // Not UTF-8: a lone byte, an overlong form, a surrogate, a cut character.
  for (const char* bad : {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xe2\x82"})
    EXPECT_THAT(json_string(bad), HasSubstr("\xEF\xBF\xBD"));
}

TEST(Json, BuildsObjectsAndLists) {
  EXPECT_EQ(JsonObject().text(), "{}");
  EXPECT_EQ(JsonObject().add("a", 1).add("b", "x").add("c", true).add("d", 0.5).text(),
            R"({"a": 1, "b": "x", "c": true, "d": 0.5})");
  EXPECT_EQ(JsonObject().add("big", ~std::uint64_t{0}).text(), R"({"big": 18446744073709551615})");
  EXPECT_EQ(JsonList().raw("1").raw("{}").text(), "[1, {}]");
}

TEST(Ready, ReadsWhatTheDaemonSays) {
  const auto daemon = parse_ready_line("ready /tmp/a b/h.sock 123 10.0.0.1:7411");
  ASSERT_TRUE(daemon.ok());
  EXPECT_EQ(daemon->socket, "/tmp/a b/h.sock");
  EXPECT_EQ(daemon->pid, 123);
  EXPECT_EQ(daemon->address, "10.0.0.1:7411");
  EXPECT_EQ(parse_ready_line("error address in use").error().message, "address in use");
  for (const char* bad :
       {"", "ready", "ready ", "ready x", "ready x 1", "ready  1 a", "ready x zero a", "ready x -1 a", "hello"})
    EXPECT_FALSE(parse_ready_line(bad).ok()) << bad;
}

TEST(Terminal, DrawsBars) {
  EXPECT_EQ(bar(0, 12), "[          ]");
  EXPECT_EQ(bar(0.5, 12), "[#####     ]");
  EXPECT_EQ(bar(7, 12), "[##########]");
}

TEST(Terminal, AlignsTables) {
  Table table({{"NAME", Table::Align::kLeft}, {"SIZE", Table::Align::kRight}});
  table.add({"a", "10 B"});
  table.add({"longer name"});
  EXPECT_EQ(table.text(), "NAME         SIZE\na            10 B\nlonger name\n");
}

TEST(Terminal, ProgressSaysRateAndTimeLeft) {
  EXPECT_EQ(progress_text("get", 0, 0, 3, 80), "get: waiting");
  EXPECT_EQ(progress_text("reduce", 0, 0, 3, 80, "waiting for 2 of 4 sources"), "reduce: waiting for 2 of 4 sources");
  EXPECT_THAT(progress_text("reduce", 5, 10, 3, 120, "a note"), HasSubstr("a note"));
  const std::string text = progress_text("get", 50'000'000, 100'000'000, 2, 120);
  EXPECT_THAT(text, HasSubstr("50 %"));
  EXPECT_THAT(text, HasSubstr(format_rate(25e6)));
  EXPECT_THAT(text, HasSubstr(format_duration(Duration::s(2)) + " left"));
}

}  // namespace
}  // namespace hoplite
