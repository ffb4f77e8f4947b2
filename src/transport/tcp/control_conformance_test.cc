// What every Transport promises about control messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "transport/tcp/test_node.h"

namespace hoplite {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

class ControlConformanceTest : public TransportTest {
 protected:
  static Message ping(std::uint64_t seq) { return Ping{seq, {}}; }
  static std::uint64_t seq_of(const ReceivedMessage& received) { return std::get<Ping>(received.message).seq; }
  static void send(TestNode& from, const TestNode& to, const Message& message, ByteView payload = {}) {
    from.transport->send(to.self, to.address(), message, payload);
  }
};
HOPLITE_ALL_TRANSPORTS(ControlConformanceTest);

TEST_P(ControlConformanceTest, MessagesArriveInOrderFromWhoSentThem) {
  const auto a = make_node(1);
  const auto b = make_node(2);
  constexpr std::uint64_t kCount = 5000;
  for (std::uint64_t i = 0; i < kCount; ++i) send(*a, *b, ping(i));
  ASSERT_TRUE(runs_until([&] { return b->messages.size() == kCount; }));
  for (std::uint64_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(seq_of(b->messages[i]), i);
    ASSERT_EQ(b->messages[i].from, a->self);
  }
  EXPECT_THAT(a->lost, IsEmpty());
}

TEST_P(ControlConformanceTest, BothDirectionsAtOnce) {
  const auto a = make_node(1);
  const auto b = make_node(2);
  b->when_message = [&] { send(*b, *a, ping(seq_of(b->messages.back()) + 100)); };
  for (std::uint64_t i = 0; i < 10; ++i) send(*a, *b, ping(i));
  ASSERT_TRUE(runs_until([&] { return a->messages.size() == 10; }));
  for (std::uint64_t i = 0; i < 10; ++i) EXPECT_EQ(seq_of(a->messages[i]), i + 100);
  EXPECT_EQ(a->transport->stats().connections, 2U);
}

TEST_P(ControlConformanceTest, PayloadsOfEverySizeArriveWhole) {
  const auto a = make_node(1);
  const auto b = make_node(2);
  const std::vector<std::uint64_t> sizes{0, 1, 1024, 64 * kKiB, 300 * kKiB, 3 * kMiB, 7};
  for (const std::uint64_t size : sizes) {
    auto bytes = pattern(size, size);
    send(*a, *b, InlineObject{size, {1, 2}, 3, "meta"}, bytes);
    std::fill(bytes.begin(), bytes.end(), std::byte{0});  // it was copied
  }
  ASSERT_TRUE(runs_until([&] { return b->messages.size() == sizes.size(); }));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto expected = pattern(sizes[i], sizes[i]);
    EXPECT_EQ(b->messages[i].payload, std::string(reinterpret_cast<const char*>(expected.data()), expected.size()));
    EXPECT_EQ(std::get<InlineObject>(b->messages[i].message).meta, "meta");
  }
}

TEST_P(ControlConformanceTest, MoreThanASocketHoldsArrivesToo) {
  const auto a = make_node(1);
  const auto b = make_node(2);
  const auto payload = pattern(3 * kMiB, 1);
  constexpr std::uint64_t kCount = 12;
  for (std::uint64_t i = 0; i < kCount; ++i) send(*a, *b, InlineObject{i, {1, 2}, 3, ""}, payload);
  ASSERT_TRUE(runs_until([&] { return b->messages.size() == kCount || !a->lost.empty(); }));
  EXPECT_THAT(a->lost, IsEmpty());
  EXPECT_EQ(b->messages.size(), kCount);
}

TEST_P(ControlConformanceTest, SignsOfLifePassWhatIsQueued) {
  const auto a = make_node(1);
  const auto b = make_node(2);
  const auto payload = pattern(3 * kMiB, 1);
  for (std::uint64_t i = 0; i < 3; ++i) send(*a, *b, InlineObject{i, {1, 2}, 3, ""}, payload);
  for (std::uint64_t i = 0; i < 3; ++i) send(*a, *b, ping(i));
  EXPECT_GT(a->transport->backlog(b->self), 9 * kMiB);
  ASSERT_TRUE(runs_until([&] { return b->messages.size() == 6; }));
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(seq_of(b->messages[i]), i);
    EXPECT_EQ(std::get<InlineObject>(b->messages[3 + i].message).request, i);
    EXPECT_EQ(b->messages[3 + i].payload.size(), payload.size());
  }
  EXPECT_EQ(a->transport->backlog(b->self), 0u);
}

