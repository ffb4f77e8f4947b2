#include "core/agent/coordinator.h"

#include "core/agent/test_parts.h"

namespace hoplite {
namespace {

constexpr ObjectId kSum{1, 9};  // minted here: this is its home
constexpr ObjectId kFirstSource{2, 1};
constexpr ObjectId kSecondSource{3, 1};

// Nobody has any of the sources, until a test says so.
class CoordinatorTest : public PartsTest, protected Coordinator::Host, protected Directory::Host {
 protected:
  CoordinatorTest() {
    Directory::Output homes;
    directory_.set_view(out_.now(), {kSelf}, homes);
  }
  void flush(Directory::Output& homes) override {
    for (Directory::Outgoing& send : homes.sends) out_.send(send.to, std::move(send.message));
    homes = {};
  }
  LinkCosts link_costs() const override { return same_for_all({1e-4, 1e8}); }
  std::uint64_t welcome_bytes(std::uint32_t) const override { return 0; }
  void watch(const ObjectId& source, const ObjectId&, std::uint64_t) override { watched_.insert(source); }
  void unwatch(const ObjectId& source, const ObjectId&) override { watched_.erase(source); }
  void remember_lost(const ObjectId& target, Version, const std::string& why) override { lost_[target] = why; }
  bool can_inline(const ObjectId&, Version, NodeRef) const override { return false; }
  Plan make_plan(const Demand& demand) const override {
    return hoplite::make_plan(demand, {records_.alive(), link_costs(), limits_});
  }

  static ReduceRequest request(std::uint64_t number, std::int64_t timeout_ns = -1) {
    ReduceRequest m;
    m.request = number;
    m.spec.target = kSum;
    m.spec.sources = {kFirstSource, kSecondSource};
    m.spec.count = 2;
    m.spec.timeout_ns = timeout_ns;
    return m;
  }
  void begin(const ReduceRequest& m = request(1)) {
    coordinator_.on_request(kPeer, m);
    coordinator_.check_invariants();
  }
  Code last_code() const { return sent<ReduceReply>(kPeer).back().code; }
  ReduceReport report() {
    coordinator_.on_query(kPeer, {50, kSum});
    return sent<ReduceAnswer>(kPeer).back().report;
  }
  void arrive(const ObjectId& source, NodeRef node) {
    coordinator_.on_arrival(kSum, {source, node, 7, kMiB, ""});
    coordinator_.check_invariants();
  }

  Random random_{1};
  Tombstones tombstones_{100};
  VersionMemory known_{100};
  Directory directory_{kSelf, limits_, *this, tombstones_, known_};
  Versions versions_{0, random_};
  Coordinator coordinator_{{limits_, timers_, directory_, records_, random_, versions_, out_}, *this};
  std::set<ObjectId> watched_;
  std::map<ObjectId, std::string> lost_;
};

TEST_F(CoordinatorTest, TakesAReduceOnceHoweverOftenItIsAskedFor) {
  begin();
  EXPECT_EQ(last_code(), Code::kOk);
  EXPECT_EQ(watched_, (std::set{kFirstSource, kSecondSource}));
  begin();
  EXPECT_EQ(last_code(), Code::kOk) << "the same request, sent again";
  begin(request(2));
  EXPECT_EQ(last_code(), Code::kExists) << "another one into the same target";
  EXPECT_TRUE(directory_.is_taken(kSum));
  EXPECT_FALSE(coordinator_.is_running()) << "as long as it waits for sources, nothing has to be finished";
}

TEST_F(CoordinatorTest, OrdersSlotsWhenItsSourcesHaveArrived) {
  begin();
  arrive(kFirstSource, kPeer);
  EXPECT_NE(report().phase, ReducePhase::kRunning) << "two are wanted";
  arrive(kSecondSource, kOther);
  EXPECT_FALSE(sent<SlotOrder>(kPeer).empty() || sent<SlotOrder>(kOther).empty()) << "each has something to add";
  EXPECT_EQ(report().phase, ReducePhase::kRunning);
  EXPECT_TRUE(coordinator_.is_running());
}

TEST_F(CoordinatorTest, AMissedDeadlineFailsItAndSaysWhatWasAwaited) {
  begin(request(1, Duration::s(1).ns));
  EXPECT_EQ(timers_.next(), out_.now() + Duration::s(1));
  arrive(kFirstSource, kPeer);
  coordinator_.on_timer(timer::ReduceDeadline{kSum});
  const ReduceReport ended = report();
  EXPECT_EQ(ended.phase, ReducePhase::kFailed);
  EXPECT_EQ(ended.code, Code::kTimedOut);
  EXPECT_NE(ended.text.find(kSecondSource.to_string()), std::string::npos) << ended.text;
  EXPECT_TRUE(watched_.empty());
  EXPECT_FALSE(directory_.is_taken(kSum)) << "it may be put or reduced into again";
  EXPECT_FALSE(coordinator_.is_running());
  EXPECT_EQ(timers_.next(), Time::never());
}

TEST_F(CoordinatorTest, ASourceThatCannotComeFailsItWithItsName) {
  begin();
  coordinator_.on_missing(kSum, kFirstSource, Code::kDeleted, "");
  const ReduceReport ended = report();
  EXPECT_EQ(ended.phase, ReducePhase::kFailed);
  EXPECT_NE(ended.text.find(kFirstSource.to_string()), std::string::npos) << ended.text;
}

TEST_F(CoordinatorTest, WhoAsksForNoReduceIsToldSo) {
  coordinator_.on_query(kPeer, {50, kSum});
  EXPECT_EQ(last_code(), Code::kInvalidArgument);
  coordinator_.on_add_sources(kPeer, {51, kSum, {kFirstSource}});
  EXPECT_EQ(last_code(), Code::kInvalidArgument);
}

TEST_F(CoordinatorTest, RefusesMoreThanItMay) {
  limits_.max_reduces = 0;
  begin();
  EXPECT_EQ(last_code(), Code::kStoreFull);
  EXPECT_FALSE(directory_.is_taken(kSum));
}

TEST_F(CoordinatorTest, ASlotOfAReduceThatIsOverIsEnded) {
  begin();
  coordinator_.cancel(kSum, Code::kDeleted, "deleted");
  coordinator_.on_update(kOther, {kSum, 3, 77, SlotState::kDone, Code::kOk, {}, {}, 0});
  ASSERT_EQ(sent<SlotEnd>(kOther).size(), 1u);
  EXPECT_FALSE(sent<SlotEnd>(kOther)[0].commit);
}

TEST_F(CoordinatorTest, WhenItsNodeWasGivenUpWhatItCoordinatedIsLost) {
  begin();
  coordinator_.forget_all();
  EXPECT_TRUE(lost_.contains(kSum));
  EXPECT_TRUE(watched_.empty());
  EXPECT_FALSE(coordinator_.is_running());
}

TEST_F(CoordinatorTest, ATargetWhoseHomeMovedIsGivenUp) {
  ReduceRequest named = request(1);
  named.spec.target = ObjectId::named("sum");
  coordinator_.on_request(kPeer, named);
  records_.set_alive({kOther});
  coordinator_.give_up_moved();
  EXPECT_NE(lost_[named.spec.target].find("reduce again"), std::string::npos);
}

}  // namespace
}  // namespace hoplite
