#include "shm/mapped_region.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "base/unique_fd.h"

namespace hoplite {
namespace {

// Whether the system has huge pages for us or not, the bytes are the same before and after.
TEST(HugePagesTest, BytesStayAsTheyAre) {
  constexpr std::uint64_t kBytes = 8 * kMiB;
  const UniqueFd fd(memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(fd.get(), static_cast<off_t>(kBytes)), 0);
  const MappedRegion memory = MappedRegion::map(fd.get(), kBytes, PROT_READ | PROT_WRITE).value();
  const MappedRegion other = MappedRegion::map(fd.get(), kBytes, PROT_READ).value();
  for (std::uint64_t at = 0; at < kBytes; at += 3 * kPageBytes) std::memset(memory.data() + at, 0x11, 100);
  EXPECT_EQ(other.data()[6 * kPageBytes], std::byte{0x11});
  make_huge({memory.data(), kBytes});
  for (std::uint64_t at = 0; at < kBytes; at += kPageBytes) {
    ASSERT_EQ(other.data()[at], at % (3 * kPageBytes) == 0 ? std::byte{0x11} : std::byte{0}) << at;
    ASSERT_EQ(memory.data()[at + 100], std::byte{0});
  }
}

TEST(HugePagesTest, NoWholeHugePageInside) {
  const UniqueFd fd(memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(fd.get(), static_cast<off_t>(4 * kMiB)), 0);
  const MappedRegion memory = MappedRegion::map(fd.get(), 4 * kMiB, PROT_READ | PROT_WRITE).value();
  EXPECT_FALSE(make_huge({memory.data() + kPageBytes, 3 * kMiB}));
  EXPECT_FALSE(make_huge({memory.data(), 1 * kMiB}));
}

}  // namespace
}  // namespace hoplite