TEST_P(ControlConformanceTest, AnAddressIsEnoughToSayHello) {
  const auto a = make_node(1);
  const auto b = make_node(2);
  a->transport->send_to_address(b->address(), Sync{true, {}});
  ASSERT_TRUE(runs_until([&] { return b->messages.size() == 1; }));
  EXPECT_EQ(b->messages[0].from, a->self);
  // From then on it is the connection to that node.
  send(*a, *b, ping(1));
  a->transport->send_to_address(b->address(), ping(2));
  ASSERT_TRUE(runs_until([&] { return b->messages.size() == 3; }));
  EXPECT_EQ(a->transport->stats().connections, 1U);
}

TEST_P(ControlConformanceTest, DialsToOneNodeByNameAndByAddressBecomeOneConnection) {
  const auto a = make_node(1);
  const auto b = make_node(2);
  a->transport->send_to_address(b->address(), ping(1));
  send(*a, *b, ping(2));
  ASSERT_TRUE(runs_until([&] { return b->messages.size() == 2; }));
  run_for(Duration::ms(50));
  EXPECT_EQ(a->transport->stats().connections, 1U);
  EXPECT_EQ(b->transport->stats().connections, 1U);
  EXPECT_THAT(a->lost, IsEmpty());
  EXPECT_THAT(b->lost, IsEmpty());
}

TEST_P(ControlConformanceTest, ANodeThatDialsItselfHearsNothing) {
  const auto a = make_node(1);
  a->transport->send_to_address(a->address(), Sync{true, {}});
  run_for(Duration::ms(100));
  EXPECT_THAT(a->messages, IsEmpty());
  EXPECT_THAT(a->lost, IsEmpty());
  EXPECT_THAT(a->log, IsEmpty());
  EXPECT_EQ(a->transport->stats().connections, 0U);
  EXPECT_EQ(a->transport->stats().rejected, 0U);
}

TEST_P(ControlConformanceTest, NobodyListens) {
  const auto a = make_node(1);
  Address nobody;
  {
    const auto b = make_node(2);
    nobody = b->address();
  }
  a->transport->send({NodeId{2}, 1}, nobody, ping(1), {});
  a->transport->send_to_address(nobody, ping(1));
  EXPECT_THAT(a->lost, IsEmpty()) << "handlers are called from the loop only";
  ASSERT_TRUE(runs_until([&] { return !a->lost.empty(); }));
  run_for(Duration::ms(50));
  EXPECT_THAT(a->lost, ElementsAre(Pair(NodeRef{NodeId{2}, 1}, Loss::kRefused)));
}

TEST_P(ControlConformanceTest, AnAddressThatIsNoneIsALossAndNotACrash) {
  const auto a = make_node(1);
  a->transport->send({NodeId{2}, 1}, {"not an address", 7}, ping(1), {});
  ASSERT_TRUE(runs_until([&] { return !a->lost.empty(); }));
}

TEST_P(ControlConformanceTest, APeerThatDiesIsNoticedOnBothConnectionsAtOnce) {
  const auto a = make_node(1);
  auto b = make_node(2);
  send(*a, *b, ping(1));
  send(*b, *a, ping(1));
  ASSERT_TRUE(runs_until([&] { return a->messages.size() == 1 && b->messages.size() == 1; }));
  const NodeRef dead = b->self;
  b.reset();
  const Time start = monotonic_now();
  ASSERT_TRUE(runs_until([&] { return a->lost.size() == 2; }));
  EXPECT_LT(monotonic_now() - start, Duration::s(10)) << "by the connection, not by a keepalive";
  EXPECT_THAT(a->lost, ElementsAre(Pair(dead, Loss::kClosed), Pair(dead, Loss::kClosed)));
  EXPECT_EQ(a->transport->stats().connections, 0U);
}

TEST_P(ControlConformanceTest, TheNextSendDialsAgain) {
  const auto a = make_node(1);
  auto b = make_node(2);
  const Address address = b->address();
  send(*a, *b, ping(1));
  ASSERT_TRUE(runs_until([&] { return b->messages.size() == 1; }));
  b.reset();
  ASSERT_TRUE(runs_until([&] { return a->lost.size() == 1; }));
  TcpOptions options;
  options.listen = address;
  b = make_node(2, options);
  send(*a, *b, ping(2));
  ASSERT_TRUE(runs_until([&] { return b->messages.size() == 1; }));
  EXPECT_EQ(seq_of(b->messages[0]), 2U);
}

TEST_P(ControlConformanceTest, SomebodyElseAtThatAddressIsReplaced) {
  const auto a = make_node(1);
  const auto b = make_node(2);
  const NodeRef expected{NodeId{77}, 1};
  const NodeRef earlier_life{b->self.id, b->self.incarnation + 1};
  a->transport->send(expected, b->address(), ping(1), {});
  a->transport->send(earlier_life, b->address(), ping(1), {});
  ASSERT_TRUE(runs_until([&] { return a->lost.size() == 2; }));
  EXPECT_THAT(a->lost, Contains(Pair(expected, Loss::kReplaced)));
  EXPECT_THAT(a->lost, Contains(Pair(earlier_life, Loss::kReplaced)));
  run_for(Duration::ms(50));
  EXPECT_THAT(b->messages, IsEmpty());
  EXPECT_THAT(b->lost, IsEmpty()) << "who was dialled by mistake has lost nobody";
}

