#include "client/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "auth/auth.h"
#include "client/test_daemon.h"

namespace hoplite::client {
namespace {

using ::testing::HasSubstr;

// The other end of a socket on which a test plays the daemon by hand.
struct Pair {
  UniqueFd ours;
  UniqueFd theirs;

  Pair() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ours.reset(ends[0]);
    theirs.reset(ends[1]);
  }
  void send(const std::string& bytes) {
    EXPECT_EQ(::send(theirs.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  void send(const ipc::Reply& reply) {
    std::string out;
    ipc::encode_reply(0, reply, out);
    send(out);
  }
  Result<Attachment> attach(std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
    return client::attach(std::move(ours), "/a/socket", "", Deadline::after(timeout));
  }
};

TEST(Handshake, NoDaemonSaysHowToStartOne) {
  const auto client = hoplite::Client::connect({.socket = "/nonexistent/hoplite.sock"});
  ASSERT_FALSE(client.ok());
  EXPECT_EQ(client.code(), Code::kUnavailable);
  EXPECT_THAT(client.error().message, HasSubstr("no daemon at /nonexistent/hoplite.sock"));
  EXPECT_THAT(client.error().message, HasSubstr("hoplite start"));
}

TEST(Handshake, APathThatIsTooLongIsRefused) {
  const auto client = hoplite::Client::connect({.socket = "/" + std::string(200, 'x')});
  EXPECT_EQ(client.code(), Code::kInvalidArgument);
}

TEST(Handshake, AnotherVersionIsNamedEvenIfItsGreetingIsUnreadable) {
  Pair pair;
  std::string body("\0", 1);
  body += std::string("\x2a\x00", 2) + "fields that nobody knows yet";
  const auto length = static_cast<std::uint32_t>(body.size());
  std::string frame(reinterpret_cast<const char*>(&length), sizeof length);
  frame += std::string(8, '\0') + body;
  pair.send(frame);
  const auto attachment = pair.attach();
  ASSERT_FALSE(attachment.ok());
  EXPECT_EQ(attachment.code(), Code::kVersionMismatch);
  EXPECT_THAT(attachment.error().message, HasSubstr("42"));
  EXPECT_THAT(attachment.error().message, HasSubstr("this program " + std::to_string(kClientProtocolVersion)));
}

TEST(Handshake, StrangersAreRecognised) {
  Pair text;
  text.send(std::string("SSH-2.0-OpenSSH_9.2p1 Debian\r\n"));
  EXPECT_THAT(text.attach().error().message, HasSubstr("not a Hoplite daemon"));

  Pair wrong_order;
  wrong_order.send(ipc::Reply(ipc::PutDone{}));
  EXPECT_THAT(wrong_order.attach().error().message, HasSubstr("not a Hoplite daemon"));
}

TEST(Handshake, ADaemonThatSaysNothingIsTimedOut) {
  Pair pair;
  const auto attachment = pair.attach(std::chrono::milliseconds(50));
  EXPECT_EQ(attachment.code(), Code::kTimedOut);
  EXPECT_THAT(attachment.error().message, HasSubstr("/a/socket"));
}

TEST(Handshake, ADaemonThatHangsUpIsUnavailable) {
  Pair pair;
  pair.theirs.reset();
  EXPECT_EQ(pair.attach().code(), Code::kUnavailable);
}

TEST(Handshake, AWelcomeWithoutDescriptorsIsRefused) {
  Pair pair;
  pair.send(ipc::Reply(ipc::Greeting{}));
  ipc::Welcome welcome;
  welcome.arena_bytes = 1 << 20;
  pair.send(ipc::Reply(welcome));
  const auto attachment = pair.attach();
  ASSERT_FALSE(attachment.ok());
  EXPECT_THAT(attachment.error().message, HasSubstr("cannot use the store"));
}

TEST(Handshake, TheDaemonsRefusalIsPassedOn) {
  Pair pair;
  pair.send(ipc::Reply(ipc::Greeting{}));
  pair.send(ipc::Reply(ipc::Failed{Code::kUnavailable, "too many clients"}));
  const auto attachment = pair.attach();
  EXPECT_EQ(attachment.code(), Code::kUnavailable);
  EXPECT_EQ(attachment.error().message, "too many clients");
}

TEST(Handshake, TheTokenIsProvenNotSent) {
  FakeDaemon daemon(FakeDaemon::Options{.token = "open sesame"});
  ConnectOptions options = daemon.connect_options();
  EXPECT_THAT(hoplite::Client::connect(options).error().message, HasSubstr("HOPLITE_TOKEN"));
  options.token = "wrong";
  EXPECT_EQ(hoplite::Client::connect(options).code(), Code::kNotAuthorised);
  options.token = "open sesame";
  EXPECT_TRUE(hoplite::Client::connect(options).ok());
  EXPECT_EQ(client_proof("open sesame", "nonce").find("sesame"), std::string::npos);
}

TEST(Handshake, EveryPrefixOfAHandshakeEndsWithAnError) {
  std::string whole;
  ipc::encode_reply(0, ipc::Greeting{}, whole);
  encode_reply(0, ipc::Failed{Code::kUnavailable, "no"}, whole);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    Pair pair;
    pair.send(whole.substr(0, length));
    ::shutdown(pair.theirs.get(), SHUT_WR);
    EXPECT_EQ(pair.attach().code(), Code::kUnavailable) << length;
  }
}

}  // namespace
}  // namespace hoplite::client
