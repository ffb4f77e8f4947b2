#include "sim/failovers.h"

#include <gtest/gtest.h>

#include "sim/clients.h"

namespace hoplite::sim {
namespace {

class FailoversTest : public ::testing::Test {
 protected:
  FailoversTest()
      : world_(slow()), judge_(world_, ledger_, {Duration::s(1), Duration::s(1)}), clients_(world_, ledger_, judge_) {
    LinkSpec link;
    link.up = link.down = 100'000;
    std::vector<Address> addresses{{"10.0.0.1", 7411}, {"10.0.0.2", 7411}, {"10.0.0.3", 7411}};
    for (const Address& address : addresses) world_.add_node({address, link, kMiB, addresses});
    for (NodeIndex node = 0; node < 3; ++node) world_.start(node);
    world_.run_for(Duration::s(5));
    const RequestNumber create = clients_.create(clients_.on(0), a_, 20'000, kNoTimeout);
    world_.run_for(Duration::ms(100));
    clients_.seal(create, kNoTimeout);
    world_.run_for(Duration::s(1));
  }

  static WorldOptions slow() {
    WorldOptions options;
    options.seed = 1;
    options.limits.inline_bytes = 0;
    options.links.piece_bytes = 1024;
    options.links.window_bytes = 4096;
    return options;
  }
  // It is in the middle of its transfer, which takes 200 ms.
  RequestNumber begun_get(NodeIndex node, bool wait_if_lost = false) {
    const RequestNumber get = clients_.get(clients_.on(node), {a_, kNoTimeout, wait_if_lost});
    world_.run_for(Duration::ms(100));
    EXPECT_FALSE(ledger_.requests[get].ended);
    return get;
  }
  NodeIndex parent() const { return world_.transfers()[world_.transfers().size() - 1].parent.node; }

  const ObjectId a_ = ObjectId::named("a");
  Ledger ledger_;
  World world_;
  Judge judge_;
  Clients clients_;
};

TEST_F(FailoversTest, LastsUntilBytesComeFromAnother) {
  clients_.get(clients_.on(1), {a_});
  world_.run_for(Duration::s(1));
  const RequestNumber get = begun_get(2);
  EXPECT_TRUE(clients_.failovers().ended().empty());
  world_.crash(parent(), Crash::kMachine);
  world_.run_for(Duration::s(5));
  EXPECT_EQ(ledger_.requests[get].code, Code::kOk);
  ASSERT_EQ(clients_.failovers().ended().size(), 1U);
  const Failover& failover = clients_.failovers().ended().front();
  EXPECT_EQ(failover.child.node, 2U);
  EXPECT_TRUE(failover.can_go_on);
  EXPECT_GE(failover.took, Duration::ms(100)) << "nobody tells of a machine without power";
  EXPECT_LE(failover.took, Duration::s(2));
  EXPECT_EQ(failover.took, failover.undisturbed);
}

TEST_F(FailoversTest, AnotherFaultIsToldApart) {
  clients_.get(clients_.on(1), {a_});
  world_.run_for(Duration::s(1));
  begun_get(2);
  const NodeIndex dead = parent();
  world_.crash(dead, Crash::kMachine);
  world_.run_for(Duration::ms(100));
  world_.break_connections(2, 1 - dead);
  world_.run_for(Duration::s(5));
  ASSERT_FALSE(clients_.failovers().ended().empty());
  const Failover& failover = clients_.failovers().ended().front();
  EXPECT_EQ(failover.took, failover.undisturbed + Duration::ms(100));
}

TEST_F(FailoversTest, WithoutAnotherCopyItLastsUntilThatIsSaid) {
  const RequestNumber get = begun_get(2);
  world_.crash(0, Crash::kProcess);
  world_.run_for(Duration::s(5));
  EXPECT_EQ(ledger_.requests[get].code, Code::kLost);
  ASSERT_EQ(clients_.failovers().ended().size(), 1U);
  EXPECT_FALSE(clients_.failovers().ended().front().can_go_on);
}

TEST_F(FailoversTest, WhoeverWaitsForAnotherPutDoesNotCount) {
  const RequestNumber get = begun_get(2, true);
  world_.crash(0, Crash::kProcess);
  world_.run_for(Duration::s(5));
  const RequestNumber create = clients_.create(clients_.on(1), a_, 20'000, kNoTimeout);
  world_.run_for(Duration::ms(100));
  clients_.seal(create, kNoTimeout);
  world_.run_for(Duration::s(5));
  EXPECT_EQ(ledger_.requests[get].code, Code::kOk);
  EXPECT_TRUE(clients_.failovers().ended().empty());
}

// Its writer is dead, and so it never was; the sources of a reduce that was refused cannot help.
TEST_F(FailoversTest, ARefusedReduceDoesNotMakeIt) {
  const ObjectId written = ObjectId::named("written");
  clients_.create(clients_.on(0), written, 20'000, kNoTimeout);
  world_.run_for(Duration::ms(100));
  ReduceSpec spec;
  spec.target = written;
  spec.sources = {a_};
  spec.count = 1;
  spec.type = DType::kU8;
  const RequestNumber reduce = clients_.reduce(clients_.on(1), spec, 20'000);
  clients_.get(clients_.on(1), {a_});
  clients_.get(clients_.on(2), {written});
  world_.run_for(Duration::s(1));
  ASSERT_EQ(ledger_.requests[reduce].code, Code::kExists);
  world_.crash(0, Crash::kMachine);
  world_.run_for(Duration::s(5));
  clients_.cancel(ledger_.requests.size() - 1);
  world_.run_for(Duration::s(1));
  EXPECT_TRUE(clients_.failovers().ended().empty());
}

}  // namespace
}  // namespace hoplite::sim
