#include "core/agent/slots.h"

#include <gtest/gtest.h>

namespace hoplite {
namespace {

constexpr NodeRef kSelf{NodeId{1}, 0};
constexpr NodeRef kCoordinator{NodeId{2}, 0};
constexpr NodeRef kPeer{NodeId{3}, 0};
constexpr ObjectId kTarget{9, 9};
constexpr ObjectId kSource{9, 1};
constexpr std::uint64_t kSourceBytes = 640;
constexpr Version kVersion = 77;

// Nothing is there but one complete source.
class SlotsTest : public testing::Test, protected Slots::Host, protected Progress {
 protected:
  SlotsTest() {
    source_ = table_.add(kSource, 5, kSourceBytes, Alignment::kCacheLine, CopyLife::kComplete);
    table_.touch(*source_);
  }
  NodeRef self() const override { return kSelf; }
  Time now() const override { return {}; }
  void send(NodeRef, Message message) override { updates_.push_back(std::get<SlotUpdate>(message)); }
  Effects& effects() override { return effects_; }
  const Address* depend_on(NodeId) override { return &address_; }
  Copy* find_copy(const ObjectId& id) override { return id == kSource ? source_ : target_; }
  void open_in_data_plane(Copy& copy) override {
    if (copy.in_data_plane() == InDataPlane::kNotOpen) table_.opened(copy);
  }
  void become_target(Copy& out) override {
    target_ = &out;
    table_.opened(out);
  }
  void target_grows(Copy&) override {}
  void target_committed(Copy& out) override { committed_ = out.slices.at(0).is_done(); }
  void target_dropped(Copy& out) override {
    table_.become(out, CopyLife::kRetired);
    target_ = nullptr;
  }
  void can_be_pulled(const ObjectId&) override {}
  Priority demand(const Copy&, std::uint32_t) const override { return demand_; }
  std::string room_numbers(std::uint64_t) const override { return "no room"; }
  ValidBytes valid(CopyKey, std::uint32_t) const override { return ValidBytes({0, kSourceBytes}); }

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
    slots_.on_order(kCoordinator, o);
    slots_.check_invariants();
  }
  template <typename E> std::vector<E> all() const {
    std::vector<E> found;
    for (const Effect& effect : effects_)
      if (const E* e = std::get_if<E>(&effect)) found.push_back(*e);
    return found;
  }

  Limits limits_;
  Timers timers_;
  ObjectTable table_{64 * kKiB};
  Room room_{0};
  Pulls pulls_{limits_};
  Slots slots_{{limits_, *this, timers_, table_, room_, pulls_}, *this};
  Address address_;
  Effects effects_;
  std::vector<SlotUpdate> updates_;
  Copy* source_ = nullptr;
  Copy* target_ = nullptr;
  Priority demand_ = Priority::kLow;
  bool committed_ = false;
};

TEST_F(SlotsTest, APinExportsItsSourcesUntilItEnds) {
  give(order(SlotRole::kKeep));
  EXPECT_EQ(updates_.back().state, SlotState::kDone);
  EXPECT_EQ(slots_.exported(kSource, 5), source_);
  EXPECT_EQ(source_->users(CopyUser::kHold), 1u);
  slots_.on_end(kCoordinator, {kTarget, 4, kVersion, false});
  EXPECT_EQ(slots_.exported(kSource, 5), nullptr);
  EXPECT_TRUE(source_->is_idle());
}

TEST_F(SlotsTest, AMissingSourceIsNamed) {
  SlotOrder wrong = order(SlotRole::kInner);
  wrong.own[0].version = 6;
  give(wrong);
  EXPECT_EQ(updates_.back().state, SlotState::kRefused);
  EXPECT_EQ(updates_.back().culprit, kSource);
  EXPECT_TRUE(source_->is_idle());
}

TEST_F(SlotsTest, ARootCombinesReportsAndIsCommittedOnce) {
  give(order(SlotRole::kRoot));
  ASSERT_EQ(all<effect::Combine>().size(), 1u);
  const CopyKey out = all<effect::Combine>()[0].out;
  slots_.on_end(kCoordinator, {kTarget, 4, kVersion, true});
  EXPECT_FALSE(committed_) << "it is not complete";
  slots_.on_combined({out, 0});
  EXPECT_EQ(updates_.back().state, SlotState::kDone);
  slots_.on_end(kCoordinator, {kTarget, 4, kVersion, true});
  EXPECT_TRUE(committed_);
  EXPECT_EQ(updates_.back().state, SlotState::kEnded);
  EXPECT_TRUE(source_->is_idle());
}

TEST_F(SlotsTest, AnotherOrderKeepsWhatHasArrivedOfAnInput) {
  const SlotInput input{kPeer, kTarget, 3};
  give(order(SlotRole::kInner, {input}));
  ASSERT_EQ(all<effect::StartPull>().size(), 1u);
  const CopyKey copy = all<effect::StartPull>()[0].copy;
  SlotOrder next = order(SlotRole::kInner, {{kPeer, kTarget, 8}, input});
  next.version = kVersion + 1;
  give(next);
  ASSERT_EQ(all<effect::StartPull>().size(), 2u) << "only the new input";
  EXPECT_NE(all<effect::StartPull>()[1].copy, copy);
  EXPECT_EQ(all<effect::Combine>()[1].inputs.at(2).copy, copy);
}

TEST_F(SlotsTest, InputsAreAsUrgentAsTheirOutput) {
  give(order(SlotRole::kInner, {{kPeer, kTarget, 3}}));
  EXPECT_EQ(all<effect::StartPull>()[0].pull.priority, Priority::kNormal) << "the order's";
  demand_ = Priority::kHigh;
  slots_.demand_changed(all<effect::Combine>()[0].out, 0);
  ASSERT_EQ(all<effect::PrioritizePull>().size(), 1u);
  EXPECT_EQ(all<effect::PrioritizePull>()[0].priority, Priority::kHigh);
  slots_.check_invariants();
}

TEST_F(SlotsTest, WhatADeadCoordinatorOrderedIsDropped) {
  give(order(SlotRole::kRoot));
  const auto dropped = slots_.drop_those_of(kCoordinator);
  ASSERT_EQ(dropped.size(), 1u);
  EXPECT_EQ(dropped[0], (std::pair{kTarget, kVersion}));
  EXPECT_EQ(target_, nullptr);
  EXPECT_EQ(source_->users(CopyUser::kHold), 1u) << "the data plane still reads it";
  slots_.on_closed(all<effect::Combine>()[0].out);
  EXPECT_TRUE(source_->is_idle());
}

}  // namespace
}  // namespace hoplite
