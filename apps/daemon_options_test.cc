#include "daemon_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <CLI/CLI.hpp>

#include "base/paths.h"
#include "base/random.h"

namespace hoplite {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Parses as a command line would; the message of the error, or "".
std::string parse(const std::vector<std::string>& arguments, DaemonOptions& options) {
  CLI::App app;
  add_daemon_options(app, options);
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return "";
}

TEST(DaemonOptions, TheCommandLineSetsEverything) {
  DaemonOptions options;
  EXPECT_EQ(parse({"--listen", "10.0.0.1",     "--join",  "10.0.0.2:1",    "--join", "[::1]:2",     "--memory",
                   "2GiB",     "--max-rate",   "500mbit", "--socket-mode", "0660",   "--busy-poll", "--ping-every",
                   "100ms",    "--io-threads", "3",       "--log-level",   "debug",  "--insecure"},
                  options),
            "");
  EXPECT_EQ(options.listen, "10.0.0.1:7411");
  EXPECT_THAT(options.join, ElementsAre("10.0.0.2:1", "[::1]:2"));
  EXPECT_EQ(options.memory_bytes, 2 * kGiB);
  EXPECT_EQ(options.max_rate, 62'500'000U);
  EXPECT_EQ(options.socket_mode, 0660U);
  EXPECT_TRUE(options.busy_poll);
  EXPECT_TRUE(options.insecure);
  EXPECT_EQ(options.ping_every, Duration::ms(100));
  EXPECT_EQ(options.io_threads, 3U);
  EXPECT_EQ(options.log_level, "debug");
}

TEST(DaemonOptions, BadValuesNameTheOption) {
  for (const auto& [option, value] : std::vector<std::pair<std::string, std::string>>{{"--memory", "much"},
                                                                                      {"--memory", "99%"},
                                                                                      {"--memory", "1"},
                                                                                      {"--max-rate", "5 bananas"},
                                                                                      {"--max-rate", "1bit"},
                                                                                      {"--socket", ""},
                                                                                      {"--io-threads", "0"},
                                                                                      {"--io-threads", "2x"},
                                                                                      {"--socket-mode", "rw"},
                                                                                      {"--log-level", "loud"},
                                                                                      {"--ping-every", "0"},
                                                                                      {"--listen", "nowhere:port"}}) {
    DaemonOptions options;
    EXPECT_THAT(parse({option, value}, options), HasSubstr(option)) << value;
  }
}

TEST(DaemonOptions, ArgumentsReproduceTheOptions) {
  EXPECT_THAT(to_arguments(DaemonOptions{}), IsEmpty());
  DaemonOptions options;
  options.listen = "127.0.0.1:0";
  options.join = {"10.0.0.1:7411", "10.0.0.2:7411"};
  options.memory_bytes = 12345678;
  options.max_rate = 1234567;
  options.socket = "/a path/with spaces.sock";
  options.busy_poll = true;
  options.ping_every = Duration::us(1500);
  options.socket_mode = 0666;
  DaemonOptions again;
  EXPECT_EQ(parse(to_arguments(options), again), "");
  EXPECT_EQ(to_arguments(again), to_arguments(options));
  EXPECT_EQ(again.listen, options.listen);
  EXPECT_EQ(again.join, options.join);
  EXPECT_EQ(again.memory_bytes, options.memory_bytes);
  EXPECT_EQ(again.max_rate, options.max_rate);
  EXPECT_EQ(again.socket, options.socket);
  EXPECT_EQ(again.ping_every, options.ping_every);
  EXPECT_EQ(again.socket_mode, options.socket_mode);
}

TEST(DaemonOptions, HelpShowsEveryOptionWithItsDefault) {
  CLI::App app;
  DaemonOptions options;
  add_daemon_options(app, options);
  const std::string help = app.help();
  for (const char* name :
       {"listen",       "join",       "advertise",  "socket",     "memory",    "token-file", "insecure",
        "max-rate",     "io-threads", "busy-poll",  "log-file",   "log-level", "config",     "socket-mode",
        "inline-bytes", "foreground", "ping-every", "dead-after", "drain",     "until-eof"})
    EXPECT_THAT(help, HasSubstr(std::string("--") + name));
  for (const char* value : {"127.0.0.1:7411", "[30%]", "[0600]", "[64KiB]", "[250ms]", "[900ms]", "[5000ms]", "[info]",
                            "[none]", "hoplite.sock]", "threads that move bytes [1]"})
    EXPECT_THAT(help, HasSubstr(value));
}

TEST(Config, SetsWhatTheCommandLineDidNot) {
  DaemonOptions options;
  EXPECT_EQ(parse({"--max-rate", "none", "--listen", "127.0.0.1:9"}, options), "");
  const auto parsed = parse_config(
      "# a comment\nlisten = \"10.0.0.1:1\"\nmax-rate = \"1gbit\"\nmemory = 1073741824\n"
      "busy-poll = true\njoin = [\"10.0.0.2\", \"10.0.0.3:5\"]\nping-every = 0.5\n"
      "dead-after = \"2s\"\nsocket-mode = \"0660\"\n",
      options);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(options.listen, "127.0.0.1:9");
  EXPECT_EQ(options.max_rate, 0U);
  EXPECT_EQ(options.memory_bytes, kGiB);
  EXPECT_TRUE(options.busy_poll);
  EXPECT_THAT(options.join, ElementsAre("10.0.0.2:7411", "10.0.0.3:5"));
  EXPECT_EQ(options.ping_every, Duration::ms(500));
  EXPECT_EQ(options.dead_after, Duration::s(2));
}

TEST(Config, ErrorsNameTheLineAndTheKey) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"listen = \"10.0.0.1\"\nmax_rate = \"1gbit\"\n",
       "line 2, key \"max_rate\": unknown; did you mean \"max-rate\"?"},
      {"colour = \"red\"\n", "line 1, key \"colour\": unknown"},
      {"\n\nio-threads = \"many\"\n", "line 3, key \"io-threads\": expected a number"},
      {"busy-poll = \"yes\"\n", "line 1, key \"busy-poll\": expected true or false"},
      {"listen = 5\n", "line 1, key \"listen\": expected a string"},
      {"socket-mode = 0o600\n", "line 1, key \"socket-mode\": expected a string"},
      {"join = [1]\n", "key \"join\": expected"},
      {"join = [[\"10.0.0.1\"]]\nmemory = [1]\n", "line 2, key \"memory\""},
      {"config = \"other.toml\"\n", "key \"config\": unknown"},
      {"a = 1\nthis is not toml\n", "line 2"},
      {"[listen]\nx = 1\n", "line 1, key \"listen\""},
      {"memory = 1979-05-27\n", "key \"memory\""},
      {"io-threads = 1e99\n", "key \"io-threads\""},
      {"ping-every = nan\n", "key \"ping-every\""},
      {"socket = \"a\\u0000b\"\n", "key \"socket\""},
      {"memory = 1\nsocket = \"\xc3\xbc\"\n", "line 2: only ASCII"},
  };
  for (const auto& [text, message] : cases) {
    DaemonOptions options;
    const auto parsed = parse_config(text, options);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.code(), Code::kInvalidArgument);
    EXPECT_THAT(parsed.error().message, HasSubstr(message)) << text;
  }
}

