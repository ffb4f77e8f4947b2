// What the handlers between the parts decide: mostly what clients may not do, on a node that is alone.
#include "core/agent/agent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace hoplite {
namespace {

constexpr std::uint64_t kStoreBytes = 64 * kKiB;

class AgentTest : public testing::Test, protected Progress {
 protected:
  explicit AgentTest(AgentOptions with = options()) : agent_(std::move(with), *this, Time{}) {}
  static AgentOptions options() {
    AgentOptions options;
    options.self = NodeId{1};
    options.address = {"10.0.0.1", 7411};
    options.capacity = kStoreBytes;
    return options;
  }
  ValidBytes valid(CopyKey, std::uint32_t) const override { return {}; }
  std::uint64_t backlog(NodeRef) const override { return 0; }

  // The replies to this request, of those that the step brings.
  template <typename R> std::vector<R> ask(ClientKey client, ipc::Request request, std::uint64_t payload_bytes = 0) {
    Effects effects;
    const std::uint64_t number = ++requests_;
    agent_.step(Time{}, event::ClientAsked{client, number, std::move(request), payload_bytes}, effects);
    agent_.check_invariants();
    std::vector<R> found;
    for (const Effect& effect : effects)
      if (const auto* reply = std::get_if<effect::Reply>(&effect); reply != nullptr && reply->request == number)
        if (const R* r = std::get_if<R>(&reply->message)) found.push_back(*r);
    return found;
  }
  ipc::Created create(ClientKey client, std::uint64_t size) {
    return ask<ipc::Created>(client, ipc::Create{.id = {}, .size = size, .meta = {}}).at(0);
  }
  ObjectId put(ClientKey client, std::uint64_t size) { return ask<ipc::PutDone>(client, ipc::Put{}, size).at(0).id; }
  std::uint64_t written(const ObjectId& id) {
    for (const ipc::ObjectInfo& info : agent_.objects())
      if (info.id == id) return info.bytes;
    return 0;
  }

  Agent agent_;
  std::uint64_t requests_ = 0;
};

TEST_F(AgentTest, OnlyItsWriterAdvancesSealsOrGivesUpAnObject) {
  const ipc::Created mine = create(1, 1000);
  ask<ipc::Failed>(2, ipc::Advance{mine.copy, 500});
  EXPECT_EQ(written(mine.id), 0u);
  EXPECT_EQ(ask<ipc::Failed>(2, ipc::Seal{.copy = mine.copy}).at(0).code, Code::kInvalidArgument);
  ask<ipc::Failed>(2, ipc::Abort{mine.copy});
  ask<ipc::Failed>(1, ipc::Advance{mine.copy, 500});
  EXPECT_EQ(written(mine.id), 500u);
  EXPECT_EQ(ask<ipc::PutDone>(1, ipc::Seal{.copy = mine.copy}).at(0).id, mine.id);
}

TEST_F(AgentTest, AWriterHasNoMoreBytesThanTheObject) {
  const ipc::Created mine = create(1, 1000);
  ask<ipc::Failed>(1, ipc::Advance{mine.copy, 5000});
  EXPECT_EQ(written(mine.id), 1000u);
  ask<ipc::Failed>(1, ipc::Advance{mine.copy, 10});
  EXPECT_EQ(written(mine.id), 1000u) << "what is written stays written";
}

TEST_F(AgentTest, ANumberInUseIsRefusedAndTheFirstRequestGoesOn) {
  const ObjectId later = ObjectId::named("later");
  Effects effects;
  agent_.step(Time{}, event::ClientAsked{1, 7, ipc::Get{.id = later}, 0}, effects);
  effects.clear();
  agent_.step(Time{}, event::ClientAsked{1, 7, ipc::Get{.id = later}, 0}, effects);
  ASSERT_EQ(effects.size(), 1u);
  EXPECT_EQ(std::get<ipc::Failed>(std::get<effect::Reply>(effects[0]).message).code, Code::kInvalidArgument);
  effects.clear();
  agent_.step(Time{}, event::ClientAsked{2, 1, ipc::Put{.id = later, .meta = {}}, 10}, effects);
  EXPECT_TRUE(std::ranges::any_of(effects, [](const Effect& effect) {
    const auto* reply = std::get_if<effect::Reply>(&effect);
    return reply != nullptr && reply->client == 1 && std::holds_alternative<ipc::View>(reply->message);
  }));
}

TEST_F(AgentTest, AViewIsGivenBackByItsHolderOnly) {
  const ObjectId id = put(1, 100);
  const ipc::View view = ask<ipc::View>(1, ipc::Get{.id = id}).at(0);
  ask<ipc::Failed>(2, ipc::Release{{view.copy}});
  EXPECT_EQ(agent_.objects().at(0).views, 1u);
  ask<ipc::Failed>(1, ipc::Release{{view.copy, view.copy}});
  EXPECT_EQ(agent_.objects().at(0).views, 0u);
}

TEST_F(AgentTest, WhatAClientLeavesBehindIsCleanedUp) {
  const ipc::Created unfinished = create(1, 1000);
  const ObjectId id = put(1, 100);
  const std::uint64_t used = agent_.status().used;
  ask<ipc::View>(1, ipc::Get{.id = id});
  ask<ipc::View>(1, ipc::Get{.id = ObjectId::named("never")});
  Effects effects;
  agent_.step(Time{}, event::ClientGone{1}, effects);
  agent_.check_invariants();
  ASSERT_EQ(agent_.objects().size(), 1u) << "the one that was put stays";
  EXPECT_EQ(agent_.status().waiting, 0u);
  // Its process may still read and write.
  EXPECT_EQ(agent_.objects()[0].views, 1u);
  EXPECT_EQ(agent_.status().used, used);
  ASSERT_EQ(agent_.holdings().size(), 1u);
  EXPECT_EQ(agent_.holdings()[0].bytes, 1100u);
  EXPECT_EQ(agent_.holdings()[0].views, 1u);
  agent_.step(Time{}, event::LeaseEnded{1}, effects);
  agent_.check_invariants();
  EXPECT_EQ(agent_.objects()[0].views, 0u);
  EXPECT_LT(agent_.status().used, used);
  EXPECT_TRUE(agent_.holdings().empty());
  EXPECT_EQ(ask<ipc::Failed>(1, ipc::Seal{.copy = unfinished.copy}).at(0).code, Code::kInvalidArgument);
}

TEST_F(AgentTest, APutInOneMessageHasABoundAndSoHasItsMetadata) {
  const Limits limits;
  EXPECT_EQ(ask<ipc::Failed>(1, ipc::Put{}, limits.inline_bytes + 1).at(0).code, Code::kInvalidArgument);
  ipc::Put wordy;
  wordy.meta.assign(limits.max_meta_bytes + 1, 'x');
  EXPECT_EQ(ask<ipc::Failed>(1, std::move(wordy), 10).at(0).code, Code::kInvalidArgument);
  EXPECT_EQ(ask<ipc::Failed>(1, ipc::Create{.id = {}, .size = kStoreBytes + 1, .meta = {}}).at(0).code,
            Code::kStoreFull);
}

// A put into a name whose home, the peer, has given it to a reduce; its root is to be made here.
class PutAndReduceTest : public AgentTest {
 protected:
  static constexpr NodeRef kHome{NodeId{2}, 0};
  static constexpr ObjectId kTarget{2, 9};
  static constexpr ClientKey kClient = 1;

