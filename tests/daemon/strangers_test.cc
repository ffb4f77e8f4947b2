// Bytes from the network that do not come from a member of the cluster.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/address.h"
#include "base/random.h"
#include "base/unique_fd.h"
#include "cluster.h"
#include "protocol/messages.h"

namespace hoplite::testing {
namespace {

class Stranger {
 public:
  explicit Stranger(const std::string& text) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const auto address = Address::parse(text, 0);
    sockaddr_in target{};
    target.sin_family = AF_INET;
    target.sin_port = htons(address->port);
    ::inet_pton(AF_INET, address->host.c_str(), &target.sin_addr);
    connected_ = ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&target), sizeof target) == 0;
  }
  bool connected() const { return connected_; }
  void send(std::string_view bytes) { (void)::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  bool closed() {
    char buffer[4096];
    for (;;) {
      const ssize_t got = ::recv(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
      if (got > 0) continue;
      return got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
    }
  }

 private:
  UniqueFd socket_;
  bool connected_ = false;
};

// `length` wherever one might be: after the first `before` bytes of what a node would say.
std::string huge_length(std::size_t before, std::uint64_t length) {
  std::string text = "HPLT";
  text.append(reinterpret_cast<const char*>(&kWireVersion), sizeof kWireVersion);
  text.resize(24);
  text.resize(before);
  text.append(reinterpret_cast<const char*>(&length), sizeof length);
  return text + std::string(64, '\xff');
}

class Strangers : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.start({.environment = {{"HOPLITE_TOKEN", "secret"}}});
    address_ = cluster_[0].address();
  }
  void expect_well() {
    ASSERT_TRUE(cluster_[0].running()) << cluster_[0].log();
    // A member with the token still gets in, and objects still travel.
    cluster_.start({.environment = {{"HOPLITE_TOKEN", "secret"}}});
    cluster_.wait_for_members(2);
    Client a = cluster_[0].connect();
    Client b = cluster_[cluster_.size() - 1].connect();
    const auto id = a.put(pattern(1 << 20, 1));
    ASSERT_TRUE(id.ok());
    EXPECT_TRUE(b.get(*id, {.timeout = 30s}).ok());
  }

  Cluster cluster_;
  std::string address_;
};

TEST_F(Strangers, NonsenseIsRefusedAndLoggedOnce) {
  Random random(1);
  std::vector<std::string> texts = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", std::string(100'000, '\0'),
                                    std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11)};
  for (std::size_t before = 0; before <= 24; before += 4)
    for (const std::uint64_t length : {1ULL << 63, ~0ULL}) texts.push_back(huge_length(before, length));
  for (int i = 0; i < 100; ++i) {
    std::string bytes(1 + random.below(2000), '\0');
    for (char& c : bytes) c = static_cast<char>(random.next());
    texts.push_back(bytes);
  }
  const std::uint64_t before_kib = anonymous_kib(cluster_[0].pid());
  std::vector<std::unique_ptr<Stranger>> strangers;
  for (const std::string& text : texts) {
    strangers.push_back(std::make_unique<Stranger>(address_));
    strangers.back()->send(text);
  }
  for (std::size_t i = 0; i < strangers.size(); ++i)
    EXPECT_TRUE(eventually([&] { return strangers[i]->closed(); })) << "text " << i << " is still welcome";
  EXPECT_LT(anonymous_kib(cluster_[0].pid()), before_kib + 20'000) << "no memory is kept for them";
  const std::string log = cluster_[0].log();
  EXPECT_THAT(log, ::testing::HasSubstr("127.0.0.1"));
  EXPECT_LE(std::count(log.begin(), log.end(), '\n'), 10) << "once per peer: " << log;
  expect_well();
}

TEST_F(Strangers, FiveThousandIdleConnectionsAreBounded) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_cur < 6000) GTEST_SKIP() << "needs 6,000 descriptors";
  const std::uint64_t before_kib = anonymous_kib(cluster_[0].pid());
  std::vector<std::unique_ptr<Stranger>> idle;
  for (int i = 0; i < 5000; ++i) idle.push_back(std::make_unique<Stranger>(address_));
  EXPECT_LT(anonymous_kib(cluster_[0].pid()), before_kib + 20'000);
  const auto still_open = [&] { return std::count_if(idle.begin(), idle.end(), [](auto& s) { return !s->closed(); }); };
  EXPECT_TRUE(eventually([&] { return still_open() <= 1024; }));
  expect_well();
  EXPECT_TRUE(eventually([&] { return still_open() == 0; })) << "and none may stay for long";
}

}  // namespace
}  // namespace hoplite::testing
