#include "base/address.h"

#include <gtest/gtest.h>

namespace hoplite {
namespace {

TEST(Address, ParsesBothFamilies) {
  EXPECT_EQ(Address::parse("10.0.0.1:7411", 1).value(), (Address{"10.0.0.1", 7411}));
  EXPECT_EQ(Address::parse("10.0.0.1", 7411).value(), (Address{"10.0.0.1", 7411}));
  EXPECT_EQ(Address::parse("[::1]:0", 1).value(), (Address{"::1", 0}));
  EXPECT_EQ(Address::parse("[fe80::1]", 7411).value(), (Address{"fe80::1", 7411}));
}

TEST(Address, PrintsWhatItParses) {
  for (const char* text : {"10.0.0.1:7411", "[::1]:7411", "127.0.0.1:65535"})
    EXPECT_EQ(Address::parse(text, 1).value().to_string(), text);
}

TEST(Address, SaysWhatIsWrong) {
  for (const std::string text : {"", ":7411", "[]:1", "[::1", "[::1]7411", "10.0.0.1:", "10.0.0.1:x", "10.0.0.1:65536",
                                 "10.0.0.1:-1", "10.0.0.1:1 ", "::1"}) {
    const auto address = Address::parse(text, 1);
    ASSERT_EQ(address.code(), Code::kInvalidArgument) << text;
    EXPECT_TRUE(address.error().message.starts_with("'" + text + "' is not an address: ")) << address.error().message;
  }
  EXPECT_FALSE(Address::parse(std::string(256, 'h'), 1).ok());
}

}  // namespace
}  // namespace hoplite
