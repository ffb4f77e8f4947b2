#include "node/client_server.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hoplite {
namespace {

using testing::HasSubstr;

// Answers every Put with PutDone, every Create with Created and keeps Gets waiting.
class FakeHandler : public ClientHandler {
 public:
  void on_client_request(ClientKey client, std::uint64_t request, ipc::Request message, ByteView payload) override {
    ++requests;
    last_client = client;
    last_payload.assign(reinterpret_cast<const char*>(payload.data()), payload.size());
    if (std::holds_alternative<ipc::Put>(message)) server->reply(client, request, ipc::PutDone{{1, request}});
    if (std::holds_alternative<ipc::Create>(message)) server->reply(client, request, ipc::Created{{1, 1}, 7, 0, 1});
    if (std::holds_alternative<ipc::GetObjects>(message)) server->reply(client, request, big_reply());
  }
  void on_client_gone(ClientKey client) override { gone.push_back(client); }

  static ipc::Objects big_reply() {
    ipc::Objects objects;
    objects.objects.resize(1);
    objects.objects[0].meta.assign(kMiB, 'x');
    return objects;
  }

  ClientServer* server = nullptr;
  int requests = 0;
  ClientKey last_client = 0;
  std::string last_payload;
  std::vector<ClientKey> gone;
};

// A client that speaks bytes, well or badly.
class RawClient {
 public:
  explicit RawClient(const std::string& path)
      : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  ~RawClient() {
    for (const int fd : descriptors) ::close(fd);
  }

  void send(std::string_view bytes) {
    EXPECT_EQ(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  void ask(std::uint64_t request, const ipc::Request& message, std::string_view payload = {}) {
    std::string frame;
    ipc::encode_request(request, message, payload.size(), frame);
    send(frame + std::string(payload));
  }

  struct Answer {
    std::uint64_t request = 0;
    ipc::Reply reply;
  };
  // What has arrived; `closed` tells whether the server hung up.
  std::vector<Answer> answers() {
    receive();
    std::vector<Answer> found;
    ByteView in(reinterpret_cast<const std::byte*>(input_.data()), input_.size());
    for (;;) {
      auto frame = ipc::next_frame(in, 64 * kMiB);
      if (!frame.ok() || !frame->complete) break;
      auto reply = ipc::decode_reply(frame->body);
      EXPECT_TRUE(reply.ok());
      found.push_back({frame->request, *reply});
    }
    input_.erase(0, input_.size() - in.size());
    return found;
  }

  bool closed = false;
  std::vector<int> descriptors;

 private:
  void receive() {
    for (;;) {
      char buffer[65536];
      iovec part{buffer, sizeof buffer};
      alignas(cmsghdr) char control[64];
      msghdr message{};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT);
      if (got == 0 || (got < 0 && errno != EAGAIN)) closed = true;
      if (got <= 0) return;
      for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
        descriptors.resize(descriptors.size() + (c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        std::memcpy(&descriptors.back(), CMSG_DATA(c), sizeof(int));
      }
      input_.append(buffer, static_cast<std::size_t>(got));
    }
  }

  UniqueFd socket_;
  std::string input_;
};

class ClientServerTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(dir_), nullptr);
    log_ = std::move(*Log::open(std::string(dir_) + "/log", LogLevel::kInfo));
    read_only_ = UniqueFd(::memfd_create("read-only", MFD_CLOEXEC));
    writable_ = UniqueFd(::memfd_create("writable", MFD_CLOEXEC));
    options_.welcome = {NodeId{42}, 0, 4096, 1024, ""};
    options_.read_only_arena = read_only_.get();
    options_.writable_arena = writable_.get();
  }
  void TearDown() override {
    server_.reset();
    ::unlink((std::string(dir_) + "/log").c_str());
    EXPECT_EQ(::rmdir(dir_), 0) << "something was left behind in " << dir_;
  }

  void serve() {
    auto listener = UnixListener::open(path(), 0600);
    ASSERT_TRUE(listener.ok()) << listener.error().message;
    server_ = std::make_unique<ClientServer>(loop_, handler_, *log_, std::move(*listener), options_);
    handler_.server = server_.get();
    loop_.after_batch([this] { server_->flush(); });
  }
  // Everything that is there to be done.
  void run() {
    for (int i = 0; i < 20; ++i) loop_.run_once(monotonic_now() + Duration::ms(1));
  }
  // Connects and does the handshake.
  std::unique_ptr<RawClient> join() {
    auto client = std::make_unique<RawClient>(path());
    client->ask(1, ipc::Hello{});
    run();
    const auto answers = client->answers();
    EXPECT_EQ(answers.size(), 2u);
    return client;
  }

