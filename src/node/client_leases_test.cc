// Clients that are gone and those that do not read: what stays, and what is heard.
#include <gtest/gtest.h>

#include "node/test_clients.h"

namespace hoplite {
namespace {

TEST_F(ClientServerTest, ALeaseOutlivesTheConnection) {
  options_.limits.max_clients = 1;
  serve();
  auto client = join();
  client->ask(2, ipc::Put{});
  run();
  const UniqueFd lease(client->descriptors.at(1));
  client->descriptors.pop_back();
  client.reset();
  run();
  EXPECT_EQ(handler_.gone, std::vector<ClientKey>{handler_.last_client});
  EXPECT_TRUE(handler_.ended.empty());
  EXPECT_FALSE(server_->process_of(handler_.last_client).attached);
  EXPECT_EQ(server_->process_of(handler_.last_client).pid, ::getpid());

  const std::vector<CopyKey> copies{7, 8};
  ASSERT_EQ(::send(lease.get(), copies.data(), 16, 0), 16);
  ASSERT_EQ(::send(lease.get(), copies.data(), 11, 0), 11) << "one, and a half";
  ASSERT_EQ(::send(lease.get(), copies.data(), 0, 0), 0);
  run();
  EXPECT_EQ(handler_.released, (std::vector<std::vector<CopyKey>>{{7, 8}, {7}}));
  EXPECT_TRUE(handler_.ended.empty());

  RawClient another(path());
  another.ask(1, ipc::Hello{});
  run();
  EXPECT_TRUE(std::holds_alternative<ipc::Failed>(another.answers().at(1).reply)) << "it counts as a client";
  const UniqueFd inherited(::dup(lease.get()));
  ::shutdown(lease.get(), SHUT_WR);
  run();
  EXPECT_TRUE(handler_.ended.empty()) << "somebody has it still";
  const Time before = monotonic_now();
  loop_.run_once(before + Duration::ms(20));
  EXPECT_GE(monotonic_now() - before, Duration::ms(20)) << "the loop is not kept awake by it";
}

TEST_F(ClientServerTest, ALeaseThatEndsFirstWaitsForWhatWasAsked) {
  serve();
  auto client = join();
  client->ask(2, ipc::Put{});
  for (const int fd : client->descriptors) ::close(fd);
  client->descriptors.clear();
  run();
  EXPECT_EQ(handler_.requests, 1);
  EXPECT_TRUE(handler_.ended.empty());
  client->ask(3, ipc::Put{});
  run();
  EXPECT_EQ(handler_.requests, 2);
  client.reset();
  run();
  EXPECT_EQ(handler_.ended, std::vector<ClientKey>{handler_.last_client});
}

TEST_F(ClientServerTest, AClientThatDoesNotReadIsNotReadEither) {
  options_.limits.max_unread_bytes = 3 * kMiB;
  serve();
  auto client = join();
  std::string frames;
  for (std::uint64_t i = 0; i < 40; ++i) ipc::encode_request(2 + i, ipc::GetObjects{}, 0, frames);
  client->send(frames);
  run();
  client->send(frames);
  run();
  EXPECT_LE(handler_.requests, 5) << "no more than fill its queue";
  EXPECT_TRUE(handler_.gone.empty());
  // As soon as it reads, everything goes on, in order.
  std::vector<std::uint64_t> answered;
  const Time end = monotonic_now() + Duration::s(60);
  while (answered.size() < 80 && monotonic_now() < end) {
    run();
    for (const auto& answer : client->answers()) answered.push_back(answer.request);
  }
  ASSERT_EQ(answered.size(), 80u);
  for (std::size_t i = 0; i < 80; ++i) EXPECT_EQ(answered[i], 2 + i % 40);
}

TEST_F(ClientServerTest, WhatAClientAskedForBeforeItDiedIsHeard) {
  options_.limits.max_unread_bytes = 0;
  serve();
  auto client = join();
  client->ask(2, ipc::GetObjects{});
  for (std::uint64_t i = 0; i < 20; ++i) client->ask(3 + i, ipc::Put{});
  run();
  EXPECT_LT(handler_.requests, 21) << "its replies are not read";
  client.reset();
  run();
  EXPECT_EQ(handler_.requests, 21);
  EXPECT_EQ(handler_.gone.size(), 1u);
}

TEST_F(ClientServerTest, OfGrowthThatIsNotReadTheLatestIsKept) {
  options_.limits.max_unread_bytes = kMiB / 2;
  serve();
  auto client = join();
  client->ask(2, ipc::Get{});
  client->ask(3, ipc::Get{});
  client->ask(4, ipc::GetObjects{});
  run();
  for (std::uint64_t i = 1; i <= 100'000; ++i) {
    server_->reply(handler_.last_client, 2, ipc::Grown{i});
    server_->reply(handler_.last_client, 3, ipc::Grown{i});
  }
  server_->reply(handler_.last_client, 3, ipc::View{.copy = 9, .meta = {}});
  std::vector<RawClient::Answer> answers;
  const Time end = monotonic_now() + Duration::s(60);
  while (answers.size() < 3 && monotonic_now() < end) {
    run();
    for (auto& answer : client->answers()) answers.push_back(std::move(answer));
  }
  run();
  EXPECT_TRUE(client->answers().empty());
  ASSERT_EQ(answers.size(), 3u) << "the large one, the end of the one read, and how far the other is";
  EXPECT_EQ(answers[1].request, 3u);
  EXPECT_EQ(answers[2].request, 2u);
  EXPECT_EQ(std::get<ipc::Grown>(answers[2].reply).bytes, 100'000u);
}

}  // namespace
}  // namespace hoplite
