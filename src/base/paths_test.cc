#include "base/paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hoplite {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Paths, FindsListeningDefaultSocketsInTheKernelsTable) {
  const std::string table =
      "Num       RefCount Protocol Flags    Type St Inode Path\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 31337 /run/user/1000/hoplite.sock\n"
      "0000000000000000: 00000003 00000000 00000000 0001 03 31338 /run/user/1001/hoplite.sock\n"  // a connection
      "0000000000000000: 00000002 00000000 00010000 0001 01 31339 /tmp/a b/hoplite.sock\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 31340 @/abstract/hoplite.sock\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 31341 /tmp/other.sock\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 31342\n"
      "nonsense\n";
  EXPECT_THAT(default_sockets_in(table), ElementsAre("/run/user/1000/hoplite.sock", "/tmp/a b/hoplite.sock"));
  EXPECT_THAT(default_sockets_in(""), IsEmpty());
}

TEST(Paths, SaysWhatThereIsToChooseFrom) {
  EXPECT_EQ(choose_among({}), "");
  EXPECT_THAT(choose_among({"/a", "/b", "/c"}), HasSubstr("/a, /b and /c: choose one with --socket"));
}

}  // namespace
}  // namespace hoplite
