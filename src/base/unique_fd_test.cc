#include "base/unique_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <utility>

namespace hoplite {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(UniqueFd, WhatIsReplacedIsClosed) {
  UniqueFd kept(::open("/dev/null", O_RDONLY));
  const int before = kept.get();
  ASSERT_TRUE(is_open(before));
  kept = UniqueFd(::open("/dev/zero", O_RDONLY));
  EXPECT_FALSE(is_open(before));
  const int after = kept.get();
  kept.reset();
  EXPECT_FALSE(is_open(after));
}

TEST(UniqueFd, WhatIsReleasedOrMovedStaysOpen) {
  UniqueFd first(::open("/dev/null", O_RDONLY));
  UniqueFd second(std::move(first));
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): that is what is tested
  EXPECT_TRUE(is_open(second.get()));
  const UniqueFd third(second.release());
  EXPECT_TRUE(is_open(third.get()));
}

}  // namespace
}  // namespace hoplite
