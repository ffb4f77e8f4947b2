#include "protocol/names.h"

#include <gtest/gtest.h>

namespace hoplite {
namespace {

TEST(Names, ANameProvesItself) {
  EXPECT_TRUE(is_name_of(ObjectId::named("weights"), "weights"));
  EXPECT_FALSE(is_name_of(ObjectId::named("weights"), "grads"));
  EXPECT_FALSE(is_name_of(ObjectId{1, 1}, "weights"));
  EXPECT_FALSE(is_name_of(ObjectId::named(""), ""));
  const std::string longest(kMaxNameBytes, 'n');
  EXPECT_TRUE(is_name_of(ObjectId::named(longest), longest));
  EXPECT_FALSE(is_name_of(ObjectId::named(longest + "n"), longest + "n"));
}

TEST(Names, DescribesObjects) {
  const ObjectId id = ObjectId::named("weights");
  EXPECT_EQ(described(id, "weights"), "weights = " + id.to_string());
  EXPECT_EQ(described(id, ""), id.to_string());
}

TEST(Names, AreBounded) {
  Names names(10);
  names.add("12345");
  names.add("12345");  // once is enough
  names.add("123456");
  names.add("abcde");
  names.add("f");
  names.add("");
  EXPECT_EQ(names.find(ObjectId::named("12345")), "12345");
  EXPECT_EQ(names.find(ObjectId::named("abcde")), "abcde");
  EXPECT_EQ(names.find(ObjectId::named("f")), "") << "there is no room left";
  EXPECT_EQ(names.all().size(), 2U);
  Names more(10 * kMaxNameBytes);
  more.add(std::string(kMaxNameBytes + 1, 'n'));
  EXPECT_TRUE(more.all().empty());
}

}  // namespace
}  // namespace hoplite
