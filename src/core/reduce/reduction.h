// One reduce, as its coordinator sees it: which sources have arrived, who combines what, and what has to be mended.
//
// Sources that arrive together on one node form a group. Every slice of the target has a tree of slots, one for each group,
// which grows as groups arrive: a new slot takes outputs that are there, so early sources stream at once and the last one
// sits at the root; those that arrive together follow the order of node ids, the coordinator's own last. Rules, by number in
// the code:
//   1. The first `count` sources that arrive are used, each in exactly one group; later ones are spares. One set for all slices.
//   2. A slot's output has a version. When anything below a slot changes, the slot and all above it get new versions; the
//      target's version is that of its roots, and the same for all slices. So no output ever mixes two sets of sources.
//   3. A dead group is replaced by a spare in its place; without one its children move up, and the next arrival sits on top.
//   4. Who has no room for an output is a leaf: its sources are pulled as they are.
//   5. It is committed once, when every root is done with the current version; from then on nothing changes any more.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/limits.h"
#include "base/random.h"
#include "core/reduce/cost.h"
#include "protocol/messages.h"
#include "protocol/metadata.h"
#include "protocol/names.h"

namespace hoplite {

class Reduction {
 public:
  struct Options {
    NodeRef self;
    ReduceSpec spec;
    LinkCosts links;
    Limits limits;
    std::uint64_t seed = 0;
    std::uint64_t generation = 0;  // of the target's versions
  };
  struct Outgoing {
    NodeRef to;
    Message message;  // SlotOrder or SlotEnd
  };
  struct Output {
    std::vector<Outgoing> sends;
    std::vector<ObjectId> watch;  // look for these sources, (again)
  };
  struct Arrival {
    ObjectId id;
    NodeRef node;
    Version version = 0;
    std::uint64_t size = 0;
    std::string meta;
  };

  explicit Reduction(Options options);

  void start(Output& out);
  // Why not, or nothing. The ids have been checked by themselves (protocol/reduce_check.h).
  std::optional<Error> add_sources(const std::vector<ObjectId>& ids, const std::vector<std::string>& names,
                                   Output& out);
  void on_arrival(Time now, const Arrival& arrival, Output& out);
  // It is lost or deleted, as far as its home knows, or will never be: then `why` says more.
  void on_missing(const ObjectId& id, Code code, const std::string& why, Output& out);
  void on_update(NodeRef from, const SlotUpdate& update, Output& out);
  void on_dead(NodeRef node, Output& out);
  // Messages from it may have been lost: how is what it was ordered?
  void ask_again(NodeRef node);
  void tick(Time now, Output& out);
  Time next_wakeup() const;
  // Ends it, if it has not ended.
  void fail(Code code, std::string text, Output& out);

  ReducePhase phase() const { return phase_; }
  // Failed: why.
  const Error& error() const { return error_; }
  // Committed, and every root has said so (or is dead).
  bool over() const { return phase_ == ReducePhase::kFailed || (phase_ == ReducePhase::kDone && uncommitted_.empty()); }
  const ReduceSpec& spec() const { return spec_; }
  // What the target is in this attempt; 0 = nobody makes it yet.
  Version target_version() const { return target_version_; }
  // Without `bytes`.
  ReduceReport report() const;
  std::string awaited() const;  // in words

  void check_invariants() const;

 private:
  using SlotNumber = std::uint64_t;
  struct Source {
    SourceState state = SourceState::kAwaited;
    bool arrived = false;  // known to be on `node`
    NodeRef node;
    Version version = 0;
    std::uint32_t order = 0;
    Code code = Code::kOk;  // it is missing
    std::string why;
  };
  struct Group {
    NodeRef node;
    std::vector<ObjectId> own;
    bool leaf_only = false;  // rule 4
  };
  struct Slot {
    std::uint32_t group = 0;
    std::uint32_t slice = 0;
    SlotNumber parent = 0;  // 0 = none
    std::vector<SlotNumber> children;
    SlotRole role = SlotRole::kInner;
    Version version = 0;
    bool ordered = false;
    bool answered = false;
    bool done = false;
  };

  bool complete() const { return used_ == spec_.count; }
  bool running() const { return phase_ == ReducePhase::kWaiting || phase_ == ReducePhase::kRunning; }
  bool mismatch(const Arrival& arrival, const Metadata& meta, Output& out);
  void check_possible(Output& out);
  void learn_name(std::string_view name);
  std::string described(const ObjectId& id) const;

  // --- growing
  void plan_arrivals(Output& out);
  void choose_shape(std::span<const NodeId> ring);
  std::uint32_t new_group(NodeRef node, std::vector<ObjectId> own);
  void add_to_tree(std::uint32_t slice, std::uint32_t group);
  void join_tops();
  void flatten_stars();

  // --- mending
  void lose_source(const ObjectId& id, Output& out);
  void remove_group(std::uint32_t group, Output& out);
  std::optional<std::uint32_t> group_of_spares(std::size_t at_most);
  void replace_slot(SlotNumber number, std::optional<std::uint32_t> by);
  void make_leaf(std::uint32_t group);
  void refused(SlotNumber number, const SlotUpdate& update, Output& out);
  void settle(Output& out);
  void end_slot(SlotNumber number, Output& out);

  // --- orders
  SlotRole role_of(const Slot& slot) const;
  void mark_dirty(SlotNumber number);
  void issue(Output& out);
  void order(SlotNumber number, Output& out);
  std::vector<SlotInput> outputs_of(SlotNumber number) const;
  void commit_if_done(Output& out);
  std::vector<SlotNumber> tops(std::uint32_t slice) const;
  void check_slot(SlotNumber number, const Slot& slot) const;

  const NodeRef self_;
  ReduceSpec spec_;
  const LinkCosts links_;
  const Limits limits_;
  const bool whole_;  // the operator needs whole contributions: nothing is combined on the way
  Random random_;
  const std::uint64_t generation_;
  std::uint64_t next_target_;  // the random part of the target's next version: no two attempts have the same

  ReducePhase phase_ = ReducePhase::kWaiting;
  Error error_;
  std::map<ObjectId, Source> sources_;
  Names names_;                         // of the target and the sources
  std::vector<ObjectId> source_order_;  // as they were given
  std::deque<ObjectId> arrived_;        // and not planned
  std::deque<ObjectId> spares_;
  std::uint32_t used_ = 0;
  std::uint32_t arrivals_ = 0;
  std::uint32_t attempts_ = 0;
  Time gather_until_ = Time::never();
  Time retry_at_ = Time::never();

  bool described_ = false;  // size and meta are known, from the first arrival
  ObjectId first_;          // that arrival
  std::uint64_t source_size_ = 0;
  std::string meta_;

  std::uint32_t slices_ = 0;  // 0 = no tree yet
  std::vector<std::vector<std::uint32_t>> shape_;
  std::map<std::uint32_t, Group> groups_;
  std::map<SlotNumber, Slot> slots_;
  std::vector<std::vector<SlotNumber>> in_order_;  // of each slice
  std::set<SlotNumber> dirty_;
  Version target_version_ = 0;
  std::map<SlotNumber, NodeRef> uncommitted_;  // roots that have not confirmed the commit
  std::uint32_t next_group_ = 0;
  SlotNumber next_slot_ = 1;
};

}  // namespace hoplite
