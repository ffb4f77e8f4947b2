#include "core/agent/records.h"

#include "base/check.h"

namespace hoplite {

Record& Records::add(const ObjectId& id) {
  const auto [it, fresh] = records_.try_emplace(id);
  Record& record = it->second;
  if (fresh) {
    record = {id, home(id), 0};
    by_home_[record.home.id].insert(id);
    touch(id);
  }
  return record;
}

Record* Records::find(const ObjectId& id) {
  const auto it = records_.find(id);
  return it == records_.end() ? nullptr : &it->second;
}

Record& Records::at(const ObjectId& id) {
  Record* record = find(id);
  CHECK(record != nullptr, id);
  return *record;
}

void Records::erase(const ObjectId& id) {
  const auto it = records_.find(id);
  CHECK(it != records_.end() && it->second.copy == 0, id);
  leave_home(it->second);
  records_.erase(it);
}

Copy* Records::copy_of(const ObjectId& id) {
  const Record* record = find(id);
  return record == nullptr ? nullptr : copy_of(*record);
}

void Records::move(Record& record, NodeRef home) {
  leave_home(record);
  record.home = home;
  by_home_[home.id].insert(record.id);
}

void Records::leave_home(const Record& record) {
  const auto ids = by_home_.find(record.home.id);
  CHECK(ids != by_home_.end() && ids->second.erase(record.id) == 1, record.id, record.home);
  if (ids->second.empty()) by_home_.erase(ids);
}

const PlacedIds& Records::of_home(NodeId home) const {
  static const PlacedIds kNone;
  const auto it = by_home_.find(home);
  return it == by_home_.end() ? kNone : it->second;
}

void Records::check_invariants() const {
  std::size_t known = 0;
  for (const auto& [home, ids] : by_home_) {
    CHECK(!ids.empty(), home);
    for (const ObjectId& id : ids) {
      const Record& record = at(id);
      CHECK(record.home.id == home, id, home);
      const Copy* copy = copy_of(record);
      CHECK(copy == nullptr || (copy->id == id && copy->is_current()), id, record.copy);
    }
    known += ids.size();
  }
  CHECK(known == records_.size(), known, records_.size());
}

}  // namespace hoplite
