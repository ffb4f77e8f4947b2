// Links a node's mind and nothing else: no transport, no threads, no cryptography. That it links is the test; that it
// needs no further library is checked by dependencies_test.py.
#include <cstdio>

#include "core/agent/agent.h"

namespace {

class NoBytes final : public hoplite::Progress {
 public:
  hoplite::ValidBytes valid(hoplite::CopyKey, std::uint32_t) const override { return {}; }
  std::uint64_t backlog(hoplite::NodeRef) const override { return 0; }
};

}  // namespace

int main() {
  const NoBytes progress;
  hoplite::AgentOptions options;
  options.self = {1};
  options.address = {"127.0.0.1", 1};
  options.capacity = 1 << 20;
  hoplite::Agent agent(options, progress, hoplite::Time{0});
  std::printf("%s\n", agent.self().to_string().c_str());
}
