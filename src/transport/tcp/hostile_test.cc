// Strangers and broken peers at a TCP transport: what they send is refused, costs little, and hurts nobody else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <optional>

#include "transport/tcp/acceptor.h"
#include "transport/tcp/handshake.h"
#include "transport/tcp/socket.h"
#include "transport/tcp/test_node.h"

namespace hoplite::tcp {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

// A peer made by hand: it can keep to the handshake and then say anything.
class FakePeer {
 public:
  static constexpr NodeRef kRef{NodeId{666}, 1};

  void connect_to(const Address& address) { fd_ = start_connect(address).fd; }
  void listen() { listener_ = listen_on({"127.0.0.1", 0}, 16).value(); }
  Address address() const { return local_address(listener_.get()); }
  // One step of waiting for a connection; true when there is one.
  bool accepted() {
    if (!fd_) fd_ = accept_on(listener_.get());
    return static_cast<bool>(fd_);
  }
  // One step of the handshake; true when it is done.
  bool introduced(Role role = Role::kBulk, std::string token = "") {
    const Identity identity{kRef, {"127.0.0.1", 9}, std::move(token)};
    if (!handshake_) handshake_ = listener_ ? Handshake::acceptor(identity) : Handshake::dialler(identity, role, {});
    pollfd wait{fd_.get(), POLLOUT, 0};
    if (poll(&wait, 1, 0) != 1) return false;
    return handshake_->advance(fd_.get()) == Handshake::State::kDone;
  }
  void say(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  void say(const FrameHeader& frame, std::string_view body = "") {
    const auto header = frame.encode();
    say(std::string(reinterpret_cast<const char*>(header.data()), header.size()) + std::string(body));
  }
  // Reads what is there; true once the other side has closed.
  bool closed() {
    std::array<char, 4096> buffer;
    const ssize_t got = recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got > 0) heard.append(buffer.data(), static_cast<std::size_t>(got));
    return got == 0 || (got < 0 && errno != EAGAIN);
  }
  bool hears(std::size_t bytes) { return closed() || heard.size() >= bytes; }
  void hang_up() { fd_.reset(); }

  std::string heard;

 private:
  UniqueFd listener_;
  UniqueFd fd_;
  std::optional<Handshake> handshake_;
};

FrameHeader frame_of(FrameType type, std::uint64_t transfer, std::uint32_t length = 0, std::uint64_t offset = 0) {
  FrameHeader frame;
  frame.type = type;
  frame.transfer = transfer;
  frame.length = length;
  frame.offset = offset;
  return frame;
}

class HostileTest : public TransportTest {
 protected:
  static constexpr ObjectId kId{7, 1};