  std::string path() const { return std::string(dir_) + "/sock"; }
  std::string logged() const {
    std::stringstream all;
    all << std::ifstream(std::string(dir_) + "/log").rdbuf();
    return all.str();
  }
  static ino_t inode(int fd) {
    struct stat info{};
    ::fstat(fd, &info);
    return info.st_ino;
  }

  char dir_[40] = "/tmp/hoplite-clients-XXXXXX";
  Loop loop_;
  std::unique_ptr<Log> log_;
  UniqueFd read_only_;
  UniqueFd writable_;
  FakeHandler handler_;
  ClientServerOptions options_;
  std::unique_ptr<ClientServer> server_;
};

TEST_F(ClientServerTest, GreetsWelcomesAndHandsOutTheReadOnlyDescriptor) {
  serve();
  RawClient client(path());
  run();
  auto answers = client.answers();
  ASSERT_EQ(answers.size(), 1u);
  const auto& greeting = std::get<ipc::Greeting>(answers[0].reply);
  EXPECT_FALSE(greeting.proof_wanted);
  EXPECT_EQ(greeting.nonce.size(), 32u);

  client.ask(5, ipc::Hello{});
  run();
  answers = client.answers();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].request, 5u);
  const auto& welcome = std::get<ipc::Welcome>(answers[0].reply);
  EXPECT_EQ(welcome.node, NodeId{42});
  EXPECT_GT(welcome.client, 0u);
  ASSERT_EQ(client.descriptors.size(), 1u);
  EXPECT_EQ(inode(client.descriptors[0]), inode(read_only_.get()));
}

TEST_F(ClientServerTest, AnotherVersionIsRefusedWithBoth) {
  serve();
  RawClient client(path());
  client.ask(1, ipc::Hello{.version = 77, .proof = {}});
  run();
  const auto answers = client.answers();
  ASSERT_EQ(answers.size(), 2u);
  const auto& failed = std::get<ipc::Failed>(answers[1].reply);
  EXPECT_EQ(failed.code, Code::kVersionMismatch);
  EXPECT_THAT(failed.message, HasSubstr("version 77"));
  EXPECT_THAT(failed.message, HasSubstr("version " + std::to_string(kClientProtocolVersion)));
  EXPECT_TRUE(client.closed);
  EXPECT_TRUE(handler_.gone.empty()) << "it never was a client";
}

TEST_F(ClientServerTest, OnlyTheFirstCreatedCarriesTheWritableDescriptor) {
  serve();
  auto client = join();
  client->ask(2, ipc::Create{});
  client->ask(3, ipc::Create{});
  run();
  EXPECT_EQ(client->answers().size(), 2u);
  ASSERT_EQ(client->descriptors.size(), 2u);
  EXPECT_EQ(inode(client->descriptors[1]), inode(writable_.get()));
}

TEST_F(ClientServerTest, PayloadAndRequestsInPiecesArriveWhole) {
  serve();
  auto client = join();
  const std::string payload(1000, 'p');
  std::string frames;
  for (std::uint64_t request = 10; request < 13; ++request) {
    ipc::encode_request(request, ipc::Put{}, payload.size(), frames);
    frames += payload;
  }
  for (std::size_t at = 0; at < frames.size(); at += 700) {
    client->send(std::string_view(frames).substr(at, 700));
    loop_.run_once(monotonic_now() + Duration::ms(1));
  }
  run();
  EXPECT_EQ(handler_.requests, 3);
  EXPECT_EQ(handler_.last_payload, payload);
  const auto answers = client->answers();
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[2].request, 12u);
}

TEST_F(ClientServerTest, AClientThatGoesIsReportedOnce) {
  serve();
  auto client = join();
  client->ask(2, ipc::Put{});
  client.reset();
  run();
  EXPECT_EQ(handler_.gone, std::vector<ClientKey>{handler_.last_client});
  EXPECT_EQ(server_->clients(), 0u);
  server_->reply(handler_.last_client, 2, ipc::PutDone{});  // late replies find nobody
}

TEST_F(ClientServerTest, NonsenseEndsTheConnectionAndIsLoggedOncePerProcess) {
  serve();
  const std::string too_long = std::string("\xff\xff\xff\xff", 4) + std::string(8, '\0');
  const std::string unknown_type = std::string("\x01\0\0\0", 4) + std::string(8, '\0') + '\x63';
  for (const std::string& bytes : {too_long, unknown_type, std::string("GET / HTTP/1.1\r\nHost: hoplite\r\n\r\n")}) {
    RawClient client(path());
    client.send(bytes);
    run();
    client.answers();
    EXPECT_TRUE(client.closed);
  }
  EXPECT_EQ(server_->clients(), 0u);
  const std::string log = logged();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
  EXPECT_THAT(log, HasSubstr("pid " + std::to_string(::getpid())));
}

