#include "hoplite/object_id.h"

#include <gtest/gtest.h>

#include <unordered_set>

namespace hoplite {
namespace {

TEST(ObjectId, TextFormReadsBack) {
  const ObjectId id{0x0123456789abcdefULL, 42};
  EXPECT_EQ(id.to_string(), "0123456789abcdef000000000000002a");
  EXPECT_EQ(ObjectId::parse(id.to_string()), id);
  for (const char* text : {"", "0123456789abcdef000000000000002", "0123456789abcdef000000000000002ab",
                           "0123456789abcdef00000000000000zz", "+123456789abcdef000000000000002a"})
    EXPECT_EQ(ObjectId::parse(text), std::nullopt) << text;
}

// Nodes of different builds must agree on the id of a name, so its value is fixed here.
TEST(ObjectId, NamesHashToTheSameIdForEver) {
  EXPECT_EQ(ObjectId::named("weights").to_string(), "bdbda1eb6e05adc4800d98e5524fefbc");
  EXPECT_EQ(ObjectId::named("").to_string(), "99aa06d3014798d8e001c324468d497f");
}

TEST(ObjectId, NamedIdsAreMarked) {
  std::unordered_set<ObjectId> seen;
  for (int i = 0; i < 10'000; ++i) {
    const ObjectId id = ObjectId::named("object-" + std::to_string(i));
    EXPECT_TRUE(id.is_named());
    EXPECT_FALSE(id.is_nil());
    seen.insert(id);
  }
  EXPECT_EQ(seen.size(), 10'000U);
  EXPECT_FALSE((ObjectId{7, 1}).is_named());
  EXPECT_TRUE(ObjectId{}.is_nil());
}

TEST(ObjectId, WhatPeopleTypeIsAnIdOrAName) {
  const ObjectId id{1, 2};
  EXPECT_EQ(ObjectId::from_text(id.to_string()), id);
  EXPECT_EQ(ObjectId::from_text("weights"), ObjectId::named("weights"));
}

// Ids that one node mints differ in `lo` only: they must not fall into one bucket.
TEST(ObjectId, HashesOfNeighboursDiffer) {
  std::unordered_set<std::size_t> hashes;
  for (std::uint64_t n = 0; n < 1000; ++n) hashes.insert(std::hash<ObjectId>()({0xabcdef, n}));
  EXPECT_EQ(hashes.size(), 1000U);
}

}  // namespace
}  // namespace hoplite
