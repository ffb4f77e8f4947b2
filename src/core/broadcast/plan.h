// Who should send an object to whom: one plan for each object (or slice) that is being pulled, kept by its home.
//
// A receiver is given the parent whose choice finishes it earliest, by a simple forecast:
//
//     finish(receiver below h) = max(finish(h), now + bytes * load(h) / rate(h, receiver)) + hop(h, receiver)
//
// where load(h) counts h's children including the new one, weighted up if h was measured to be slow, and finish(h) lies in
// the past for complete holders. Simultaneous receivers of a large object thus form a chain, because one more hop costs
// less than sharing a sender; small objects and deep chains become trees, because there it is the other way round.
//
// Cost: holders are kept by load, ordered by finish time, so a choice looks at two candidates for each load, a complete one
// and one that still receives: O(max_children + log n) for n holders, plus the avoided ones. (The earliest of each load is the
// best one if links are alike; where they differ, it is a good one.)
//
// The plan is advice. Safety (no cycles) is the parents' business, who know the real watermarks; the plan only avoids
// proposing what they would refuse: a receiver that goes on with a partial copy is sent to holders that finish before it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "base/link_cost.h"
#include "base/node_id.h"
#include "base/time.h"

namespace hoplite {

class BroadcastPlan {
 public:
  struct Receiver {
    NodeId node;
    std::uint64_t have_bytes = 0;
    bool has_children = false;
    std::vector<NodeId> avoid;         // they refused or fell silent
    std::vector<NodeId> cut_off = {};  // it has no path to them, which says nothing about them
  };

  struct Options {
    std::uint64_t bytes = 0;
    LinkCosts links;
    std::uint32_t max_children = 16;
  };
  explicit BroadcastPlan(const Options& options);

  // A holder that needs no parent: complete, or being written there. Also a receiver that has finished.
  void add_root(NodeId node);
  // The parent for `receiver`, and the edge is recorded; nullopt if nobody can serve it now.
  std::optional<NodeId> choose(Time now, const Receiver& receiver);
  // It has no bytes of this object (any more). Its children are without a parent until they ask.
  void remove(NodeId node);
  // What the transfer from its parent to `child` achieved.
  void measured(NodeId child, std::uint64_t bytes_per_second);

  NodeId parent_of(NodeId node) const;  // nil if it has none
  std::size_t children_of(NodeId node) const;
  std::size_t size() const { return holders_.size(); }

  void check_invariants() const;

 private:
  struct Holder {
    bool root = false;
    bool suspect = false;        // somebody could not get bytes from it; it is the last resort until it finishes
    Time finish;                 // as forecast when it was first attached: later than its parent's, always
    std::uint32_t children = 0;  // those that it serves, as far as we know
    std::set<NodeId> below;      // all whose parent it is
    NodeId parent;
    Time attached;         // to its parent
    Time sent;             // when it began to send to the child that has everything, the last such one; Time{}: to none
    bool counted = false;  // among its parent's children
    double slowness = 0;   // as a sender: how many times longer it takes than its links promise; 0 = not measured
  };

  // Complete holders all finish alike, at Time{}: first comes the one whose link has rested longest.
  using Offer = std::tuple<Time, Time, NodeId>;  // finish, sent
  static Offer offer(NodeId node, const Holder& holder) { return {holder.finish, holder.sent, node}; }

  Time forecast(Time now, const Offer& offer, std::uint32_t load, NodeId receiver, double missing) const;
  std::uint32_t load_class(const Holder& holder) const;
  bool offered(const Holder& holder) const { return holder.root || !holder.parent.is_nil(); }
  void list(NodeId node, Holder& holder);
  void unlist(NodeId node, const Holder& holder);
  void unlink(NodeId node, Holder& child);
  void stop_counting(Holder& child);
  void complain(const std::vector<NodeId>& avoid);

  std::uint64_t bytes_;
  LinkCosts links_;
  std::uint32_t max_load_;
  std::map<NodeId, Holder> holders_;
  std::vector<std::set<Offer>> by_load_;  // offered holders; the last class also has the suspects
};

}  // namespace hoplite