  // A child that pulls 1 MiB from a fake parent, which has heard the request.
  void start_pull(TestNode& child, FakePeer& parent) {
    parent.listen();
    child.execute(effect::OpenCopy{1, {0, kMiB}, 1, false});
    child.execute(effect::StartPull{FakePeer::kRef, parent.address(), 1, request(1, kId), patience});
    ASSERT_TRUE(runs_until([&] { return parent.accepted(); }));
    ASSERT_TRUE(runs_until([&] { return parent.introduced(); }));
    ASSERT_TRUE(runs_until([&] { return parent.hears(FrameHeader::kSize); }));
  }
  void expect_broken_by(const FrameHeader& frame, std::string_view body = "") {
    const auto child = make_node(1);
    FakePeer parent;
    start_pull(*child, parent);
    parent.say(frame_of(FrameType::kAccept, 1));
    parent.say(frame, body);
    ASSERT_TRUE(runs_until([&] { return child->ended_as(1, PullEnd::kConnectionLost); }));
    EXPECT_TRUE(runs_until([&] { return parent.closed(); }));
    EXPECT_EQ(child->ended[1].valid.front(), 0U);
  }
  void expect_works(TestNode& node) {
    const auto friendly = make_node(50);
    const std::size_t before = node.messages.size();
    friendly->transport->send(node.self, node.address(), Ping{1, {}}, {});
    EXPECT_TRUE(runs_until([&] { return node.messages.size() > before; }));
  }
};
HOPLITE_ALL_TRANSPORTS(HostileTest);

// --- before the handshake is done

TEST_P(HostileTest, GarbageIsRefusedAndLoggedOncePerHost) {
  const auto node = make_node(1);
  for (const std::string_view garbage :
       {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}) {
    FakePeer stranger;
    stranger.connect_to(node->address());
    stranger.say(garbage);
    ASSERT_TRUE(runs_until([&] { return stranger.closed(); }));
    EXPECT_EQ(stranger.heard, "") << "strangers are told nothing";
  }
  EXPECT_THAT(node->log, ElementsAre(HasSubstr("127.0.0.1")));
  EXPECT_EQ(node->transport->stats().rejected, 3U);
  EXPECT_THAT(node->lost, IsEmpty());
  expect_works(*node);
}

std::string prefix(std::uint16_t version, std::uint8_t type, std::uint32_t length) {
  std::string out = "HPLT";
  out.append(reinterpret_cast<const char*>(&version), 2);
  out.push_back(static_cast<char>(type));
  out.push_back('\0');
  out.append(reinterpret_cast<const char*>(&length), 4);
  return out;
}

TEST_P(HostileTest, AHugeLengthInTheGreetingIsRefused) {
  const auto node = make_node(1);
  for (const std::uint32_t length : {1013U, 1U << 20, 1U << 31, ~0U}) {
    FakePeer stranger;
    stranger.connect_to(node->address());
    stranger.say(prefix(kWireVersion, 0, length));
    ASSERT_TRUE(runs_until([&] { return stranger.closed(); })) << length;
  }
  EXPECT_EQ(node->transport->stats().rejected, 4U);
}

TEST_P(HostileTest, AGreetingThatIsNoneIsRefused) {
  const auto node = make_node(1);
  const std::string zeros(300, '\0');
  for (const std::uint8_t type : {std::uint8_t{0}, std::uint8_t{1}, std::uint8_t{2}, std::uint8_t{200}}) {
    FakePeer stranger;
    stranger.connect_to(node->address());
    stranger.say(prefix(kWireVersion, type, 300) + zeros);
    ASSERT_TRUE(runs_until([&] { return stranger.closed(); }));
  }
  EXPECT_EQ(node->transport->stats().rejected, 4U);
}

TEST_P(HostileTest, AnotherVersionIsToldBothVersions) {
  const auto node = make_node(1);
  FakePeer newer;
  newer.connect_to(node->address());
  newer.say(prefix(kWireVersion + 6, 0, 40) + std::string(40, 'x'));
  ASSERT_TRUE(runs_until([&] { return newer.closed(); }));
  const std::string ours = std::to_string(kWireVersion);
  const std::string theirs = std::to_string(kWireVersion + 6);
  EXPECT_THAT(newer.heard, AllOf(HasSubstr("version " + ours), HasSubstr("version " + theirs)));
  EXPECT_THAT(node->log, ElementsAre(AllOf(HasSubstr("version " + ours), HasSubstr("version " + theirs))));
}

TEST_P(HostileTest, AnotherVersionThatWeDialIsRejected) {
  const auto node = make_node(1);
  FakePeer newer;
  newer.listen();
  node->transport->send(FakePeer::kRef, newer.address(), Ping{1, {}}, {});
  ASSERT_TRUE(runs_until([&] { return newer.accepted(); }));
  newer.say(prefix(kWireVersion + 6, 0, 40) + std::string(40, 'x'));
  ASSERT_TRUE(runs_until([&] { return !node->lost.empty(); }));
  EXPECT_THAT(node->lost, ElementsAre(Pair(FakePeer::kRef, Loss::kRejected)));
  EXPECT_THAT(node->log, ElementsAre(HasSubstr("version " + std::to_string(kWireVersion + 6))));
}

TEST_P(HostileTest, ADialThatIsNotAnsweredTimesOut) {
  const auto node = make_node(1);
  FakePeer mute;
  mute.listen();
  node->transport->send(FakePeer::kRef, mute.address(), Ping{1, {}}, {});
  ASSERT_TRUE(runs_until([&] { return !node->lost.empty(); }));
  EXPECT_THAT(node->lost, ElementsAre(Pair(FakePeer::kRef, Loss::kTimedOut)));
}

TEST_P(HostileTest, ManyIdleConnectionsAreBounded) {
  const auto node = make_node(1);
  std::vector<FakePeer> idle(SocketLimits{}.max_handshakes + 100);
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_cur < 2 * idle.size() + 200) {
    files.rlim_cur = std::min<rlim_t>(files.rlim_max, 2 * idle.size() + 200);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  }
  for (FakePeer& peer : idle) {
    peer.connect_to(node->address());
    loop.run_once(monotonic_now());
  }
  ASSERT_TRUE(runs_until([&] { return node->transport->stats().rejected >= 100; }));
  EXPECT_TRUE(runs_until([&] { return idle.front().closed(); })) << "the oldest goes first";
  EXPECT_FALSE(idle.back().closed());
  expect_works(*node);
  EXPECT_THAT(node->log, SizeIs(1));
}

