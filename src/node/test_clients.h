// A ClientServer with a client that speaks bytes, well or badly.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "node/client_server.h"

namespace hoplite {

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
    if (const auto* release = std::get_if<ipc::Release>(&message)) released.push_back(release->copies);
  }
  void on_client_gone(ClientKey client) override { gone.push_back(client); }
  void on_lease_ended(ClientKey client) override { ended.push_back(client); }

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
  std::vector<std::vector<CopyKey>> released;
  std::vector<ClientKey> gone;
  std::vector<ClientKey> ended;
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
        const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        descriptors.resize(descriptors.size() + count);
        std::memcpy(&descriptors[descriptors.size() - count], CMSG_DATA(c), count * sizeof(int));
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

}  // namespace hoplite
