#include "node/client_server.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/test_clients.h"

namespace hoplite {
namespace {

using testing::HasSubstr;

TEST_F(ClientServerTest, GreetsWelcomesAndHandsOutTheReadOnlyDescriptorAndALease) {
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
  ASSERT_EQ(client.descriptors.size(), 2u);
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

TEST_F(ClientServerTest, ACreatedCarriesTheWritableDescriptorIfItIsWanted) {
  serve();
  auto client = join();
  client->ask(2, ipc::Create{});
  client->ask(3, ipc::Create{.id = {}, .meta = {}, .wants_descriptor = false});
  run();
  EXPECT_EQ(client->answers().size(), 2u);
  ASSERT_EQ(client->descriptors.size(), 3u);
  EXPECT_EQ(inode(client->descriptors[2]), inode(writable_.get()));
  client->ask(4, ipc::Create{});  // it was at its limit of descriptors, say
  run();
  EXPECT_EQ(client->answers().size(), 1u);
  ASSERT_EQ(client->descriptors.size(), 4u);
  EXPECT_EQ(inode(client->descriptors[3]), inode(writable_.get()));
}

TEST_F(ClientServerTest, WhoAsksForItAgainAndAgainGetsTheDescriptorOnce) {
  serve();
  auto client = join();
  client->ask(2, ipc::GetObjects{});  // so that the replies behind it wait
  for (std::uint64_t i = 0; i < 20; ++i) client->ask(3 + i, ipc::Create{});
  std::size_t got = 0;
  for (int i = 0; i < 200 && got < 21; ++i) {
    run();
    got += client->answers().size();
  }
  EXPECT_EQ(got, 21u);
  EXPECT_GE(client->descriptors.size(), 3u);
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
  EXPECT_EQ(handler_.ended, handler_.gone);
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