TEST_P(HostileTest, RunningOutOfDescriptorsRefusesAndRecovers) {
  const auto node = make_node(1);
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  std::vector<FakePeer> strangers(8);
  for (FakePeer& peer : strangers) peer.connect_to(node->address());  // they wait in the backlog
  UniqueFd highest(dup(0));
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(highest.get());
  highest.reset();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto happened = runs_until([&] { return node->transport->stats().rejected >= strangers.size(); });
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(happened);
  expect_works(*node);
}

// --- after it

TEST_P(HostileTest, ABrokenControlMessageEndsThatConnectionOnly) {
  const auto node = make_node(1);
  const std::uint32_t huge = 1U << 31;
  const std::uint32_t one = 1;
  for (const std::string& bytes : {std::string(reinterpret_cast<const char*>(&huge), 4),
                                   std::string(reinterpret_cast<const char*>(&one), 4) + "\xff"}) {
    FakePeer peer;
    peer.connect_to(node->address());
    ASSERT_TRUE(runs_until([&] { return peer.introduced(Role::kControl); }));
    peer.say(bytes);
    ASSERT_TRUE(runs_until([&] { return peer.closed(); }));
  }
  ASSERT_TRUE(runs_until([&] { return node->lost.size() == 2; }));
  EXPECT_THAT(node->lost[0], Pair(FakePeer::kRef, Loss::kClosed));
  EXPECT_THAT(node->messages, IsEmpty());
  expect_works(*node);
}

TEST_P(HostileTest, ANewerConnectionOfAPeerReplacesTheOlderSilently) {
  const auto node = make_node(1);
  FakePeer older;
  FakePeer newer;
  older.connect_to(node->address());
  ASSERT_TRUE(runs_until([&] { return older.introduced(Role::kControl); }));
  newer.connect_to(node->address());
  ASSERT_TRUE(runs_until([&] { return newer.introduced(Role::kControl); }));
  ASSERT_TRUE(runs_until([&] { return older.closed(); }));
  EXPECT_THAT(node->lost, IsEmpty());
  newer.hang_up();
  ASSERT_TRUE(runs_until([&] { return !node->lost.empty(); }));
  EXPECT_THAT(node->lost, ElementsAre(Pair(FakePeer::kRef, Loss::kClosed)));
}

