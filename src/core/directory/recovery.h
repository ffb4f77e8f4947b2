// How a home gets to know what it should know.
//
// After a death (or at the start, or after it was given up itself) a node is home of ids that it has never heard of, while
// others may hold copies of them. It is *settled* for an id when every live member has told it all it owns under the
// present view. Recovery asks them, on demand, in rounds: RecoverQuery carries the digest of the view; a member with the same view
// answers with its facts for this home and RecoverReply; one with another view says so, and is asked again after the
// views have been exchanged. A change of the view starts the round anew.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/limits.h"
#include "protocol/messages.h"

namespace hoplite {

class Recovery {
 public:
  struct Ask {
    NodeRef to;
    RecoverQuery query;
  };

  Recovery(NodeRef self, const Limits& limits) : self_(self), limits_(limits) {}

  void set_view(Time now, const std::vector<NodeRef>& alive, const std::vector<NodeRef>& died);
  void reset(NodeRef self);
  void hold_until(Time when) { hold_until_ = when; }

  bool settled(const ObjectId& id) const;
  bool holding(Time now) const { return alive_.size() <= 1 && now < hold_until_; }
  // An id is not settled, and somebody waits for it (urgent) or facts about it have come.
  void demand(Time now, bool urgent);
  bool running() const { return running_; }

  // Facts of `round` arrived from `from`.
  void count_facts(NodeRef from, std::uint64_t round, std::size_t facts);
  void on_reply(Time now, NodeRef from, const RecoverReply& reply);

  // Queries that are due. True if the round ended now: everything is settled.
  bool advance(Time now, std::vector<Ask>& asks);
  Time next_wakeup() const;

 private:
  struct Pending {
    NodeRef ref;
    std::uint64_t round = 0;  // of the last query to this member; 0 = not asked yet
    std::size_t facts = 0;    // arrived for it
    Time ask_at;
  };

  void start(Time ask_at);

  NodeRef self_;
  Limits limits_;
  std::vector<NodeRef> alive_;
  bool settled_once_ = false;
  bool own_ids_settled_ = true;     // nobody knows our ids before we do, until we are given up
  std::vector<NodeId> died_since_;  // since everything was settled
  bool running_ = false;
  std::map<NodeId, Pending> pending_;  // members that have not answered
  std::uint64_t next_round_ = 1;
  Time hold_until_;
};

}  // namespace hoplite
