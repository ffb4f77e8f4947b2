#include "protocol/messages.h"

#include <gtest/gtest.h>

#include <set>

#include "base/type_name.h"
#include "protocol/test_messages.h"

namespace hoplite {
namespace {

constexpr std::size_t kTypes = std::variant_size_v<Message>;

std::string encoded(const Message& message) {
  std::string out;
  encode_message(message, out);
  return out;
}

bool carries_bytes(const Message& message) {
  return std::holds_alternative<PutRequest>(message) || std::holds_alternative<InlineObject>(message) ||
         std::holds_alternative<Relay>(message);
}

TEST(Messages, EveryTypeComesBackAsItWasSent) {
  Random random(1);
  for (std::size_t type = 0; type < kTypes; ++type)
    for (int round = 0; round < 200; ++round) {
      const auto sent = random_message<Message>(type, random);
      const std::string wire = encoded(sent);
      const auto received = decode_message(as_bytes(wire));
      ASSERT_TRUE(received.ok()) << type_name(sent);
      EXPECT_EQ(describe(received->message), describe(sent)) << type_name(sent);
      EXPECT_TRUE(received->payload.empty());
      EXPECT_EQ(encoded(received->message), wire) << type_name(sent);
    }
}

TEST(Messages, EveryTruncationIsRefused) {
  Random random(2);
  for (std::size_t type = 0; type < kTypes; ++type)
    for (int round = 0; round < 20; ++round) {
      const auto sent = random_message<Message>(type, random);
      const std::string wire = encoded(sent);
      for (std::size_t size = 0; size < wire.size(); ++size)
        EXPECT_EQ(decode_message(as_bytes(wire).first(size)).code(), Code::kInvalidArgument)
            << type_name(sent) << " cut to " << size << " of " << wire.size();
    }
}

TEST(Messages, OnlySomeTypesHaveAPayload) {
  Random random(3);
  for (std::size_t type = 0; type < kTypes; ++type) {
    const auto sent = random_message<Message>(type, random);
    const std::string wire = encoded(sent) + "bytes";
    const auto received = decode_message(as_bytes(wire));
    ASSERT_EQ(received.ok(), carries_bytes(sent)) << type_name(sent);
    if (!received) continue;
    EXPECT_EQ(describe(received->message), describe(sent));
    EXPECT_EQ(received->payload.data(), as_bytes(wire).last(5).data());  // no copy
    EXPECT_EQ(received->payload.size(), 5U);
  }
}

TEST(Messages, UnknownTypesAreRefused) {
  for (std::size_t type = kTypes; type < 256; ++type) {
    const std::string wire = static_cast<char>(type) + std::string(100, '\0');
    EXPECT_FALSE(decode_message(as_bytes(wire)).ok()) << type;
  }
}

// News is {type, count of MemberNews, ...}, Relay ends with a string: the two kinds of count there are.
TEST(Messages, HugeCountsAreRefused) {
  for (const std::uint32_t count : {0x7fffffffU, 0x80000000U, 0xffffffffU}) {
    std::string wire = encoded(News{});
    std::memcpy(wire.data() + 1, &count, sizeof count);
    EXPECT_FALSE(decode_message(as_bytes(wire)).ok());
    EXPECT_FALSE(decode_message(as_bytes(wire + std::string(1000, '\0'))).ok());

    wire = encoded(Relay{});
    std::memcpy(wire.data() + wire.size() - sizeof count, &count, sizeof count);
    EXPECT_FALSE(decode_message(as_bytes(wire)).ok());
  }
}

// What decodes must encode to the same bytes: there is one encoding of a message, so peers cannot disagree about it.
TEST(Messages, RandomBytesAreRefusedOrCanonical) {
  Random random(4);
  int accepted = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::string wire(random.below(80), '\0');
    for (char& byte : wire) byte = static_cast<char>(random.chance(0.6) ? 0 : random.next());
    if (!wire.empty()) wire[0] = static_cast<char>(random.below(kTypes + 2));
    const auto received = decode_message(as_bytes(wire));
    if (!received) continue;
    ++accepted;
    EXPECT_EQ(encoded(received->message).size() + received->payload.size(), wire.size());
    EXPECT_TRUE(wire.starts_with(encoded(received->message)));
  }
  EXPECT_GT(accepted, 100);  // else this test tests nothing
}

TEST(Messages, EveryTypeHasANameOfItsOwn) {
  Random random(5);
  std::set<std::string> names;
  for (std::size_t type = 0; type < kTypes; ++type) names.insert(type_name(random_message<Message>(type, random)));
  EXPECT_EQ(names.size(), kTypes);
}

// Appending a type is fine; moving one is a new wire version. These are the ends and a landmark.
TEST(Messages, TypeNumbersDoNotMove) {
  EXPECT_EQ(encoded(Ping{})[0], 0);
  EXPECT_EQ(encoded(Want{})[0], 7);
  EXPECT_EQ(encoded(Announce{})[0], 14);
  EXPECT_EQ(encoded(Relay{})[0], 25);
}

TEST(Messages, ARelayCarriesAMessageWhole) {
  Random random(6);
  const auto inner = random_message<Message>(7, random);
  const Relay relay{{{1}, 2}, {{3}, 4}, encoded(inner)};
  const std::string wire = encoded(relay);
  const auto received = decode_message(as_bytes(wire));
  ASSERT_TRUE(received.ok());
  const auto& carried = std::get<Relay>(received->message);
  EXPECT_EQ(carried.from, (NodeRef{{1}, 2}));
  EXPECT_EQ(carried.to, (NodeRef{{3}, 4}));
  const auto unpacked = decode_message(as_bytes(carried.message));
  ASSERT_TRUE(unpacked.ok());
  EXPECT_EQ(describe(unpacked->message), describe(inner));
}

}  // namespace
}  // namespace hoplite
