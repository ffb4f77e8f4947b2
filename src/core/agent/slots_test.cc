#include "core/agent/slots.h"

#include "core/agent/test_parts.h"

namespace hoplite {
namespace {

constexpr ObjectId kTarget{9, 9};
constexpr ObjectId kSource{9, 1};
constexpr std::uint64_t kSourceBytes = 640;
constexpr Version kVersion = 77;

// Nothing is there but one complete source. Orders come from the peer.
class SlotsTest : public PartsTest, protected Slots::Host {
 protected:
  SlotsTest() { valid_ = ValidBytes({0, kSourceBytes}); }
  bool may_become_target(const ObjectId&) override { return !being_put_; }
  void become_target(Copy& out) override {
    target_ = &out;
    records_.add(out.id).copy = out.key;
    copies_.open(out);
  }
  void target_grows(Copy&) override {}
  void target_committed(Copy& out) override { committed_ = out.slices.at(0).is_done(); }
  void target_dropped(Copy& out) override {
    records_.at(out.id).copy = 0;
    table_.become(out, CopyLife::kRetired);
    target_ = nullptr;
  }
  Priority demand(const Copy&, std::uint32_t) const override { return demand_; }

  SlotOrder order(SlotRole role, std::vector<SlotInput> inputs = {}) const {
    SlotOrder o;
    o.target = kTarget;
    o.slot = 4;
    o.version = kVersion;
    o.role = role;
    o.source_size = o.target_size = kSourceBytes;
    o.own = {{kSource, 5}};
    o.inputs = std::move(inputs);
    return o;
  }
  void give(const SlotOrder& o) {
    slots_.on_order(kPeer, o);
    slots_.check_invariants();
  }
  SlotUpdate last_update() const { return sent<SlotUpdate>(kPeer).back(); }

  Room room_{0};
  Pulls pulls_{limits_};
  Slots slots_{{limits_, timers_, table_, records_, copies_, room_, pulls_, out_}, *this};
  Copy* source_ = &add_copy(kSource, CopyLife::kComplete, kSourceBytes, 5);
  Copy* target_ = nullptr;
  Priority demand_ = Priority::kLow;
  bool committed_ = false;
  bool being_put_ = false;
};

TEST_F(SlotsTest, ASlotThatKeepsItsSourcesExportsThemUntilItEnds) {
  give(order(SlotRole::kKeep));
  EXPECT_EQ(last_update().state, SlotState::kDone);
  EXPECT_EQ(slots_.exported(kSource, 5), source_);
  EXPECT_EQ(source_->users(CopyUser::kHold), 1u);
  slots_.on_end(kPeer, {kTarget, 4, kVersion, false});
  EXPECT_EQ(slots_.exported(kSource, 5), nullptr);
  EXPECT_TRUE(source_->is_idle());
}

TEST_F(SlotsTest, AMissingSourceIsNamed) {
  SlotOrder wrong = order(SlotRole::kInner);
  wrong.own[0].version = 6;
  give(wrong);
  EXPECT_EQ(last_update().state, SlotState::kRefused);
  EXPECT_EQ(last_update().culprit, kSource);
  EXPECT_TRUE(source_->is_idle());
}

TEST_F(SlotsTest, ARootCombinesReportsAndIsCommittedOnce) {
  give(order(SlotRole::kRoot));
  ASSERT_EQ(all<effect::Combine>().size(), 1u);
  const CopyKey out = all<effect::Combine>()[0].out;
  slots_.on_end(kPeer, {kTarget, 4, kVersion, true});
  EXPECT_FALSE(committed_) << "it is not complete";
  slots_.on_combined({out, 0});
  EXPECT_EQ(last_update().state, SlotState::kDone);
  slots_.on_end(kPeer, {kTarget, 4, kVersion, true});
  EXPECT_TRUE(committed_);
  EXPECT_EQ(last_update().state, SlotState::kEnded);
  EXPECT_TRUE(source_->is_idle());
}

TEST_F(SlotsTest, ALaterSliceThatHasJustBegunHasNoBytes) {
  valid_ = {};  // the data plane has not heard of it
  SlotOrder last = order(SlotRole::kRoot);
  last.slices = last.target_slices = 2;
  last.slice = last.target_slice = 1;
  give(last);
  EXPECT_EQ(last_update().bytes, 0u);
}

TEST_F(SlotsTest, ARootWaitsUntilAPutOfItsTargetHasEnded) {
  being_put_ = true;
  give(order(SlotRole::kRoot));
  EXPECT_TRUE(all<effect::Combine>().empty());
  EXPECT_EQ(last_update().state, SlotState::kAccepted);
  being_put_ = false;
  slots_.start_roots_of(kTarget);
  slots_.check_invariants();
  EXPECT_EQ(all<effect::Combine>().size(), 1u);
  slots_.start_roots_of(kTarget);
  EXPECT_EQ(all<effect::Combine>().size(), 1u) << "it has begun";
}

TEST_F(SlotsTest, ARootIsRefusedIfThePutOfItsTargetCameFirst) {
  being_put_ = true;
  give(order(SlotRole::kRoot));
  being_put_ = false;
  add_copy(kTarget, CopyLife::kComplete);
  slots_.start_roots_of(kTarget);
  EXPECT_EQ(last_update().state, SlotState::kRefused);
  EXPECT_EQ(last_update().code, Code::kExists);
  EXPECT_TRUE(source_->is_idle());
}

TEST_F(SlotsTest, AnotherOrderKeepsWhatHasArrivedOfAnInput) {
  const SlotInput input{kOther, kTarget, 3};
  give(order(SlotRole::kInner, {input}));
  ASSERT_EQ(all<effect::StartPull>().size(), 1u);
  const CopyKey copy = all<effect::StartPull>()[0].copy;
  SlotOrder next = order(SlotRole::kInner, {{kOther, kTarget, 8}, input});
  next.version = kVersion + 1;
  give(next);
  ASSERT_EQ(all<effect::StartPull>().size(), 2u) << "only the new input";
  EXPECT_NE(all<effect::StartPull>()[1].copy, copy);
  EXPECT_EQ(all<effect::Combine>()[1].inputs.at(2).copy, copy);
}

TEST_F(SlotsTest, InputsAreAsUrgentAsTheirOutput) {
  give(order(SlotRole::kInner, {{kOther, kTarget, 3}}));
  EXPECT_EQ(all<effect::StartPull>()[0].pull.priority, Priority::kNormal) << "the order's";
  demand_ = Priority::kHigh;
  slots_.demand_changed(all<effect::Combine>()[0].out, 0);
  ASSERT_EQ(all<effect::PrioritizePull>().size(), 1u);
  EXPECT_EQ(all<effect::PrioritizePull>()[0].priority, Priority::kHigh);
  slots_.check_invariants();
}

TEST_F(SlotsTest, WhatADeadCoordinatorOrderedIsDropped) {
  give(order(SlotRole::kRoot));
  const auto dropped = slots_.drop_those_of(kPeer);
  ASSERT_EQ(dropped.size(), 1u);
  EXPECT_EQ(dropped[0], (std::pair{kTarget, kVersion}));
  EXPECT_EQ(target_, nullptr);
  EXPECT_EQ(source_->users(CopyUser::kHold), 1u) << "the data plane still reads it";
  slots_.on_closed(all<effect::Combine>()[0].out);
  EXPECT_TRUE(source_->is_idle());
}

}  // namespace
}  // namespace hoplite