TEST_P(HostileTest, APeerThatNeverReadsLosesItsConnectionAndNothingElse) {
  const auto node = make_node(1);
  FakePeer lazy;
  lazy.listen();
  const auto payload = pattern(3 * kMiB, 1);
  const auto send = [&] {
    node->transport->send(FakePeer::kRef, lazy.address(), InlineObject{1, {1, 2}, 3, ""}, payload);
  };
  send();
  ASSERT_TRUE(runs_until([&] { return lazy.accepted(); }));
  ASSERT_TRUE(runs_until([&] { return lazy.introduced(); }));
  for (int i = 0; i < 60 && node->lost.empty(); ++i) {
    send();
    EXPECT_TRUE(node->lost.empty()) << "handlers are called from the loop only";
    loop.run_once(monotonic_now() + Duration::ms(1));
  }
  ASSERT_TRUE(runs_until([&] { return !node->lost.empty(); }));
  EXPECT_THAT(node->lost, ElementsAre(Pair(FakePeer::kRef, Loss::kClosed)));
}

TEST_P(HostileTest, FramesOutOfPlaceBreakTheConnection) {
  expect_broken_by(frame_of(FrameType::kData, 1, 100, 64), std::string(100, 'x'));  // not the next offset
  expect_broken_by(frame_of(FrameType::kData, 1, 1U << 31, 0));                     // longer than any frame
  expect_broken_by(frame_of(FrameType::kData, 1, kMiB + 1, 0));
  expect_broken_by(frame_of(FrameType::kData, 1, 0, 0));
  expect_broken_by(frame_of(FrameType::kEnd, 1));     // before the last byte
  expect_broken_by(frame_of(FrameType::kAccept, 1));  // twice
  expect_broken_by(frame_of(FrameType::kPull, 1));    // children ask, parents answer
  expect_broken_by(frame_of(FrameType::kStarved, 1, 7));
  expect_broken_by(frame_of(FrameType::kLimit, 1));  // children limit, parents obey
  expect_broken_by(frame_of(FrameType::kPrioritize, 1));
}

TEST_P(HostileTest, DataBeyondTheReservationBreaksTheConnection) {
  const auto child = make_node(1);
  FakePeer parent;
  start_pull(*child, parent);
  parent.say(frame_of(FrameType::kAccept, 1));
  parent.say(frame_of(FrameType::kData, 1, 1000, 0), std::string(1000, 'a'));
  ASSERT_TRUE(runs_until([&] { return child->valid(1).front() == 1000; }));
  parent.say(frame_of(FrameType::kData, 1, kMiB - 999, 1000));
  ASSERT_TRUE(runs_until([&] { return child->ended_as(1, PullEnd::kConnectionLost); }));
  EXPECT_EQ(child->ended[1].valid.front(), 1000U);
}

TEST_P(HostileTest, DataBeforeAcceptanceBreaksTheConnection) {
  const auto child = make_node(1);
  FakePeer parent;
  start_pull(*child, parent);
  parent.say(frame_of(FrameType::kData, 1, 10, 0), std::string(10, 'a'));
  ASSERT_TRUE(runs_until([&] { return child->ended_as(1, PullEnd::kConnectionLost); }));
}

TEST_P(HostileTest, DataOfUnknownTransfersIsDiscarded) {
  const auto child = make_node(1);
  FakePeer parent;
  start_pull(*child, parent);
  parent.say(frame_of(FrameType::kData, 99, 200'000, 12345), std::string(200'000, 'z'));
  parent.say(frame_of(FrameType::kEnd, 98));
  parent.say(frame_of(FrameType::kAccept, 1));
  const std::string all(kMiB, 'a');
  std::string_view rest = all;
  for (std::uint64_t offset = 0; offset < kMiB; offset += 64 * kKiB) {
    parent.say(frame_of(FrameType::kData, 1, 64 * kKiB, offset), rest.substr(0, 64 * kKiB));
    rest.remove_prefix(64 * kKiB);
    ASSERT_TRUE(runs_until([&] { return child->valid(1).front() == offset + 64 * kKiB; }));
  }
  parent.say(frame_of(FrameType::kEnd, 1));
  ASSERT_TRUE(runs_until([&] { return child->ended_as(1, PullEnd::kComplete); }));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(child->arena.data()), kMiB), all);
}

