// What was deleted, so that it stays deleted.
//
// A stone says: this version of the id, and every older one, is gone. A named id may be put again at once, under a newer
// version, which the stone does not cover; a minted id is never used again.
//
// Everybody alive has dropped its copy when a delete is answered. So a stone is *needed* for two kinds of nodes only: live
// ones that have not confirmed the drop (`hold`), and members that are away, if they left after the object's generation
// (`set_horizon`, core/directory/absences.h). Needed ones stay. The others are kept for a while, in bounded number, so that who asks
// hears "deleted" instead of "nobody has put it".
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/node_id.h"
#include "base/time.h"
#include "base/version.h"
#include "hoplite/object_id.h"

namespace hoplite {

class Tombstones {
 public:
  struct Stone {
    Version version = 0;  // 0: any, of a minted id
    Time until;           // then it is forgotten, unless it is needed
    NodeId home;          // that is told of it
    bool held = false;
    bool kept = false;  // its time is over, and it is needed
  };

  explicit Tombstones(std::size_t max) : max_(max) {}

  // Of two stones of an id, the newer version and the later time count. Named ids are buried under a version.
  void bury(const ObjectId& id, Version version, Time until, NodeId home);
  bool contains(const ObjectId& id) const { return stones_.contains(id); }
  // Whether these bytes are gone.
  bool covers(const ObjectId& id, Version version) const;
  // 0 if there is none.
  Version version_of(const ObjectId& id) const;
  const Stone& at(const ObjectId& id) const { return stones_.at(id); }
  std::set<ObjectId> of_home(NodeId home) const;
  std::size_t size() const { return stones_.size(); }
  std::size_t kept() const { return kept_.size(); }

  // Somebody alive has yet to confirm the drop.
  void hold(const ObjectId& id);
  void let_go(const ObjectId& id);
  // Who is away has nothing that is newer than this generation; 0: nobody is away.
  void set_horizon(std::uint64_t generation);
  void expire(Time now);

  // The live members are `alive` now; of them, `joined` were not before. `died` were.
  void set_view(const std::vector<NodeRef>& alive, const std::vector<NodeId>& joined, const std::vector<NodeId>& died);

  void check_invariants() const;

 private:
  struct Expiry {
    Time until;
    ObjectId id;
  };
  using Stones = std::map<ObjectId, Stone>;

  bool is_needed(const Stone& stone) const;
  void drop_oldest();
  void keep_if_needed(Stones::iterator it);
  void unkeep(const ObjectId& id, Stone& stone);
  void forget_home(const ObjectId& id, NodeId home);

  std::size_t max_;
  std::uint64_t horizon_ = 0;
  Stones stones_;
  std::map<NodeId, std::set<ObjectId>> by_home_;
  std::deque<Expiry> order_;                           // roughly by time: stones are set with the same life
  std::set<std::pair<std::uint64_t, ObjectId>> kept_;  // by generation
};

}  // namespace hoplite
