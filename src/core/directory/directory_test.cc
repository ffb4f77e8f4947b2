// One directory and what it says; long because every topic needs the same fixture.
#include "core/directory/directory.h"

#include <gtest/gtest.h>

#include <optional>

namespace hoplite {
namespace {

constexpr NodeRef kHome{NodeId{1}, 0};
constexpr NodeRef kA{NodeId{2}, 0};
constexpr NodeRef kB{NodeId{3}, 0};
constexpr NodeRef kC{NodeId{4}, 0};
const ObjectId kId{kHome.id.value, 7};  // minted at the home: settled from the start

// Sends everybody to the first root.
class FirstRoot final : public ParentPlanner {
 public:
  void add_root(NodeId node) override { roots_.push_back(node); }
  // There is one slice.
  std::vector<NodeId> choose(Time, NodeId, const Want& want) override {
    const bool asked = want.slices.empty() || want.slices.front().slice == 0;
    return asked && !roots_.empty() ? std::vector<NodeId>{roots_.front()} : std::vector<NodeId>(1);
  }
  void remove(NodeId node) override { std::erase(roots_, node); }
  void measured(NodeId, std::uint64_t) override {}
  void check_invariants() const override {}

 private:
  std::vector<NodeId> roots_;
};

class DirectoryTest : public testing::Test, private Directory::Host {
 protected:
  DirectoryTest() { directory_.set_view(now_, {kHome, kA, kB}, out_); }

  bool can_inline(const ObjectId&, Version, NodeRef) const override { return inline_; }
  Plan make_plan(const Demand&) const override { return {1, std::make_unique<FirstRoot>()}; }
  LinkCosts link_costs() const override { return same_for_all({.hop_s = 100e-6, .bytes_per_s = rate_}); }

  template <typename T>
  std::optional<T> sent_to(NodeRef to) {
    for (const auto& send : out_.sends)
      if (send.to == to && std::holds_alternative<T>(send.message)) return std::get<T>(send.message);
    return std::nullopt;
  }
  void put(NodeRef from, Version version, bool sealed = true, ObjectId id = kId) {
    out_ = {};
    directory_.on_put(now_, from, {++request_, id, version, 1000, "", sealed}, out_);
    directory_.serve(now_, id, out_);
  }
  void want(NodeRef from, bool wait_if_lost = false, WantMode mode = WantMode::kFetch, ObjectId id = kId) {
    out_ = {};
    Want w;
    w.request = ++request_;
    w.id = id;
    w.mode = mode;
    w.wait_if_lost = wait_if_lost;
    directory_.on_want(now_, from, w, out_);
  }
  void tell(NodeRef from, Version version, CopyState state, ObjectId id = kId) {
    out_ = {};
    Announce a;
    a.facts.push_back(
        {id, version, 1000, "", state, state == CopyState::kComplete || state == CopyState::kKnows, false, 1});
    directory_.on_announce(now_, from, a, out_);
  }
  // Not at once: what is wanted may be put in a moment.
  bool told_to_wait(NodeRef node) {
    if (sent_to<Waiting>(node)) return false;
    now_ = now_ + limits_.waiting_after;
    directory_.tick(now_, out_);
    return sent_to<Waiting>(node).has_value();
  }
  // A name whose home is here, and of which everybody has told what it knows.
  ObjectId named_here(const std::string& prefix) {
    ObjectId id;
    for (int i = 0; id.is_nil() || home_of(id, {kHome, kA, kB, kC}) != kHome; ++i)
      id = ObjectId::named(prefix + std::to_string(i));
    settle(id);
    return id;
  }
  // Everybody has told what it knows of `id`: nothing.
  void settle(const ObjectId& id) {
    out_ = {};
    directory_.knows(now_, id, out_);
    for (const NodeRef& node : {kA, kB})
      if (const auto query = sent_to<RecoverQuery>(node))
        directory_.on_recover_reply(now_, node, {query->round, query->view, 0}, out_);
    out_ = {};
  }
  void live(std::vector<NodeRef> nodes) {
    out_ = {};
    directory_.set_view(now_, nodes, out_);
  }

