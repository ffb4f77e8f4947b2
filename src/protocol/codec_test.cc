#include "protocol/codec.h"

#include <gtest/gtest.h>

#include <memory>

#include "protocol/messages.h"
#include "protocol/test_messages.h"

namespace hoplite {
namespace {

struct Everything {
  std::uint8_t u8 = 0;
  std::uint16_t u16 = 0;
  std::uint32_t u32 = 0;
  std::int64_t i64 = 0;
  bool flag = false;
  Code code = Code::kOk;
  std::string text;
  std::vector<std::uint16_t> numbers;
  template <typename A> void fields(A& a) { a(u8, u16, u32, i64, flag, code, text, numbers); }
};

std::string encoded(Everything message) {
  std::string out;
  Writer writer(out);
  message.fields(writer);
  return out;
}

bool reads(const std::string& wire, Everything& out) {
  Reader reader(as_bytes(wire));
  out.fields(reader);
  return reader.ok() && reader.rest().empty();
}

Everything example() { return {1, 0x0203, 0x04050607, -2, true, Code::kLost, "hi", {9, 10}}; }

// The format is a contract with other versions of ourselves, so it is spelt out once.
TEST(Codec, WritesLittleEndianFieldsInOrder) {
  const std::string wire = encoded(example());
  const std::string expected(
      "\x01"
      "\x03\x02"
      "\x07\x06\x05\x04"
      "\xfe\xff\xff\xff\xff\xff\xff\xff"
      "\x01"
      "\x02"
      "\x02\0\0\0hi"
      "\x02\0\0\0\x09\0\x0a\0",
      31);
  EXPECT_EQ(wire, expected);
}

TEST(Codec, ReadsWhatItWrote) {
  Everything read;
  ASSERT_TRUE(reads(encoded(example()), read));
  EXPECT_EQ(read.u8, 1);
  EXPECT_EQ(read.u16, 0x0203);
  EXPECT_EQ(read.u32, 0x04050607U);
  EXPECT_EQ(read.i64, -2);
  EXPECT_TRUE(read.flag);
  EXPECT_EQ(read.code, Code::kLost);
  EXPECT_EQ(read.text, "hi");
  EXPECT_EQ(read.numbers, (std::vector<std::uint16_t>{9, 10}));
}

TEST(Codec, RefusesEveryTruncation) {
  const std::string wire = encoded(example());
  for (std::size_t size = 0; size < wire.size(); ++size) {
    Everything read;
    EXPECT_FALSE(reads(wire.substr(0, size), read)) << size;
  }
}

TEST(Codec, LeavesWhatFollowsToTheCaller) {
  const std::string wire = encoded(example()) + "payload";
  Reader reader(as_bytes(wire));
  Everything read;
  read.fields(reader);
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(reader.rest().data()), reader.rest().size()), "payload");
}

TEST(Codec, RefusesABoolThatIsNeitherZeroNorOne) {
  std::string wire = encoded(example());
  wire[15] = 2;
  Everything read;
  EXPECT_FALSE(reads(wire, read));
}

TEST(Codec, RefusesAnEnumeratorBeyondTheLast) {
  std::string wire = encoded(example());
  wire[16] = static_cast<char>(static_cast<int>(last_enumerator(Code{})) + 1);
  Everything read;
  EXPECT_FALSE(reads(wire, read));
  EXPECT_EQ(read.code, Code::kOk);
}

TEST(Codec, FieldsAfterTheFirstBadOneStayAtTheirDefaults) {
  std::string wire = encoded(example());
  wire[15] = 2;  // the flag
  Everything read;
  EXPECT_FALSE(reads(wire, read));
  EXPECT_EQ(read.code, Code::kOk);
  EXPECT_EQ(read.text, "");
  EXPECT_TRUE(read.numbers.empty());
}

TEST(Codec, RefusesAHostNameThatIsTooLong) {
  for (const std::size_t length : {255, 256}) {
    std::string wire;
    Writer writer(wire);
    Address address{std::string(length, 'h'), 1};
    writer(address);
    Reader reader(as_bytes(wire));
    Address read;
    reader(read);
    EXPECT_EQ(reader.ok(), length == 255);
  }
}

// An element that counts how many of it were ever made: what a lying count costs.
struct Counted {
  static inline std::uint64_t made = 0;
  Counted() { ++made; }
  std::uint64_t value = 0;
  template <typename A> void fields(A& a) { a(value); }
};

TEST(Codec, ACountBeyondTheInputMakesNoElement) {
  for (const std::uint32_t count : {0x80000000U, 0x7fffffffU, 0xffffffffU, 100U}) {
    std::string wire;
    Writer writer(wire);
    std::uint32_t promised = count;
    writer(promised);
    wire.append(50, 'x');
    Reader reader(as_bytes(wire));
    std::vector<Counted> items;
    Counted::made = 0;
    reader(items);
    EXPECT_FALSE(reader.ok());
    EXPECT_EQ(Counted::made, 0U);
    EXPECT_EQ(items.capacity(), 0U);
  }
}

TEST(Codec, ACountWithinTheInputMakesOnlyWhatTheBytesPayFor) {
  std::string wire;
  Writer writer(wire);
  std::uint32_t promised = 64;  // but the 64 bytes that follow hold 8
  writer(promised);
  wire.append(64, 'x');
  Reader reader(as_bytes(wire));
  std::vector<Counted> items;
  reader(items);
  EXPECT_FALSE(reader.ok());
  EXPECT_LE(items.size(), 9U);
}

TEST(Codec, AStringLongerThanTheInputIsNotAllocated) {
  for (const std::uint32_t length : {0x80000000U, 0xffffffffU, 6U}) {
    std::string wire;
    Writer writer(wire);
    std::uint32_t promised = length;
    writer(promised);
    wire.append("short");
    Reader reader(as_bytes(wire));
    std::string text;
    const std::size_t capacity = text.capacity();
    reader(text);
    EXPECT_FALSE(reader.ok());
    EXPECT_EQ(text.capacity(), capacity);
  }
}

}  // namespace
}  // namespace hoplite
