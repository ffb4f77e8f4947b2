#include "shm/memory_info.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace hoplite {
namespace {

// One version of cgroups: where its folders are mounted and what its files are called.
struct CgroupFiles {
  const char* mount;
  const char* limit;
  const char* usage;
  const char* reclaimable;  // the key in memory.stat: cached files that the kernel drops when memory is wanted
};
constexpr CgroupFiles kVersion1{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                "total_inactive_file"};
constexpr CgroupFiles kVersion2{"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end == text.data()) return std::nullopt;
  return value;
}

// nullopt also for "max", which is what a cgroup without a limit says.
std::optional<std::uint64_t> read_number(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  if (!(file >> word)) return std::nullopt;
  return parse_number(word);
}

// The number that follows the word `key` in a file of lines "key number ...".
std::optional<std::uint64_t> read_keyed_number(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string first;
    std::string second;
    if (words >> first >> second && first == key) return parse_number(second);
  }
  return std::nullopt;
}

void apply_limit(const std::string& folder, const CgroupFiles& files, MemoryInfo& info) {
  const std::optional<std::uint64_t> limit = read_number(folder + "/" + files.limit);
  if (!limit) return;
  const std::uint64_t usage = read_number(folder + "/" + files.usage).value_or(0);
  const std::uint64_t reclaimable = read_keyed_number(folder + "/memory.stat", files.reclaimable).value_or(0);
  const std::uint64_t kept = usage - std::min(usage, reclaimable);
  info.total_bytes = std::min(info.total_bytes, *limit);
  info.available_bytes = std::min(info.available_bytes, *limit - std::min(*limit, kept));
}

// Every folder from the process's own up to the mount: any of them may set the limit. Inside a container the own path
// may not be visible; its limit is then at the mount.
void apply_limits(const std::string& root, const CgroupFiles& files, std::string path, MemoryInfo& info) {
  const std::string mount = root + files.mount;
  while (!path.empty() && path != "/") {
    apply_limit(std::string(mount).append(path), files, info);
    path.resize(path.rfind('/'));
  }
  apply_limit(mount, files, info);
}

// Is "memory" one of the controllers in "cpu,memory"?
bool has_memory_controller(const std::string& controllers) {
  return ("," + controllers + ",").find(",memory,") != std::string::npos;
}

}  // namespace

Result<MemoryInfo> read_memory_info(const std::string& root) {
  const std::string meminfo = root + "/proc/meminfo";
  const std::optional<std::uint64_t> total_kib = read_keyed_number(meminfo, "MemTotal:");
  const std::optional<std::uint64_t> available_kib = read_keyed_number(meminfo, "MemAvailable:");
  if (!total_kib || !available_kib) return Error{Code::kInternal, meminfo + " does not state the amount of memory"};
  MemoryInfo info{*total_kib * kKiB, *available_kib * kKiB};

  // Lines of "number:controllers:path"; version 2 has no controllers.
  std::ifstream cgroups(root + "/proc/self/cgroup");
  std::string number;
  std::string controllers;
  std::string path;
  while (std::getline(cgroups, number, ':') && std::getline(cgroups, controllers, ':') && std::getline(cgroups, path)) {
    if (controllers.empty()) apply_limits(root, kVersion2, path, info);
    if (has_memory_controller(controllers)) apply_limits(root, kVersion1, path, info);
  }
  return info;
}

}  // namespace hoplite