  Limits limits_;
  Tombstones tombstones_{100};
  VersionMemory known_{100};
  bool inline_ = false;
  double rate_ = 1e9;
  Time now_{1};
  std::uint64_t request_ = 0;
  Directory::Output out_;
  Directory directory_{kHome, limits_, *this, tombstones_, known_};
};

TEST_F(DirectoryTest, TheFirstVersionWins) {
  put(kA, 10);
  EXPECT_EQ(sent_to<PutReply>(kA)->code, Code::kOk);
  put(kB, 11);
  EXPECT_EQ(sent_to<PutReply>(kB)->code, Code::kExists);
  put(kA, 10);  // asked again
  EXPECT_EQ(sent_to<PutReply>(kA)->code, Code::kOk);
}

TEST_F(DirectoryTest, WhoWaitsIsServedWhenItIsPut) {
  want(kB);
  EXPECT_TRUE(told_to_wait(kB));
  put(kA, 10);
  ASSERT_TRUE(sent_to<Assign>(kB));
  EXPECT_EQ(sent_to<Assign>(kB)->parents.front(), kA);
}

TEST_F(DirectoryTest, WhoBeganWithOtherSlicesStartsOver) {
  put(kA, 10);
  Want want;
  want.request = ++request_;
  want.id = kId;
  want.have_version = 10;
  want.slices = {{1, 0, false}};  // of two, at a home of before
  out_ = {};
  directory_.on_want(now_, kB, want, out_);
  ASSERT_TRUE(sent_to<Assign>(kB));
  EXPECT_EQ(sent_to<Assign>(kB)->slices, 1u);
  EXPECT_EQ(sent_to<Assign>(kB)->parents.front(), kA);
}

TEST_F(DirectoryTest, SmallObjectsAreAnsweredByTheirBytes) {
  inline_ = true;
  put(kA, 10);
  want(kB);
  EXPECT_TRUE(sent_to<InlineObject>(kB));
  EXPECT_EQ(directory_.summary().front().holders.size(), 2u);  // so that delete finds it
}

TEST_F(DirectoryTest, LostOnlyWhenNobodyGrowingHasBecomeComplete) {
  put(kA, 10);
  want(kB);
  live({kHome, kB});
  EXPECT_TRUE(sent_to<Drop>(kB)) << "the growing one is asked first";
  EXPECT_FALSE(directory_.summary().front().lost);
  tell(kB, 10, CopyState::kComplete);
  EXPECT_FALSE(directory_.summary().front().lost);
  EXPECT_TRUE(sent_to<SetPrimary>(kB)) << "and is primary now";
}

TEST_F(DirectoryTest, LostWhenTheLastOneWithdraws) {
  put(kA, 10);
  want(kB);
  live({kHome, kB});
  out_ = {};
  directory_.on_withdraw(now_, kB, {kId, 10}, out_);
  EXPECT_TRUE(directory_.summary().front().lost);
  want(kB);
  EXPECT_EQ(sent_to<WantFailed>(kB)->code, Code::kLost);
  want(kB, true);
  EXPECT_TRUE(told_to_wait(kB));
  put(kB, make_version(1, 12));  // can be put again
  EXPECT_EQ(sent_to<PutReply>(kB)->code, Code::kOk);
}

// An unsealed claim that took a detour, behind the seal.
TEST_F(DirectoryTest, ALateClaimDoesNotUndoTheSeal) {
  put(kA, 10);
  put(kA, 10, false);
  EXPECT_EQ(directory_.summary().front().holders.front().state, CopyState::kComplete);
  want(kB);
  EXPECT_TRUE(sent_to<Assign>(kB));
}

TEST_F(DirectoryTest, AnUnsealedPutWhoseWriterDiesNeverWas) {
  put(kA, 10, false);
  want(kB, false, WantMode::kNotify);
  EXPECT_TRUE(told_to_wait(kB)) << "not committed yet";
  live({kHome, kB});
  EXPECT_FALSE(sent_to<WantFailed>(kB));
  EXPECT_EQ(directory_.summary().front().version, 0u);
}

TEST_F(DirectoryTest, TheLastCompleteCopyIsNotEvicted) {
  put(kA, 10);
  tell(kB, 10, CopyState::kComplete);
  out_ = {};
  directory_.on_evict(now_, kB, {kId, 10}, out_);
  EXPECT_TRUE(sent_to<EvictReply>(kB)->granted);
  out_ = {};
  directory_.on_evict(now_, kA, {kId, 10}, out_);
  EXPECT_FALSE(sent_to<EvictReply>(kA)->granted);
}

TEST_F(DirectoryTest, DeletedStaysDeleted) {
  put(kA, 10);
  want(kB);
  out_ = {};
  directory_.on_delete(now_, kB, {99, kId}, out_);
  EXPECT_TRUE(sent_to<Drop>(kA) && sent_to<Drop>(kB));
  EXPECT_FALSE(sent_to<DeleteReply>(kB)) << "not before every holder has dropped it";
  directory_.on_withdraw(now_, kB, {kId, 10}, out_);
  directory_.on_withdraw(now_, kA, {kId, 10}, out_);
  EXPECT_TRUE(sent_to<DeleteReply>(kB)->existed);
  put(kA, 11);
  EXPECT_EQ(sent_to<PutReply>(kA)->code, Code::kDeleted);
  want(kB);
  EXPECT_EQ(sent_to<WantFailed>(kB)->code, Code::kDeleted);
  tell(kA, 10, CopyState::kComplete);  // somebody was away
  EXPECT_EQ(sent_to<Drop>(kA)->reason, DropReason::kDeleted);
}

TEST_F(DirectoryTest, ADeletedNameIsFreeForANewerVersion) {
  const ObjectId name = named_here("name");
  const Version old = make_version(100, 5);
  put(kA, old, true, name);
  out_ = {};
  directory_.on_delete(now_, kB, {99, name}, out_);
  put(kB, make_version(100, 9), true, name);  // by a clock that is behind; while A has yet to confirm
  ASSERT_TRUE(sent_to<PutReply>(kB));
  EXPECT_EQ(sent_to<PutReply>(kB)->code, Code::kDeleted);
  EXPECT_EQ(sent_to<PutReply>(kB)->newer_than, old);
  const Version young = make_version(101, 3);
  put(kB, young, true, name);
  EXPECT_EQ(sent_to<PutReply>(kB)->code, Code::kOk);
  out_ = {};
  directory_.on_withdraw(now_, kA, {name, old}, out_);
  EXPECT_TRUE(sent_to<DeleteReply>(kB));
  tell(kA, old, CopyState::kComplete, name);  // somebody was away
  EXPECT_EQ(sent_to<Drop>(kA)->version, old);
  Announce late;
  late.tombstones.push_back({name, old, 100});
  out_ = {};
  directory_.on_announce(now_, kA, late, out_);
  EXPECT_FALSE(sent_to<Drop>(kB)) << "that is what was put since";
  want(kC, false, WantMode::kFetch, name);
  EXPECT_EQ(sent_to<Assign>(kC)->version, young);
  put(kA, old, true, name);  // it was deleted, whatever its client hopes
  EXPECT_EQ(sent_to<PutReply>(kA)->code, Code::kExists);
}

TEST_F(DirectoryTest, ADeleteThatComesTwiceDoesNotReachTheNextPut) {
  const ObjectId name = named_here("name");
  put(kA, make_version(100, 5), true, name);
  out_ = {};
  directory_.on_delete(now_, kB, {99, name}, out_);
  directory_.on_withdraw(now_, kA, {name, make_version(100, 5)}, out_);
  ASSERT_TRUE(sent_to<DeleteReply>(kB));
  put(kA, make_version(101, 5), true, name);
  out_ = {};
  directory_.on_delete(now_, kB, {99, name}, out_);
  EXPECT_TRUE(sent_to<DeleteReply>(kB)->existed);
  EXPECT_FALSE(sent_to<Drop>(kA));
  directory_.on_delete(now_, kB, {100, name}, out_);
  EXPECT_TRUE(sent_to<Drop>(kA));
}

TEST_F(DirectoryTest, TheSecondDeleteWaitsForBothVersions) {
  const ObjectId name = named_here("name");
  const Version first = make_version(100, 5);
  const Version second = make_version(101, 5);
  put(kA, first, true, name);
  directory_.on_delete(now_, kB, {99, name}, out_);
  put(kB, second, true, name);
  out_ = {};
  directory_.on_delete(now_, kA, {7, name}, out_);
  directory_.on_withdraw(now_, kB, {name, first}, out_);  // that is not what it was told to drop
  directory_.on_withdraw(now_, kA, {name, first}, out_);
  EXPECT_FALSE(sent_to<DeleteReply>(kA));
  directory_.on_withdraw(now_, kB, {name, second}, out_);
  EXPECT_TRUE(sent_to<DeleteReply>(kA) && sent_to<DeleteReply>(kB));
}

TEST_F(DirectoryTest, WhatIsNewerWinsAgainstBytesAndHearsay) {
  const ObjectId name = named_here("name");
  put(kA, make_version(100, 5), true, name);
  tell(kB, make_version(101, 9), CopyState::kComplete, name);
  EXPECT_EQ(sent_to<Drop>(kA)->reason, DropReason::kConflict);
  tell(kC, make_version(99, 1), CopyState::kComplete, name);
  EXPECT_EQ(sent_to<Drop>(kC)->reason, DropReason::kConflict);
  live({kHome, kA, kC});  // B is gone
  EXPECT_TRUE(directory_.summary().front().lost);
  tell(kC, make_version(99, 1), CopyState::kComplete, name);
  EXPECT_TRUE(sent_to<Drop>(kC)) << "a newer one was committed after it";
  put(kC, make_version(101, 1), true, name);
  EXPECT_EQ(sent_to<PutReply>(kC)->newer_than, make_version(101, 9));
  put(kC, make_version(102, 1), true, name);
  EXPECT_EQ(sent_to<PutReply>(kC)->code, Code::kOk);
}

TEST_F(DirectoryTest, ADeleteOfWhatAnotherNodeMintsIsKeptForIt) {
  const ObjectId theirs{99, 7};  // of a node that has not been heard of
  settle(theirs);
  directory_.on_delete(now_, kB, {99, theirs}, out_);
  EXPECT_FALSE(sent_to<DeleteReply>(kB)->existed);
  EXPECT_TRUE(tombstones_.contains(theirs));
  directory_.on_delete(now_, kB, {100, {kHome.id.value, 8}}, out_);
  EXPECT_FALSE(tombstones_.contains({kHome.id.value, 8})) << "nobody knows more of our ids than we do";
}

TEST_F(DirectoryTest, ATombstoneOfNoVersionBuriesWhatIsThere) {
  put(kA, make_version(10, 1));
  out_ = {};
  Announce stones;
  stones.tombstones.push_back({kId, make_version(9, 1), 100});
  directory_.on_announce(now_, kB, stones, out_);
  EXPECT_FALSE(sent_to<Drop>(kA)) << "that was another version";
  stones.tombstones.front().version = 0;
  directory_.on_announce(now_, kB, stones, out_);
  EXPECT_EQ(sent_to<Drop>(kA)->reason, DropReason::kDeleted);
}

TEST_F(DirectoryTest, OfTwoCommittedVersionsTheLowerWinsAndItIsReported) {
  put(kA, 10);
  tell(kB, 9, CopyState::kComplete);
  EXPECT_EQ(sent_to<Drop>(kA)->reason, DropReason::kConflict);
  EXPECT_FALSE(out_.log.empty());
  EXPECT_EQ(directory_.summary().front().version, 9u);
}

TEST_F(DirectoryTest, BytesInsteadOfHearsayAreNoConflict) {
  const ObjectId name = ObjectId::named("x");  // not settled: nothing is called lost yet
  tell(kA, 10, CopyState::kKnows, name);
  tell(kB, 11, CopyState::kComplete, name);
  EXPECT_EQ(directory_.summary().front().version, 11u);
  EXPECT_TRUE(out_.log.empty()) << out_.log.front();
}

TEST_F(DirectoryTest, AnUnknownNameParksUntilEverybodyHasAnswered) {
  ObjectId name = ObjectId::named("x");
  put(kA, 10, true, name);
  EXPECT_FALSE(sent_to<PutReply>(kA));
  const auto to_a = sent_to<RecoverQuery>(kA);
  const auto to_b = sent_to<RecoverQuery>(kB);
  ASSERT_TRUE(to_a && to_b);
  out_ = {};
  directory_.on_recover_reply(now_, kA, {to_a->round, to_a->view, 0}, out_);
  EXPECT_FALSE(sent_to<PutReply>(kA));
  directory_.on_recover_reply(now_, kB, {to_b->round, to_b->view, 0}, out_);
  EXPECT_EQ(sent_to<PutReply>(kA)->code, Code::kOk);
}

TEST_F(DirectoryTest, ARoundIsAskedAgainIfFactsWereLost) {
  ObjectId name = ObjectId::named("x");
  want(kA, false, WantMode::kFetch, name);
  const auto query = sent_to<RecoverQuery>(kB);
  out_ = {};
  directory_.on_recover_reply(now_, kB, {query->round, query->view, 3}, out_);  // three were sent, none arrived
  now_ = now_ + Duration::s(1);
  directory_.tick(now_, out_);
  EXPECT_TRUE(sent_to<RecoverQuery>(kB));
}

TEST_F(DirectoryTest, WhatAFullAnnouncementDoesNotRepeatIsGone) {
  put(kA, 10);
  tell(kB, 10, CopyState::kComplete);
  Announce full;
  full.full_begin = full.full_end = true;
  full.open_requests = request_ + 1;
  directory_.on_announce(now_, kB, full, out_);
  EXPECT_EQ(directory_.summary().front().holders.size(), 1u);
}

TEST_F(DirectoryTest, AFullAnnouncementSparesAnswersThatAreUnderWay) {
  put(kA, 10);
  want(kB);  // answered with request_; the announcement below was sent before the answer arrived
  Announce full;
  full.full_begin = full.full_end = true;
  full.open_requests = request_;
  directory_.on_announce(now_, kB, full, out_);
  EXPECT_EQ(directory_.summary().front().holders.size(), 2u);
}

TEST_F(DirectoryTest, AFullAnnouncementOfARangeDeniesNothingElse) {
  put(kA, 10);
  tell(kB, 10, CopyState::kComplete);
  Announce range;
  range.full_begin = range.full_end = true;
  range.open_requests = request_ + 1;
  range.first = place_of(kId).value + 1;
  directory_.on_announce(now_, kB, range, out_);
  EXPECT_EQ(directory_.summary().front().holders.size(), 2u);
  range.first = range.last = place_of(kId).value;
  directory_.on_announce(now_, kB, range, out_);
  EXPECT_EQ(directory_.summary().front().holders.size(), 1u);
}

TEST_F(DirectoryTest, ComparingTellsWhetherTheBooksAreRight) {
  put(kA, 10);
  const auto differs = [&](NodeRef node, std::uint64_t digest) {
    return directory_.on_compare(node, {1, 0, ~0ULL, digest}).differs;
  };
  EXPECT_FALSE(differs(kA, copy_digest(kId, 10, true, true)));
  EXPECT_TRUE(differs(kA, 0));
  EXPECT_TRUE(differs(kA, copy_digest(kId, 11, true, true))) << "another version";
  EXPECT_TRUE(differs(kA, copy_digest(kId, 10, true, false))) << "not kept";
  EXPECT_FALSE(differs(kB, 0));
  want(kC, false, WantMode::kNotify, {kHome.id.value, 8});
  EXPECT_FALSE(differs(kC, 0)) << "waiting is not having";
}

TEST_F(DirectoryTest, AComparisonIsCutShortWhereTheBooksHaveTooMuch) {
  const std::uint32_t many = 2 * Limits{}.compared_at_once + 10;
  PlacedIds ids;
  for (std::uint64_t n = 0; n < many; ++n) {
    const ObjectId id{kHome.id.value, 1000 + n};
    ids.insert(id);
    Announce one;
    one.facts.push_back({id, 10, 17, "", CopyState::kComplete, true, true, 1, 0});
    directory_.on_announce(now_, kA, one, out_);
  }
  const Compared answer = directory_.on_compare(kA, {1, 0, ~0ULL, 0});
  EXPECT_TRUE(answer.differs);
  const auto covered = std::distance(ids.begin(), ids.upper_bound(Place{answer.last}));
  EXPECT_EQ(covered, 2 * Limits{}.compared_at_once);
}

TEST_F(DirectoryTest, ADeleteEndsWhenTheLastHolderDies) {
  put(kA, 10);
  out_ = {};
  directory_.on_delete(now_, kB, {99, kId}, out_);
  EXPECT_FALSE(sent_to<DeleteReply>(kB));
  live({kHome, kB});
  EXPECT_TRUE(sent_to<DeleteReply>(kB));
}

// Somebody who only knows that there was such a version.
TEST_F(DirectoryTest, WhatIsOnlyKnownIsLost) {
  tell(kA, 10, CopyState::kKnows);
  want(kB);
  EXPECT_EQ(sent_to<WantFailed>(kB)->code, Code::kLost);
  put(kB, make_version(1, 12));
  EXPECT_EQ(sent_to<PutReply>(kB)->code, Code::kOk);
}

TEST_F(DirectoryTest, WhatTheHomeItselfKnowsIsLost) {
  known_.add(kId, 10, now_ + Duration::s(10), kHome.id);
  want(kB);
  EXPECT_EQ(sent_to<WantFailed>(kB)->code, Code::kLost);
}

TEST_F(DirectoryTest, BytesAreBelievedBeforeHearsayInAnyOrder) {
  tell(kA, 10, CopyState::kKnows);
  tell(kB, 12, CopyState::kComplete);
  EXPECT_FALSE(sent_to<Drop>(kB));
  EXPECT_EQ(directory_.summary().front().version, 12u);
  tell(kA, 10, CopyState::kKnows);
  EXPECT_EQ(directory_.summary().front().version, 12u);
  want(kC);
  EXPECT_EQ(sent_to<Assign>(kC)->size, 1000u);
}

TEST_F(DirectoryTest, TheSameVersionIsDescribedByWhoHasIt) {
  tell(kA, 10, CopyState::kKnows);
  tell(kB, 10, CopyState::kComplete);
  want(kC);
  EXPECT_EQ(sent_to<Assign>(kC)->size, 1000u);
}

TEST_F(DirectoryTest, ATombstoneWinsOverHearsayOfAnOlderVersionInAnyOrder) {
  for (const bool stone_first : {true, false}) {
    const ObjectId id{kHome.id.value, stone_first ? 100u : 101u};
    Announce buried;
    buried.tombstones.push_back({id, 12, 100});
    if (stone_first) directory_.on_announce(now_, kB, buried, out_);
    tell(kA, 10, CopyState::kKnows, id);
    if (!stone_first) directory_.on_announce(now_, kB, buried, out_);
    want(kC, false, WantMode::kFetch, id);
    ASSERT_TRUE(sent_to<WantFailed>(kC));
    EXPECT_EQ(sent_to<WantFailed>(kC)->code, Code::kDeleted);
  }
}

TEST_F(DirectoryTest, NothingIsKeptForADeadWaiter) {
  want(kB);
  live({kHome, kA});
  EXPECT_EQ(directory_.size(), 0u);
}

// Seed 4123242: the word that a put was given up was lost with its connection, and the id stayed taken.
TEST_F(DirectoryTest, WhoAsksAfterItsPutHasGivenItUp) {
  put(kA, 10, false);
  put(kB, 11);
  EXPECT_EQ(sent_to<PutReply>(kB)->code, Code::kExists);
  Want old;
  old.request = 0;
  old.id = kId;
  directory_.on_want(now_, kA, old, out_);
  put(kB, 12);
  EXPECT_EQ(sent_to<PutReply>(kB)->code, Code::kExists) << "the request is older than the put";
  want(kA);
  put(kB, 13);
  EXPECT_EQ(sent_to<PutReply>(kB)->code, Code::kOk);
}

TEST_F(DirectoryTest, AWithdrawalOfAnOlderVersionSaysNothingOfThePresentOne) {
  put(kA, 10);
  out_ = {};
  directory_.on_withdraw(now_, kA, {kId, 9}, out_);
  want(kB);
  ASSERT_TRUE(sent_to<Assign>(kB));
  EXPECT_EQ(sent_to<Assign>(kB)->parents.front(), kA);
}

TEST_F(DirectoryTest, NothingThatWasParkedSurvivesAReset) {
  want(kA, false, WantMode::kFetch, ObjectId::named("parked"));
  ASSERT_EQ(directory_.parked(), 1u);
  directory_.reset({kHome.id, 1});
  EXPECT_EQ(directory_.parked(), 0u);
}

TEST_F(DirectoryTest, OnlyThoseWhoMindAreToldOfALoss) {
  want(kA, true);
  want(kB, false);
  tell(kHome, 10, CopyState::kKnows);
  EXPECT_FALSE(sent_to<WantFailed>(kA));
  ASSERT_TRUE(sent_to<WantFailed>(kB));
  EXPECT_EQ(sent_to<WantFailed>(kB)->code, Code::kLost);
}

TEST_F(DirectoryTest, AnAnswerOfWhoSeesOtherMembersDoesNotCount) {
  want(kA, false, WantMode::kFetch, ObjectId::named("parked"));
  const auto a = sent_to<RecoverQuery>(kA);
  const auto b = sent_to<RecoverQuery>(kB);
  ASSERT_TRUE(a && b);
  directory_.on_recover_reply(now_, kA, {a->round, a->view, 0}, out_);
  directory_.on_recover_reply(now_, kB, {b->round, b->view + 1, 0}, out_);
  EXPECT_EQ(directory_.parked(), 1u) << "it may not know yet whom it has to tell";
}

TEST_F(DirectoryTest, AVersionHasOneSize) {
  put(kA, 10);
  out_ = {};
  directory_.on_put(now_, kB, {++request_, kId, 10, 17, "", true}, out_);
  EXPECT_EQ(sent_to<PutReply>(kB)->code, Code::kExists);
  Announce other;
  other.facts.push_back({kId, 10, 17, "", CopyState::kComplete, true, false, 1, 0});
  directory_.on_announce(now_, kB, other, out_);
  live({kHome, kA, kB, kC});
  want(kC);
  ASSERT_TRUE(sent_to<Assign>(kC));
  EXPECT_EQ(sent_to<Assign>(kC)->size, 1000u);
  EXPECT_EQ(sent_to<Assign>(kC)->parents.front(), kA);
}

TEST_F(DirectoryTest, WhatOnlyAFullAnnouncementTellsIsCountedAsARepair) {
  const auto announce_all = [&] {
    Announce all;
    all.full_begin = all.full_end = true;
    all.open_requests = request_ + 1;
    all.facts.push_back({kId, 10, 1000, "", CopyState::kComplete, true, true, 1, 0});
    directory_.on_announce(now_, kA, all, out_);
  };
  announce_all();
  EXPECT_EQ(directory_.repairs(), 1u) << "its put was never heard of";
  announce_all();
  EXPECT_EQ(directory_.repairs(), 1u);
  Announce nothing;
  nothing.full_begin = nothing.full_end = true;
  nothing.open_requests = request_ + 1;
  directory_.on_announce(now_, kA, nothing, out_);
  EXPECT_EQ(directory_.repairs(), 2u) << "nor that it is gone";
}

// --- small objects that others pass on -----------------------------------------------------------------------------------

class PassedOnTest : public DirectoryTest {
 protected:
  // A link takes longer for the object than a relay needs to hear of it: kA is sent the bytes, and kB and kC wait.
  PassedOnTest() {
    directory_.set_view(now_, {kHome, kA, kB, kC}, out_);
    inline_ = true;
    rate_ = 1e6;
    put(kHome, 5);
    want(kA);
    want(kB);
    want(kC);
  }
};

TEST_F(PassedOnTest, TheThirdReaderIsServedByTheFirst) {
  EXPECT_FALSE(sent_to<InlineObject>(kC));
  const auto pass = sent_to<PassOn>(kA);
  ASSERT_TRUE(pass);
  EXPECT_EQ(pass->receiver, kC);
  EXPECT_EQ(pass->request, request_);
}

TEST_F(PassedOnTest, WhenTheRelayDiesTheHomeServesWhoWaitedForIt) {
  out_ = {};
  directory_.set_view(now_ + Duration::s(1), {kHome, kB, kC}, out_);
  const auto bytes = sent_to<InlineObject>(kC);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->request, request_);
  EXPECT_FALSE(sent_to<InlineObject>(kB));
}

TEST_F(PassedOnTest, WhenTheRelayHasNothingTheHomeServesWhoWaitedForIt) {
  out_ = {};
  directory_.on_withdraw(now_ + Duration::s(1), kA, {kId, 5}, out_);
  EXPECT_TRUE(sent_to<InlineObject>(kC));
}

TEST_F(PassedOnTest, WhoAsksAgainIsServedByTheHomeItself) {
  want(kC);
  const auto bytes = sent_to<InlineObject>(kC);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->request, request_);
}

