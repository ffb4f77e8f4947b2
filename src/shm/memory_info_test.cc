#include "shm/memory_info.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/bytes.h"

namespace hoplite {
namespace {

// A made-up /proc and /sys.
class MemoryInfoTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "hoplite-memory-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    write("/proc/meminfo", "MemTotal:        8388608 kB\nMemFree:  1 kB\nMemAvailable:    4194304 kB\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  std::string root_;
};

TEST_F(MemoryInfoTest, TheMachine) {
  const MemoryInfo info = read_memory_info(root_).value();
  EXPECT_EQ(info.total_bytes, 8 * kGiB);
  EXPECT_EQ(info.available_bytes, 4 * kGiB);
}

TEST_F(MemoryInfoTest, VersionTwoLimitOfAParent) {
  write("/proc/self/cgroup", "0::/team/job\n");
  write("/sys/fs/cgroup/team/job/memory.max", "max\n");
  write("/sys/fs/cgroup/team/memory.max", std::to_string(2 * kGiB) + "\n");
  write("/sys/fs/cgroup/team/memory.current", std::to_string(1 * kGiB) + "\n");
  write("/sys/fs/cgroup/team/memory.stat", "anon 5\ninactive_file " + std::to_string(256 * kMiB) + "\n");
  const MemoryInfo info = read_memory_info(root_).value();
  EXPECT_EQ(info.total_bytes, 2 * kGiB);
  EXPECT_EQ(info.available_bytes, 1 * kGiB + 256 * kMiB);
}

TEST_F(MemoryInfoTest, VersionOneLimitAtTheMount) {
  write("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory,hugetlb:/docker/0123\n0::/\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(1 * kGiB) + "\n");
  write("/sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(2 * kGiB) + "\n");
  const MemoryInfo info = read_memory_info(root_).value();
  EXPECT_EQ(info.total_bytes, 1 * kGiB);
  EXPECT_EQ(info.available_bytes, 0u);
}

TEST_F(MemoryInfoTest, UnlimitedCgroupChangesNothing) {
  write("/proc/self/cgroup", "4:memory:/a\n");
  write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
  write("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "1000\n");
  const MemoryInfo info = read_memory_info(root_).value();
  EXPECT_EQ(info.total_bytes, 8 * kGiB);
  EXPECT_EQ(info.available_bytes, 4 * kGiB);
}

TEST_F(MemoryInfoTest, NoMeminfoIsAnError) {
  std::filesystem::remove(root_ + "/proc/meminfo");
  EXPECT_EQ(read_memory_info(root_).code(), Code::kInternal);
}

}  // namespace
}  // namespace hoplite