  static AgentOptions options() {
    AgentOptions options = AgentTest::options();
    options.initial_members = {{kHome, {"10.0.0.2", 7411}, Life::kAlive}};
    return options;
  }
  PutAndReduceTest() : AgentTest(options()) {}

  Effects hear(Message message) {
    Effects effects;
    agent_.step(Time{}, event::Received{kHome, std::move(message), 0}, effects);
    agent_.check_invariants();
    return effects;
  }
  // The number of its claim.
  std::uint64_t begin_put() {
    Effects effects;
    agent_.step(Time{}, event::ClientAsked{kClient, kPut, ipc::Put{.id = kTarget, .meta = {}}, 64}, effects);
    for (const effect::Send& send : of<effect::Send>(effects))
      if (const auto* claim = std::get_if<PutRequest>(&send.message)) return claim->request;
    return 0;
  }
  SlotOrder root_order() {
    const ObjectId source = put(kClient, 64);
    SlotOrder order;
    order.target = kTarget;
    order.slot = 1;
    order.version = 77;
    order.role = SlotRole::kRoot;
    order.source_size = order.target_size = 64;
    order.own = {{source, agent_.directory().at(0).version}};
    return order;
  }
  template <typename E> static std::vector<E> of(const Effects& effects) {
    std::vector<E> found;
    for (const Effect& effect : effects)
      if (const E* e = std::get_if<E>(&effect)) found.push_back(*e);
    return found;
  }
  // What the client heard of its put; nothing yet: kUnavailable.
  static Code told(const Effects& effects) {
    for (const effect::Reply& reply : of<effect::Reply>(effects)) {
      if (reply.request != kPut) continue;
      const auto* failed = std::get_if<ipc::Failed>(&reply.message);
      return failed == nullptr ? Code::kOk : failed->code;
    }
    return Code::kUnavailable;
  }

  static constexpr std::uint64_t kPut = 1'000;
};

TEST_F(PutAndReduceTest, OnlyTheHomeRefusesAPutThatIsUnderWay) {
  const SlotOrder order = root_order();
  const std::uint64_t claim = begin_put();
  const Effects ordered = hear(order);
  EXPECT_EQ(told(ordered), Code::kUnavailable);
  EXPECT_TRUE(of<effect::Combine>(ordered).empty());
  const Effects refused = hear(PutReply{claim, kTarget, Code::kExists});
  EXPECT_EQ(told(refused), Code::kExists);
  EXPECT_EQ(of<effect::Combine>(refused).size(), 1u);
}

TEST_F(PutAndReduceTest, TheReduceMayFailBeforeThePutHasReachedTheHome) {
  const SlotOrder order = root_order();
  const std::uint64_t claim = begin_put();
  hear(order);
  hear(SlotEnd{kTarget, order.slot, order.version, false});
  EXPECT_EQ(told(hear(PutReply{claim, kTarget, Code::kOk})), Code::kOk);
}

// The home has forgotten it: it is asked again, and decides.
TEST_F(PutAndReduceTest, APutThatIsStillWrittenIsClaimedAgain) {
  const SlotOrder order = root_order();
  const auto claims = [&](const Effects& effects) {
    std::vector<std::uint64_t> numbers;
    for (const effect::Send& send : of<effect::Send>(effects))
      if (const auto* claim = std::get_if<PutRequest>(&send.message)) numbers.push_back(claim->request);
    return numbers;
  };
  Effects effects;
  agent_.step(Time{}, event::ClientAsked{kClient, kPut, ipc::Create{.id = kTarget, .size = 64, .meta = {}}, 0},
              effects);
  hear(PutReply{claims(effects).at(0), kTarget, Code::kOk});
  const Effects ordered = hear(order);
  ASSERT_EQ(claims(ordered).size(), 1u);
  EXPECT_TRUE(of<effect::Combine>(ordered).empty());
  EXPECT_EQ(of<effect::Combine>(hear(PutReply{claims(ordered)[0], kTarget, Code::kExists})).size(), 1u);
}

}  // namespace
}  // namespace hoplite