TEST_F(PassedOnTest, WhoHasSaidThatItHasTheBytesNeedsNothingWhenTheRelayDies) {
  Announce complete;
  complete.facts = {{kId, 5, 1000, "", CopyState::kComplete, true, false, 1, 0}};
  directory_.on_announce(now_, kC, complete, out_);
  out_ = {};
  directory_.set_view(now_ + Duration::s(1), {kHome, kB, kC}, out_);
  EXPECT_FALSE(sent_to<InlineObject>(kC));
}

TEST_F(PassedOnTest, WhoDoesNotWantItAnyMoreIsNoHolder) {
  out_ = {};
  directory_.on_unwant(now_, kC, {kId, WantMode::kFetch}, out_);
  directory_.on_withdraw(now_ + Duration::s(1), kA, {kId, 5}, out_);
  EXPECT_FALSE(sent_to<InlineObject>(kC));
}

TEST_F(PassedOnTest, ADeleteWaitsForWhoIsStillBeingServed) {
  out_ = {};
  directory_.on_delete(now_, kB, {++request_, kId}, out_);
  EXPECT_TRUE(sent_to<Drop>(kC));
  for (const NodeRef& node : {kHome, kA, kB}) directory_.on_withdraw(now_, node, {kId, 5}, out_);
  EXPECT_FALSE(sent_to<DeleteReply>(kB));
  directory_.on_withdraw(now_, kC, {kId, 5}, out_);
  EXPECT_TRUE(sent_to<DeleteReply>(kB));
}

TEST_F(DirectoryTest, ANodeThatWaitsInTwoWaysIsRememberedWhenOneOfThemFails) {
  want(kA);
  want(kA, true, WantMode::kNotify);
  out_ = {};
  directory_.fail_waiters(kId, Code::kLost, "gone", out_);
  EXPECT_TRUE(sent_to<WantFailed>(kA)) << "the get, which does not wait for what is lost";
  directory_.check_invariants();
  out_ = {};
  directory_.fail_waiters(kId, Code::kDeleted, "", out_);
  EXPECT_TRUE(sent_to<WantFailed>(kA)) << "the other one";
  EXPECT_EQ(directory_.size(), 0u);
}

}  // namespace
}  // namespace hoplite