TEST_P(ControlConformanceTest, TokensMustMatch) {
  TcpOptions with_token;
  with_token.token = "secret";
  TcpOptions other_token;
  other_token.token = "Secret";
  const auto a = make_node(1, with_token);
  const auto same = make_node(2, with_token);
  const auto other = make_node(3, other_token);
  const auto none = make_node(4);
  for (const auto* to : {same.get(), other.get(), none.get()}) send(*a, *to, ping(1));
  send(*none, *a, ping(1));
  ASSERT_TRUE(runs_until([&] { return a->lost.size() == 2 && same->messages.size() == 1 && none->lost.size() == 1; }));
  EXPECT_THAT(a->lost, Contains(Pair(other->self, Loss::kRejected)));
  EXPECT_THAT(a->lost, Contains(Pair(none->self, Loss::kRejected)));
  EXPECT_THAT(none->lost, ElementsAre(Pair(a->self, Loss::kRejected)));
  EXPECT_THAT(a->messages, IsEmpty());
  EXPECT_THAT(other->messages, IsEmpty());
  EXPECT_THAT(none->messages, IsEmpty());
  EXPECT_THAT(other->log, ElementsAre(HasSubstr("token")));
  EXPECT_GE(other->transport->stats().rejected, 1U);
}

TEST_P(ControlConformanceTest, DisconnectIsSilentHereAndALossThere) {
  const auto a = make_node(1);
  const auto b = make_node(2);
  send(*a, *b, ping(1));
  send(*b, *a, ping(1));
  ASSERT_TRUE(runs_until([&] { return a->messages.size() == 1 && b->messages.size() == 1; }));
  a->transport->disconnect(b->self.id);
  ASSERT_TRUE(runs_until([&] { return b->lost.size() == 2; }));
  EXPECT_THAT(a->lost, IsEmpty());
  EXPECT_EQ(a->transport->stats().connections, 0U);
  send(*a, *b, ping(2));
  ASSERT_TRUE(runs_until([&] { return b->messages.size() == 2; }));
}

TEST_P(ControlConformanceTest, DisconnectInsideAHandlerDropsWhatFollows) {
  const auto a = make_node(1);
  const auto b = make_node(2);
  b->when_message = [&] { b->transport->disconnect(a->self.id); };
  for (std::uint64_t i = 0; i < 100; ++i) send(*a, *b, ping(i));
  ASSERT_TRUE(runs_until([&] { return !a->lost.empty(); }));
  EXPECT_EQ(b->messages.size(), 1U);
}

TEST_P(ControlConformanceTest, ANewIncarnationStartsAfresh) {
  const auto a = make_node(1);
  const auto b = make_node(2);
  send(*a, *b, ping(1));
  send(*b, *a, ping(1));
  ASSERT_TRUE(runs_until([&] { return a->messages.size() == 1 && b->messages.size() == 1; }));
  const NodeRef before = a->self;
  a->self.incarnation = 2;
  a->transport->rename(a->self);
  ASSERT_TRUE(runs_until([&] { return b->lost.size() == 2; }));
  EXPECT_THAT(a->lost, IsEmpty());
  send(*a, *b, ping(2));
  ASSERT_TRUE(runs_until([&] { return b->messages.size() == 2; }));
  EXPECT_EQ(b->messages[1].from, a->self);
  b->transport->send(before, a->address(), ping(3), {});
  ASSERT_TRUE(runs_until([&] { return b->lost.size() == 3; }));
  EXPECT_EQ(b->lost[2], std::pair(before, Loss::kReplaced));
}

TEST_P(ControlConformanceTest, WorksOverIpv6) {
  TcpOptions options;
  options.listen = {"::1", 0};
  const auto a = make_node(1, options);
  const auto b = make_node(2, options);
  send(*a, *b, ping(1));
  ASSERT_TRUE(runs_until([&] { return b->messages.size() == 1; }));
}

TEST_P(ControlConformanceTest, AnAddressInUseIsAClearError) {
  const auto a = make_node(1);
  TcpOptions options;
  options.self = {NodeId{2}, 1};
  options.listen = a->address();
  const auto made = GetParam().make(loop, *a, options);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.code(), Code::kUnavailable);
  EXPECT_EQ(made.error().message, "address " + a->address().to_string() + " is in use");
  options.listen = {"example", 1};
  EXPECT_EQ(GetParam().make(loop, *a, options).code(), Code::kInvalidArgument);
  options.listen = {"127.0.0.1", 0};
  options.io_threads = 0;
  EXPECT_EQ(GetParam().make(loop, *a, options).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace hoplite
