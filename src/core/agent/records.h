// The ids that this node knows something about or wants something of: their homes, and the copies that it answers for. What
// it wants of them is known to the parts that want it: Puts, Gets, Fetches, Notices.
//
// Whoever changes something about an object notes it here; what follows is seen to at the end of the step.
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/directory/homes.h"
#include "core/directory/places.h"
#include "core/objects/object_table.h"

namespace hoplite {

struct Record {
  ObjectId id;
  NodeRef home;
  CopyKey copy = 0;  // the current copy, 0 = none
};

class Records {
 public:
  Records(ObjectTable& table, std::vector<NodeRef> alive) : table_(table), alive_(std::move(alive)) {}

  // The one that there is, or a new one.
  Record& add(const ObjectId& id);
  Record* find(const ObjectId& id);
  const Record* find(const ObjectId& id) const { return const_cast<Records*>(this)->find(id); }
  Record& at(const ObjectId& id);
  const Record& at(const ObjectId& id) const { return const_cast<Records*>(this)->at(id); }
  bool contains(const ObjectId& id) const { return records_.contains(id); }
  void erase(const ObjectId& id);
  std::size_t size() const { return records_.size(); }

  // The current copy; nullptr if there is none.
  Copy* copy_of(const ObjectId& id);
  const Copy* copy_of(const ObjectId& id) const { return const_cast<Records*>(this)->copy_of(id); }
  Copy* copy_of(const Record& record) { return record.copy == 0 ? nullptr : &table_.at(record.copy); }
  const Copy* copy_of(const Record& record) const { return record.copy == 0 ? nullptr : &table_.at(record.copy); }

  // --- homes
  // Live nodes, sorted. Records that have another home then are yet to be moved.
  void set_alive(std::vector<NodeRef> alive) { alive_ = std::move(alive); }
  const std::vector<NodeRef>& alive() const { return alive_; }
  // Of any id.
  NodeRef home(const ObjectId& id) const { return home_of(id, alive_); }
  void move(Record& record, NodeRef home);
  const PlacedIds& of_home(NodeId home) const;
  const std::map<NodeId, PlacedIds>& by_home() const { return by_home_; }

  // --- notes
  // It may be wanted, unwanted or unused now, or wanted at another priority.
  void touch(const ObjectId& id) { touched_.insert(id); }
  // Others may pull it from here now.
  void can_be_pulled(const ObjectId& id) { servable_.insert(id); }
  std::set<ObjectId> take_touched() { return std::exchange(touched_, {}); }
  std::set<ObjectId> take_servable() { return std::exchange(servable_, {}); }
  bool has_notes() const { return !touched_.empty() || !servable_.empty(); }

  void check_invariants() const;

 private:
  void leave_home(const Record& record);

  ObjectTable& table_;
  std::vector<NodeRef> alive_;
  std::map<ObjectId, Record> records_;  // not hashed: to hash a million anew stops everything
  std::map<NodeId, PlacedIds> by_home_;
  std::set<ObjectId> touched_;
  std::set<ObjectId> servable_;
};

}  // namespace hoplite
