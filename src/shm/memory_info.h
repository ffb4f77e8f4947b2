// How much memory this process may use: the machine's, or its cgroup's if that is less. Shared memory counts against
// both.
#pragma once

#include <cstdint>
#include <string>

#include "hoplite/error.h"

namespace hoplite {

struct MemoryInfo {
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;  // without pushing others out
};

// Files are read below `root`, which tests set: "<root>/proc/meminfo" and so on.
Result<MemoryInfo> read_memory_info(const std::string& root = "");

}  // namespace hoplite
