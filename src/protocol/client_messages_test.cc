#include "protocol/client_messages.h"

#include <gtest/gtest.h>

#include "protocol/test_messages.h"

namespace hoplite::ipc {
namespace {

constexpr std::uint64_t kMaxBytes = 1 * kMiB;

std::string encoded(std::uint64_t number, const Request& message, std::size_t payload_bytes = 0) {
  std::string out;
  encode_request(number, message, payload_bytes, out);
  return out;
}
std::string encoded(std::uint64_t number, const Reply& message) {
  std::string out;
  encode_reply(number, message, out);
  return out;
}

// The body of the only frame in `wire`.
ByteView body_of(const std::string& wire) {
  ByteView in = as_bytes(wire);
  const auto frame = next_frame(in, kMaxBytes);
  EXPECT_TRUE(frame.ok() && frame->complete && in.empty());
  return frame->body;
}

TEST(ClientMessages, EveryRequestComesBackAsItWasSent) {
  Random random(1);
  for (std::size_t type = 0; type < std::variant_size_v<Request>; ++type)
    for (int round = 0; round < 200; ++round) {
      const auto sent = random_message<Request>(type, random);
      const std::string wire = encoded(round, sent);
      const auto received = decode_request(body_of(wire));
      ASSERT_TRUE(received.ok()) << type;
      EXPECT_EQ(describe(received->message), describe(sent));
      EXPECT_EQ(encoded(round, received->message), wire);
    }
}

TEST(ClientMessages, EveryReplyComesBackAsItWasSent) {
  Random random(2);
  for (std::size_t type = 0; type < std::variant_size_v<Reply>; ++type)
    for (int round = 0; round < 200; ++round) {
      const auto sent = random_message<Reply>(type, random);
      const std::string wire = encoded(round, sent);
      const auto received = decode_reply(body_of(wire));
      ASSERT_TRUE(received.ok()) << type;
      EXPECT_EQ(describe(*received), describe(sent));
      EXPECT_EQ(encoded(round, *received), wire);
    }
}

TEST(ClientMessages, EveryTruncationOfABodyIsRefused) {
  Random random(3);
  for (std::size_t type = 0; type < std::variant_size_v<Request>; ++type) {
    const std::string wire = encoded(1, random_message<Request>(type, random));
    const ByteView body = body_of(wire);
    for (std::size_t size = 0; size < body.size(); ++size) EXPECT_FALSE(decode_request(body.first(size)).ok()) << type;
  }
  for (std::size_t type = 0; type < std::variant_size_v<Reply>; ++type) {
    const std::string wire = encoded(1, random_message<Reply>(type, random));
    const ByteView body = body_of(wire);
    for (std::size_t size = 0; size < body.size(); ++size) EXPECT_FALSE(decode_reply(body.first(size)).ok()) << type;
  }
}

TEST(ClientMessages, OnlyPutHasAPayload) {
  Random random(4);
  for (std::size_t type = 0; type < std::variant_size_v<Request>; ++type) {
    const auto sent = random_message<Request>(type, random);
    const std::string wire = encoded(9, sent, 5) + "bytes";
    const auto received = decode_request(body_of(wire));
    ASSERT_EQ(received.ok(), std::holds_alternative<Put>(sent)) << type;
    if (!received) continue;
    EXPECT_EQ(received->payload.data(), as_bytes(wire).last(5).data());
    EXPECT_EQ(received->payload.size(), 5U);
  }
  const std::string reply = encoded(9, Reply(PutDone{})) + "x";
  EXPECT_FALSE(decode_reply(as_bytes(reply).subspan(ClientFrameHeader::kSize)).ok());
}

TEST(ClientMessages, FramesAreSplitWhereverTheStreamIsCut) {
  Random random(5);
  std::string wire;
  std::vector<std::string> sent;
  for (std::uint64_t number = 0; number < 20; ++number) {
    const auto request = random_message<Request>(random.below(std::variant_size_v<Request>), random);
    sent.push_back(describe(request));
    wire += encoded(number << 40, request);
  }
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{100}, wire.size()}) {
    std::vector<std::string> received;
    std::string buffer;
    for (std::size_t at = 0; at < wire.size(); at += piece) {
      buffer += wire.substr(at, piece);
      ByteView in = as_bytes(buffer);
      for (;;) {
        const auto frame = next_frame(in, kMaxBytes);
        ASSERT_TRUE(frame.ok());
        if (!frame->complete) break;
        EXPECT_EQ(frame->request, static_cast<std::uint64_t>(received.size()) << 40);
        const auto request = decode_request(frame->body);
        ASSERT_TRUE(request.ok());
        received.push_back(describe(request->message));
      }
      buffer.erase(0, buffer.size() - in.size());
    }
    EXPECT_EQ(received, sent) << piece;
    EXPECT_TRUE(buffer.empty());
  }
}

TEST(ClientMessages, ALengthOverTheLimitIsRefusedBeforeItsBytesArrive) {
  for (const std::uint32_t length : {1001U, 0x80000000U, 0xffffffffU}) {
    std::string wire(ClientFrameHeader::kSize, '\0');
    std::memcpy(wire.data(), &length, sizeof length);
    ByteView in = as_bytes(wire);
    const auto frame = next_frame(in, 1000);
    EXPECT_EQ(frame.code(), Code::kInvalidArgument);
    EXPECT_NE(frame.error().message.find(std::to_string(length)), std::string::npos);
  }
  std::string wire(ClientFrameHeader::kSize, '\0');
  const std::uint32_t length = 1000;
  std::memcpy(wire.data(), &length, sizeof length);
  ByteView in = as_bytes(wire);
  const auto frame = next_frame(in, 1000);
  ASSERT_TRUE(frame.ok());
  EXPECT_FALSE(frame->complete);
}

TEST(ClientMessages, UnknownTypesAndEmptyBodiesAreRefused) {
  EXPECT_FALSE(decode_request({}).ok());
  EXPECT_FALSE(decode_reply({}).ok());
  for (std::size_t type = 0; type < 256; ++type) {
    const std::string body = static_cast<char>(type) + std::string(200, '\0');
    EXPECT_FALSE(type >= std::variant_size_v<Request> && decode_request(as_bytes(body)).ok()) << type;
    EXPECT_FALSE(type >= std::variant_size_v<Reply> && decode_reply(as_bytes(body)).ok()) << type;
  }
}

TEST(ClientMessages, RandomBytesNeverCrash) {
  Random random(6);
  int accepted = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::string body(random.below(80), '\0');
    for (char& byte : body) byte = static_cast<char>(random.chance(0.6) ? 0 : random.next());
    if (!body.empty()) body[0] = static_cast<char>(random.below(16));
    accepted += decode_request(as_bytes(body)).ok();
    accepted += decode_reply(as_bytes(body)).ok();
  }
  EXPECT_GT(accepted, 100);  // else this test tests nothing
}

}  // namespace
}  // namespace hoplite::ipc
