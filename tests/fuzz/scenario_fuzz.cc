// The simulator's scenario files.
#include "base/check.h"
#include "fuzz_target.h"
#include "sim/scenario.h"

using namespace hoplite;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto scenario = sim::parse_scenario(text);
  if (!scenario) {
    CHECK(scenario.code() == Code::kInvalidArgument, scenario.error().to_string());
    CHECK(scenario.error().message.find("line") != std::string::npos, scenario.error().message);
    return 0;
  }
  int line = 0;
  for (const sim::Command& command : *scenario) {
    CHECK(!command.words.empty());
    CHECK(command.line > line, command.line, line);  // at most one command in a line, in order
    line = command.line;
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {
      "",
      "# a story without events\n\n",
      "limit inline_bytes 64\nnodes 3 latency=1ms rate=1MB/s\nn1 put a 1000 as p\nn2 get a as g timeout=5s\n"
      "expect g ok of p within 2s\n",
      "nodes 2\nn1 create b 5000 as w\nwrite w 2500\nn2 get b as g follow\nexpect g shown 2500 within 1s\nseal w as s\n"
      "n2 wait a b as x count=2\nexpect x ready b\nn1 remove b as r\n",
      "nodes 4 started=3\ncrash n1\nrestart n1\npause n2\nresume n2\nkill-client n2\npartition n1 n2 / n3\ncut n1 "
      "n2\nheal\n"
      "break n1 n2\nrate n2 10KB/s\nstart n4\nrun 100ms\nexpect n2 members 3 within 10s\nexpect n2 used 0\n",
      "nodes 1\nn1 get a as g wait_if_lost as client c2\ncancel g\nexpect g cancelled\nabort w\nrelease g\nunplug "
      "n1\nstop n1\n",
  };
}