TEST_F(ClientServerTest, RequestsBeforeHelloAndASecondHelloAreNonsense) {
  serve();
  RawClient early(path());
  early.ask(1, ipc::Put{});
  run();
  early.answers();
  EXPECT_TRUE(early.closed);
  auto twice = join();
  twice->ask(2, ipc::Hello{});
  run();
  twice->answers();
  EXPECT_TRUE(twice->closed);
  EXPECT_EQ(handler_.requests, 0);
}

TEST_F(ClientServerTest, AClientThatDoesNotReadIsDisconnected) {
  options_.limits.max_output_bytes = 4 * kMiB;
  serve();
  auto client = join();
  for (std::uint64_t i = 0; i < 10; ++i) {
    if (handler_.gone.empty()) client->ask(2 + i, ipc::GetObjects{});
    run();
  }
  EXPECT_EQ(handler_.gone.size(), 1u);
  EXPECT_THAT(logged(), HasSubstr("does not read its replies"));
}

TEST_F(ClientServerTest, ASlowReaderGetsEverything) {
  serve();
  auto client = join();
  for (std::uint64_t i = 0; i < 5; ++i) client->ask(2 + i, ipc::GetObjects{});
  std::size_t got = 0;
  for (int i = 0; i < 200 && got < 5; ++i) {
    run();
    got += client->answers().size();
  }
  EXPECT_EQ(got, 5u);
}

TEST_F(ClientServerTest, TooManyOutstandingRequestsFail) {
  options_.limits.max_outstanding = 2;
  serve();
  auto client = join();
  for (std::uint64_t i = 0; i < 3; ++i) client->ask(2 + i, ipc::Get{});
  run();
  auto answers = client->answers();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].request, 4u);
  EXPECT_EQ(std::get<ipc::Failed>(answers[0].reply).code, Code::kUnavailable);

  // A reply makes room; those of a streaming read do so only at its end.
  server_->reply(handler_.last_client, 3, ipc::Grown{});
  client->ask(5, ipc::Get{});
  run();
  server_->reply(handler_.last_client, 3, ipc::View{});
  client->ask(6, ipc::Get{});
  run();
  EXPECT_EQ(handler_.requests, 3);
}

TEST_F(ClientServerTest, IdleConnectionsAreBoundedAndKeepNobodyOut) {
  options_.limits.max_handshakes = 3;
  options_.limits.handshake = Duration::ms(300);
  serve();
  std::vector<std::unique_ptr<RawClient>> idle;
  for (int i = 0; i < 10; ++i) idle.push_back(std::make_unique<RawClient>(path()));
  run();
  const auto open = [&] {
    return std::count_if(idle.begin(), idle.end(), [](auto& client) { return client->answers(), !client->closed; });
  };
  EXPECT_EQ(open(), 3);
  auto served = join();
  EXPECT_FALSE(served->closed);
  EXPECT_EQ(server_->clients(), 1u);

  const Time end = monotonic_now() + Duration::s(10);
  while (open() > 0 && monotonic_now() < end) run();
  EXPECT_EQ(open(), 0);
  const std::string log = logged();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
}

TEST_F(ClientServerTest, MoreClientsThanTheLimitAreTold) {
  options_.limits.max_clients = 2;
  serve();
  auto first = join();
  auto second = join();
  auto third = std::make_unique<RawClient>(path());
  third->ask(1, ipc::Hello{});
  run();
  const auto answers = third->answers();
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_THAT(std::get<ipc::Failed>(answers[1].reply).message, HasSubstr("2 clients, which is the limit"));
  EXPECT_TRUE(third->closed);
  first.reset();
  run();
  join();
}

TEST_F(ClientServerTest, StoppingTellsEverybodyAndRemovesTheSocket) {
  serve();
  auto client = join();
  server_->stop("the daemon is stopping");
  client->ask(9, ipc::Get{});
  run();
  const auto answers = client->answers();
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].request, 0u);
  EXPECT_EQ(std::get<ipc::Failed>(answers[0].reply).message, "the daemon is stopping");
  EXPECT_EQ(answers[1].request, 9u);
  EXPECT_EQ(handler_.requests, 0);
  EXPECT_TRUE(server_->all_sent());
  EXPECT_NE(::access(path().c_str(), F_OK), 0);
}

}  // namespace
}  // namespace hoplite
