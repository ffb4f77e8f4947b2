// Compares what clients see with the ledger, at the moment it happens.
//
// Some promises are made only while nodes can reach each other: design.md section 3 says what a true partition may do. So
// the judge is told of disturbances (pauses, partitions, silent machines), and of a disturbed stretch it demands only what
// holds always.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/ledger.h"
#include "sim/world.h"

namespace hoplite::sim {

struct JudgeOptions {
  Duration settle;                       // how long after a disturbance its consequences may show
  Duration deadline_slack;               // how much later than its deadline a request may time out
  Duration clock_skew = Duration::s(5);  // more than wall clocks differ by
};

class Judge {
 public:
  Judge(World& world, Ledger& ledger, const JudgeOptions& options)
      : world_(world), ledger_(ledger), options_(options) {}

  // From now on, or up to now, nodes may hold each other for dead.
  void disturbed(bool on);
  // The consequences of earlier disturbances have been waited for.
  void settled();
  // Whether nothing has disturbed the cluster from `since` (less the time to settle) until now.
  bool calm_since(Time since) const;

  // --- at the fitting moments
  std::optional<PutNumber> view_shown(RequestNumber request, Held& held);
  void growth_shown(Held& held);
  void follow_began(RequestNumber request);
  void follow_ended(RequestNumber request, Version version);
  void look_again(const Held& held);
  void request_failed(RequestNumber request);
  void put_done(PutNumber put);
  void wait_done(RequestNumber request);
  void reported(RequestNumber request);
  void wrong_answer(RequestNumber request, const std::string& what);
  void transfer_began(const Transfer& transfer);
  void copies_go(NodeIndex node);  // it has died, or is about to
  void watch_unpinned();           // after each step
  void renamed(NodeIndex node, NodeRef before);

  // --- the truth, for those who expect something
  // Ids with a complete copy on a running node (other than `except`).
  std::set<ObjectId> available(NodeIndex except = kNobody) const;
  // A request in words.
  std::string describe(RequestNumber request) const;
  std::string object(const ObjectId& id) const { return world_.trace().names().object(id); }

 private:
  bool bytes_match(const Held& held, PutNumber put) const;
  void narrow(Held& held);
  void reduced_shown(const Held& held, PutNumber put);
  bool coordinator_may_move(const ObjectId& target) const;
  bool reduce_may_fail(PutNumber put, Code code, int depth = 0) const;
  void check_deletes(const RequestRecord& request, PutNumber put);
  void check_superseded(const RequestRecord& request, PutNumber put);
  void check_newest(const RequestRecord& request, PutNumber put);
  void check_free_again(RequestNumber number, const ObjectRecord& record);
  void check_lost(RequestNumber number, const ObjectRecord& object);
  void check_times(RequestNumber number);
  bool perhaps_withdrawn(const ObjectRecord& record, Time since) const;
  std::map<ObjectId, bool> complete_copies(NodeIndex except) const;

  World& world_;
  Ledger& ledger_;
  JudgeOptions options_;
  int disturbances_ = 0;
  bool settled_ = false;
  std::optional<Time> last_disturbance_;
  // A death took the copy that was to be kept. Until the home knows and pins another, the others may be evicted.
  std::set<ObjectId> unpinned_;
};

}  // namespace hoplite::sim