TEST_P(HostileTest, AParentThatFallsSilentIsReportedOncePerSilence) {
  patience = Duration::ms(100);
  const auto child = make_node(1);
  FakePeer parent;
  start_pull(*child, parent);
  ASSERT_TRUE(runs_until([&] { return child->silent.size() == 1; }));
  run_for(Duration::ms(300));
  EXPECT_THAT(child->silent, ElementsAre(1));
  parent.say(frame_of(FrameType::kAccept, 1));
  ASSERT_TRUE(runs_until([&] { return child->silent.size() == 2; }));
  parent.say(frame_of(FrameType::kData, 1, 10, 0), "half");  // the rest of the frame does not come
  ASSERT_TRUE(runs_until([&] { return child->silent.size() == 3; }));
  EXPECT_THAT(child->ended, IsEmpty()) << "silence does not end a pull";
  child->execute(effect::CloseCopy{1});
  ASSERT_TRUE(runs_until([&] { return child->closed.size() == 1; }));
  EXPECT_EQ(child->ended[1].valid.front(), 4U);
}

TEST_P(HostileTest, ABrokenChildLosesItsConnectionOnly) {
  const auto parent = make_node(1);
  parent->offer(kId, 1, 0, pattern(kMiB, 1));
  const FrameHeader bad_request = frame_of(FrameType::kPull, 1, 5);
  const FrameHeader long_request = frame_of(FrameType::kPull, 1, 100'000);
  const FrameHeader wrong_way = frame_of(FrameType::kEnd, 1);
  const FrameHeader no_priority = frame_of(FrameType::kPrioritize, 1, 0, 3);
  for (const FrameHeader& frame : {bad_request, long_request, wrong_way, no_priority}) {
    FakePeer child;
    child.connect_to(parent->address());
    ASSERT_TRUE(runs_until([&] { return child.introduced(); }));
    child.say(frame, "hello");
    ASSERT_TRUE(runs_until([&] { return child.closed(); }));
  }
  EXPECT_THAT(parent->asked, IsEmpty());
  const auto child = make_node(2);
  child->execute(effect::OpenCopy{1, {0, kMiB}, 1, false});
  pull(*child, *parent, 1, request(1, kId));
  ASSERT_TRUE(runs_until([&] { return child->ended_as(1, PullEnd::kComplete); }));
}

// A child that asks and does not read must not hold the parent's extent.
TEST_P(HostileTest, AChildThatStopsReadingDoesNotKeepACopyOpen) {
  const auto parent = make_node(1);
  constexpr std::uint64_t kSize = 24 * kMiB;
  parent->offer(kId, 1, 0, pattern(kSize, 1));
  FakePeer child;
  child.connect_to(parent->address());
  ASSERT_TRUE(runs_until([&] { return child.introduced(); }));
  std::string body;
  Writer writer(body);
  PullRequest pull_request = request(1, kId);
  pull_request.fields(writer);
  child.say(frame_of(FrameType::kPull, 1, static_cast<std::uint32_t>(body.size())), body);
  ASSERT_TRUE(runs_until([&] { return parent->transport->stats().bulk_bytes_out > 0; }));
  run_for(Duration::ms(50));
  EXPECT_LT(parent->transport->stats().bulk_bytes_out, kSize);
  parent->execute(effect::CloseCopy{1});
  ASSERT_TRUE(runs_until([&] { return !parent->closed.empty(); }));
  std::fill_n(parent->arena.begin(), kSize, std::byte{0xEE});
  // What was under way is still the old bytes.
  ASSERT_TRUE(runs_until([&] {
    child.closed();
    const std::size_t abort_at = child.heard.size() - std::min(child.heard.size(), FrameHeader::kSize);
    FrameHeader last;
    return FrameHeader::decode(reinterpret_cast<const std::byte*>(child.heard.data()) + abort_at, last) &&
           last.type == FrameType::kAbort;
  }));
  EXPECT_EQ(child.heard.find("\xEE\xEE\xEE\xEE\xEE\xEE\xEE\xEE"), std::string::npos);
}

}  // namespace
}  // namespace hoplite::tcp
