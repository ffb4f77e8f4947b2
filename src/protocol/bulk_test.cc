#include "protocol/bulk.h"

#include <gtest/gtest.h>

#include "protocol/test_messages.h"

namespace hoplite {
namespace {

TEST(FrameHeader, ComesBackAsItWasSent) {
  Random random(1);
  for (int round = 0; round < 1000; ++round) {
    FrameHeader sent;
    RandomFields fields(random);
    fields(sent.type, sent.code, sent.length, sent.transfer, sent.offset);
    FrameHeader received;
    ASSERT_TRUE(FrameHeader::decode(sent.encode().data(), received));
    EXPECT_EQ(received.type, sent.type);
    EXPECT_EQ(received.code, sent.code);
    EXPECT_EQ(received.length, sent.length);
    EXPECT_EQ(received.transfer, sent.transfer);
    EXPECT_EQ(received.offset, sent.offset);
  }
}

TEST(FrameHeader, EveryOtherMagicTypeAndCodeIsRefused) {
  const auto good = FrameHeader{}.encode();
  FrameHeader header;
  for (int value = 0; value < 256; ++value) {
    for (std::size_t at = 0; at < 4; ++at) {
      auto wire = good;
      wire[at] = static_cast<std::byte>(value);
      const bool valid = at < 2 ? wire[at] == good[at]
                                : value <= (at == 2 ? static_cast<int>(last_enumerator(FrameType{}))
                                                    : static_cast<int>(last_enumerator(Code{})));
      EXPECT_EQ(FrameHeader::decode(wire.data(), header), valid) << "byte " << at << " = " << value;
    }
  }
}

std::string encoded(PullRequest pull) {
  std::string out;
  Writer writer(out);
  pull.fields(writer);
  return out;
}

TEST(PullRequest, ComesBackAndFitsItsBound) {
  Random random(2);
  for (int round = 0; round < 1000; ++round) {
    PullRequest sent;
    RandomFields fields(random);
    sent.fields(fields);
    const std::string wire = encoded(sent);
    EXPECT_LE(wire.size(), PullRequest::kMaxEncoded);
    Reader reader(as_bytes(wire));
    PullRequest received;
    received.fields(reader);
    ASSERT_TRUE(reader.ok() && reader.rest().empty());
    EXPECT_EQ(encoded(received), wire);
    EXPECT_EQ(received.id, sent.id);
    EXPECT_EQ(received.offset, sent.offset);
    for (std::size_t size = 0; size < wire.size(); ++size) {
      Reader cut(as_bytes(wire).first(size));
      received.fields(cut);
      EXPECT_FALSE(cut.ok());
    }
  }
}

// Slices are a partition: in order, without gap or overlap, and whole.
void expect_partition(std::uint64_t size, std::uint32_t slices) {
  std::uint64_t next = 0;
  for (std::uint32_t slice = 0; slice < slices; ++slice) {
    const SliceRange range = slice_range(size, slices, slice);
    ASSERT_EQ(range.begin, next) << size << " bytes in " << slices << ", slice " << slice;
    ASSERT_LE(range.begin, range.end);
    ASSERT_TRUE(range.begin % 64 == 0 || range.begin == size) << range.begin;
    next = range.end;
  }
  ASSERT_EQ(next, size) << slices;
}

TEST(SliceRange, IsAPartitionOfEverySmallObject) {
  for (std::uint64_t size = 0; size < 1300; ++size)
    for (std::uint32_t slices = 1; slices <= 17; ++slices) expect_partition(size, slices);
}

TEST(SliceRange, IsAPartitionOfLargeObjects) {
  Random random(3);
  for (int round = 0; round < 100'000; ++round)
    expect_partition(random.next() >> (2 + random.below(60)), static_cast<std::uint32_t>(random.between(1, 20)));
}

TEST(SliceRange, SlicesOfALargeObjectAreAboutEqual) {
  for (std::uint32_t slices = 1; slices <= 16; ++slices)
    for (std::uint32_t slice = 0; slice < slices; ++slice) {
      const SliceRange range = slice_range(kGiB, slices, slice);
      EXPECT_NEAR(static_cast<double>(range.end - range.begin), static_cast<double>(kGiB) / slices, 64.0 * slices);
    }
}

}  // namespace
}  // namespace hoplite
