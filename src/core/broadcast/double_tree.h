// Who should send which half of an object to whom, for very many receivers: two trees, kept by the object's home.
//
// A chain uses every link fully, but its last receiver waits for as many hops as there are others. A binary tree has few
// hops, but its inner nodes send everything twice and its leaves nothing. Here the object is cut into two slices with a tree
// each, and every receiver is inner in one tree, where it sends a half to two others, and a leaf in the other: everybody
// sends as much as it receives, and nobody is more than about 2 log2(n) hops away.
//
// Receivers come one by one, and those who come as leaves would take the places that inner nodes need to grow the tree. So
// a leaf is told to ask again after `patience`, while it gets the other half; by then the crowd has come. Then it takes the
// deepest free place, but never the last one: that is for an inner node. Whoever has waited for long is attached
// somewhere, at a price.
//
// The plan is advice, as BroadcastPlan is: a parent is always less deep in the plan than its children, so what is proposed
// has no cycles, and the parents check it by their real watermarks.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "base/node_id.h"
#include "base/time.h"

namespace hoplite {

class DoubleTree {
 public:
  static constexpr std::uint32_t kSlices = 2;

  struct Receiver {
    NodeId node;
    std::uint32_t slice = 0;
    bool keeps_place = false;          // it has bytes of the slice, or children: only somebody above it can help
    std::vector<NodeId> avoid;         // they refused or fell silent
    std::vector<NodeId> cut_off = {};  // it has no path to them
  };

  explicit DoubleTree(Duration patience) : patience_(patience) {}

  // It has all bytes, or they are being written there.
  void add_root(NodeId node);
  // The parent for one slice, and the edge is recorded. nullopt: nobody can, or nobody should yet.
  std::optional<NodeId> choose(Time now, const Receiver& receiver);
  // It has no bytes of this object (any more). Its children are without a parent until they ask.
  void remove(NodeId node);

  NodeId parent_of(NodeId node, std::uint32_t slice) const;  // nil if it has none
  std::uint32_t depth_of(NodeId node, std::uint32_t slice) const;
  std::uint32_t children_of(NodeId node) const;  // in both trees
  std::size_t size() const { return holders_.size(); }

  void check_invariants() const;

 private:
  struct Place {           // in one of the trees
    bool counted = false;  // among its parent's children
    NodeId parent;         // nil: not attached
    std::uint32_t depth = 0;
    std::uint32_t children = 0;  // those that it serves, as far as we know
    std::set<NodeId> below;      // all whose parent it is
  };
  struct Holder {
    bool root = false;
    bool suspect = false;          // somebody could not get bytes from it
    std::optional<Time> asked_at;  // first
    std::uint32_t inner_in = 0;
    std::array<Place, kSlices> places;
  };
  // What one more child would be beyond its share, how deep it is, who it is: the best parent comes first.
  using Offer = std::tuple<std::uint32_t, std::uint32_t, NodeId>;

  Holder& join(NodeId node);
  std::uint32_t excess(const Holder& holder, std::uint32_t slice) const;
  bool offered(const Holder& holder, std::uint32_t slice) const;
  void list(NodeId node, const Holder& holder);
  void unlist(NodeId node, const Holder& holder);
  void stop_counting(Place& place, std::uint32_t slice);
  void unlink(NodeId node, Place& place, std::uint32_t slice);
  void complain(const std::vector<NodeId>& avoid);
  static bool is_welcome(const Receiver& receiver, NodeId parent);
  std::optional<Offer> best_offer(const Receiver& receiver, std::uint32_t below_depth) const;
  std::optional<Offer> deepest_free(const Receiver& receiver) const;

  Duration patience_;
  std::map<NodeId, Holder> holders_;
  std::array<std::set<Offer>, kSlices> offers_;
  std::uint32_t joined_ = 0;
};

}  // namespace hoplite
