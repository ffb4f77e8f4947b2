#include "base/paths.h"

#include <unistd.h>

#include <cstdlib>

namespace hoplite {

std::string default_socket_path() {
  const char* runtime_dir = std::getenv("XDG_RUNTIME_DIR");
  if (runtime_dir != nullptr && runtime_dir[0] == '/') return std::string(runtime_dir) + "/hoplite.sock";
  return "/tmp/hoplite-" + std::to_string(getuid()) + "/hoplite.sock";
}

}  // namespace hoplite
