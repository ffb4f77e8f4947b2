// The daemon's configuration file.
#include "base/check.h"
#include "daemon_options.h"
#include "fuzz_target.h"

using namespace hoplite;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  DaemonOptions options;
  const auto parsed = parse_config(text, options);
  if (!parsed) {
    CHECK(parsed.code() == Code::kInvalidArgument, parsed.error().to_string());
    CHECK(!parsed.error().message.empty());
    return 0;
  }
  // The same text says the same thing, and what was accepted can be passed on.
  DaemonOptions again;
  CHECK(parse_config(text, again).ok());
  CHECK(to_arguments(options) == to_arguments(again));
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {
      "",
      "# nothing but a comment\n",
      "listen = \"10.0.0.1:7411\"\njoin = [\"10.0.0.2:7411\", \"10.0.0.3:7411\"]\nmemory = \"4GiB\"\n",
      "memory = \"30%\"\nforeground = true\nlog_level = 1\n",
      "max-rate = \"500mbit\"\nio-threads = 2\nbusy-poll = true\ninsecure = false\n",
      "socket = \"/run/x.sock\"\nsocket-mode = \"0600\"\ninline-bytes = \"64KiB\"\nlog-level = \"debug\"\nlog-file = "
      "\"x.log\"\n",
      "ping-every = \"250ms\"\ndead-after = \"0.9s\"\ntoken-file = \"token\"\nadvertise = \"[::1]:7411\"\n",
      "[table]\nkey = 1\n",
      "join = [1, 2.5, true, 1979-05-27T07:32:00Z, {a = 1}]\n",
      "listen = 'one'\nlisten = 'two'\n",
  };
}
