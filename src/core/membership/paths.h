// Which members this node cannot reach itself, though they live, and who reaches them on its behalf.
//
// "Unreachable" is a fact about a pair of nodes. It says nothing about the member, which others may reach: a firewall refuses
// one pair, a switch drops its packets. It holds until a message went there and was answered; that is tried now and then.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "base/node_id.h"
#include "base/time.h"

namespace hoplite {

class Paths {
 public:
  // `try_every`: how long to leave a blocked path alone.
  explicit Paths(Duration try_every) : try_every_(try_every) {}

  // --- what happened. Each returns whether messages go another way from now on than before.
  // A dial failed, or others had an answer where we had none. True if the path was open.
  bool block(Time now, NodeId peer);
  // It answered to us. True if the path was blocked.
  bool open(NodeId peer) { return blocked_.erase(peer) > 0; }
  // `helper` had an answer from it for us. True if another one, or nobody, was known to have that.
  bool reached(Time now, NodeId peer, NodeId helper);
  // `helper` cannot reach it.
  void failed(NodeId peer, NodeId helper);
  // It is dead: nobody needs a way to it, or by way of it.
  void forget(NodeId node);
  void clear() { blocked_.clear(); }

  // --- what is known
  bool empty() const { return blocked_.empty(); }
  bool is_blocked(NodeId peer) const { return blocked_.contains(peer); }
  // Who reached it lately; nil if nobody is known to.
  NodeId way_to(NodeId peer) const;
  struct Blocked {
    NodeId peer;
    NodeId by_way_of;
  };
  // At most so many.
  std::vector<Blocked> blocked(std::size_t most) const;

  // Those that are to be tried again now; each is left alone for a while after that.
  std::vector<NodeId> take_due(Time now);
  Time next_due() const;

 private:
  struct Path {
    Time due;        // when it is to be tried again
    NodeId helper;   // nil: none is known
    Time confirmed;  // when the helper had an answer last
  };
  Duration try_every_;
  std::map<NodeId, Path> blocked_;
};

}  // namespace hoplite
