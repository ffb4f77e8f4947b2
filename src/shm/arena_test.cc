#include "shm/arena.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "shm/memory_info.h"
#include "shm/test_helpers.h"

namespace hoplite {
namespace {

// Patient: for what a thread of low priority does on a busy machine.
bool eventually(auto condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

std::uint64_t resident_bytes(const Arena& arena, Extent range) {
  std::vector<unsigned char> pages(range.size / kPageBytes);
  EXPECT_EQ(mincore(arena.base() + range.offset, range.size, pages.data()), 0);
  return static_cast<std::uint64_t>(std::count_if(pages.begin(), pages.end(), [](auto p) { return p & 1; })) *
         kPageBytes;
}

TEST(ArenaTest, IsReadAndWritableAndRoundedToPages) {
  const auto arena = make_arena(10'000);
  EXPECT_EQ(arena->size(), 12'288u);
  std::memset(arena->base(), 0x5a, arena->size());
  EXPECT_EQ(arena->base()[arena->size() - 1], std::byte{0x5a});
}

TEST(ArenaTest, NobodyCanResizeIt) {
  const auto arena = make_arena(1 * kMiB);
  EXPECT_NE(ftruncate(arena->writable_fd(), 4096), 0);
  EXPECT_EQ(errno, EPERM);
  EXPECT_NE(ftruncate(arena->writable_fd(), 2 * static_cast<off_t>(kMiB)), 0);
  EXPECT_EQ(errno, EPERM);
  EXPECT_NE(fcntl(arena->writable_fd(), F_ADD_SEALS, F_SEAL_WRITE), 0);
}

TEST(ArenaTest, NobodyCanSealItFurther) {
  const auto arena = make_arena(1 * kMiB);
  EXPECT_LT(fcntl(arena->writable_fd(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0) << "writers could be locked out";
}

TEST(ArenaTest, ReadOnlyDescriptorCannotBeMappedForWriting) {
  const auto arena = make_arena(1 * kMiB);
  const int protection = PROT_READ | PROT_WRITE;
  EXPECT_EQ(mmap(nullptr, arena->size(), protection, MAP_SHARED, arena->read_only_fd(), 0), MAP_FAILED);
  EXPECT_EQ(errno, EACCES);
  EXPECT_LT(write(arena->read_only_fd(), "x", 1), 0);
}

TEST(ArenaTest, DescriptorsAreCloseOnExecAndClosedAtTheEnd) {
  const std::size_t before = open_descriptors();
  {
    const auto arena = make_arena(1 * kMiB);
    EXPECT_NE(fcntl(arena->writable_fd(), F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_NE(fcntl(arena->read_only_fd(), F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_EQ(open_descriptors(), before + 2);
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST(ArenaTest, LargerThanMemoryIsAClearError) {
  const std::uint64_t total = read_memory_info().value().total_bytes;
  const auto arena = Arena::create({.bytes = total + 1, .prefault_ahead_bytes = 0});
  ASSERT_FALSE(arena);
  EXPECT_EQ(arena.code(), Code::kInvalidArgument);
  EXPECT_NE(arena.error().message.find("does not fit into memory"), std::string::npos) << arena.error().message;
  EXPECT_EQ(Arena::create({.bytes = ~std::uint64_t{0}, .prefault_ahead_bytes = 0}).code(), Code::kInvalidArgument);
  EXPECT_EQ(Arena::create({.bytes = 0, .prefault_ahead_bytes = 0}).code(), Code::kInvalidArgument);
}

TEST(ArenaTest, WithoutPrefaultingOnlyTheFirstHugePageIsTouched) {
  const auto arena = make_arena(64 * kMiB);
  EXPECT_EQ(arena->prefaulted_bytes(), 0u);
  EXPECT_LE(resident_bytes(*arena, {0, arena->size()}), 2 * kMiB);
}

TEST(ArenaTest, PopulatesAheadOfBothEnds) {
  const auto arena = make_arena(256 * kMiB, 8 * kMiB);
  const auto all_resident = [&](Extent range) { return resident_bytes(*arena, range) == range.size; };
  ASSERT_TRUE(eventually([&] { return all_resident({0, 8 * kMiB}) && all_resident({248 * kMiB, 8 * kMiB}); }));

  arena->handed_out({40 * kMiB, 1 * kMiB});   // near the low end: up to 49 MiB
  arena->handed_out({200 * kMiB, 1 * kMiB});  // near the high end: down to 192 MiB
  ASSERT_TRUE(eventually([&] { return all_resident({0, 49 * kMiB}) && all_resident({192 * kMiB, 64 * kMiB}); }));
  constexpr std::uint64_t kLargestStep = 16 * kMiB;
  EXPECT_EQ(resident_bytes(*arena, {49 * kMiB + kLargestStep, 100 * kMiB}), 0u);
  EXPECT_TRUE(eventually([&] { return arena->prefaulted_bytes() >= (49 + 64) * kMiB; }));
}

TEST(ArenaTest, AnExtentThatTouchesAnEndBelongsToIt) {
  const auto arena = make_arena(256 * kMiB, 8 * kMiB);
  arena->handed_out({64 * kMiB, 192 * kMiB});
  ASSERT_TRUE(eventually([&] { return resident_bytes(*arena, {56 * kMiB, 200 * kMiB}) == 200 * kMiB; }));
  EXPECT_EQ(resident_bytes(*arena, {16 * kMiB, 32 * kMiB}), 0u);
}

TEST(ArenaTest, PopulatesAllOfItAndNoMore) {
  const auto arena = make_arena(20 * kMiB + 4096, 4 * kMiB);
  arena->handed_out({0, arena->size()});
  ASSERT_TRUE(eventually([&] { return arena->prefaulted_bytes() == arena->size(); }));
  EXPECT_EQ(resident_bytes(*arena, {0, arena->size()}), arena->size());
}

TEST(ArenaTest, PrefaultingKeepsTheBytes) {
  const auto arena = make_arena(32 * kMiB, 4 * kMiB);
  std::memset(arena->base(), 0x77, arena->size());
  arena->handed_out({0, arena->size()});
  ASSERT_TRUE(eventually([&] { return arena->prefaulted_bytes() == arena->size(); }));
  for (std::uint64_t at = 0; at < arena->size(); at += 512) ASSERT_EQ(arena->base()[at], std::byte{0x77});
}

TEST(ArenaTest, StopsInTheMiddleOfPrefaulting) {
  constexpr std::uint64_t kBytes = 1 * kGiB;  // half a second at the very least
  auto arena = make_arena(kBytes, 64 * kMiB);
  const UniqueFd kept(fcntl(arena->writable_fd(), F_DUPFD_CLOEXEC, 0));
  arena->handed_out({0, kBytes});
  arena.reset();
  struct stat status{};
  ASSERT_EQ(fstat(kept.get(), &status), 0);
  constexpr std::uint64_t kBytesPerBlock = 512;
  EXPECT_LT(static_cast<std::uint64_t>(status.st_blocks) * kBytesPerBlock, kBytes);
}

}  // namespace
}  // namespace hoplite