TEST(Config, AnyBytesAreAnErrorOrOptionsButNeverACrash) {
  Random random(3);
  const std::string good = "listen = \"10.0.0.1:1\"\njoin = [\"10.0.0.2\"]\nmemory = 1073741824\nbusy-poll = true\n";
  for (int round = 0; round < 2000; ++round) {
    std::string text = good;
    for (std::uint64_t edits = random.below(6); edits > 0; --edits)
      text[random.below(text.size())] = static_cast<char>(random.next());
    DaemonOptions options;
    static_cast<void>(parse_config(text, options));
  }
  DaemonOptions options;
  EXPECT_FALSE(parse_config("join = " + std::string(100'000, '['), options).ok());
  EXPECT_FALSE(parse_config(std::string(2 * kMiB, '#'), options).ok());
}

class FilesTest : public ::testing::Test {
 protected:
  FilesTest() {
    std::string folder = (std::filesystem::temp_directory_path() / "hoplite-options-XXXXXX").string();
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  ~FilesTest() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }
  std::string folder_;
};

TEST_F(FilesTest, AConfigFileIsNamedInErrors) {
  DaemonOptions options;
  EXPECT_TRUE(load_config(write("good.toml", "io-threads = 2\n"), options).ok());
  EXPECT_EQ(options.io_threads, 2U);
  EXPECT_THAT(load_config(write("bad.toml", "x = 1\n"), options).error().message, HasSubstr("bad.toml: line 1"));
  EXPECT_THAT(load_config(folder_ + "/none.toml", options).error().message, HasSubstr("none.toml"));
  EXPECT_FALSE(load_config(folder_, options).ok());
}

TEST_F(FilesTest, TheTokenComesFromTheFileThenTheEnvironment) {
  ::setenv("HOPLITE_TOKEN", "from the environment", 1);
  DaemonOptions options;
  EXPECT_EQ(*read_token(options), "from the environment");
  options.token_file = write("token", "from the file\n");
  EXPECT_EQ(*read_token(options), "from the file");
  options.token_file = write("empty", "\n");
  EXPECT_FALSE(read_token(options).ok());
  ::unsetenv("HOPLITE_TOKEN");
  options.token_file.clear();
  EXPECT_EQ(*read_token(options), "");
}

TEST(DaemonOptions, DefaultsAreFilledIn) {
  DaemonOptions options;
  EXPECT_EQ(socket_path(options), default_socket_path());
  EXPECT_GT(store_bytes(options), 0U);
  options.socket = "/x";
  options.memory_bytes = 5 * kMiB;
  EXPECT_EQ(socket_path(options), "/x");
  EXPECT_EQ(store_bytes(options), 5 * kMiB);
}

}  // namespace
}  // namespace hoplite
