#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/printable.h"
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

TEST(Json, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(json_string("\x1b[2J\x7f"), R"("\u001b[2J\u007f")");
  EXPECT_EQ(json_string("\xc2\x9b \xe2\x80\xae \xf3\xa0\x81\x81"), R"("\u009b \u202e \udb40\udc41")");
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

TEST(Terminal, TablesShowNamesThatTryToEscape) {
  Table table({{"NAME", Table::Align::kLeft}, {"SIZE", Table::Align::kRight}});
  table.add({"\x1b[2J\n", "1 B"});
  table.add({"\xe9\x87\x8d", "10 B"});
  EXPECT_EQ(table.text(), "NAME       SIZE\n\\x1b[2J\\n   1 B\n\xe9\x87\x8d         10 B\n");
}

TEST(Terminal, ProgressSaysRateAndTimeLeft) {
  EXPECT_EQ(progress_text("get", {}, 80), "get: waiting");
  EXPECT_EQ(progress_text("reduce", {}, 80, "waiting for 2 of 4 sources"), "reduce: waiting for 2 of 4 sources");
  EXPECT_THAT(progress_text("reduce", {5, 10, 1}, 120, "a note"), HasSubstr("a note"));
  EXPECT_THAT(progress_text("put", {}, 80, "\x1b[2J"), HasSubstr("\\x1b"));
  const std::string text = progress_text("get", {50'000'000, 100'000'000, 25e6}, 120);
  EXPECT_THAT(text, HasSubstr("50 %"));
  EXPECT_THAT(text, HasSubstr(format_rate(25e6)));
  EXPECT_THAT(text, HasSubstr(format_duration(Duration::s(2)) + " left"));
  EXPECT_THAT(text, HasSubstr("[####"));
}

TEST(Terminal, ProgressFitsEveryTerminal) {
  for (int columns = 1; columns < 200; ++columns)
    for (const std::string note :
         {"", "waiting for 2 of 4 sources", "gr\xc3\xbc\xc3\x9f\xe9\x87\x8d\xe9\x87\x8d\x1b[2J"})
      for (const Progressed done : {Progressed{}, Progressed{123'456'789, 987'654'321'000, 123'456}}) {
        const std::string text = progress_text("allreduce", done, columns, note);
        EXPECT_LT(columns_of(text), static_cast<std::size_t>(std::max(columns, 1))) << columns << " " << text;
      }
  const std::string text = progress_text("get", {50'000'000, 100'000'000, 25e6}, 40);
  EXPECT_THAT(text, HasSubstr("50 %"));
  EXPECT_THAT(text, HasSubstr(" left"));
}

TEST(Terminal, RatesCountFromTheFirstByte) {
  using std::chrono::seconds;
  const std::chrono::steady_clock::time_point start{};
  RateSinceFirstByte rate;
  EXPECT_EQ(rate.update(start, 0), 0);
  EXPECT_EQ(rate.update(start + seconds(100), 0), 0) << "waiting for somebody to put it";
  EXPECT_EQ(rate.update(start + seconds(200), 1'000), 0) << "nothing is known yet";
  EXPECT_EQ(rate.update(start + seconds(201), 11'000), 10'000);
  EXPECT_EQ(rate.update(start + seconds(202), 21'000), 10'000);
  EXPECT_EQ(rate.update(start + seconds(300), 0), 0) << "another version starts over";
  EXPECT_EQ(rate.update(start + seconds(400), 5), 0);
  EXPECT_EQ(rate.update(start + seconds(401), 105), 100);
}

}  // namespace
}  // namespace hoplite
