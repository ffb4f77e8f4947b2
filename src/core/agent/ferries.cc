#include "core/agent/ferries.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace hoplite {

void Ferries::order(const ObjectId& id) {
  until_[id] = out_.now() + limits_.ferry_for();
  records_.touch(id);
  if (!timer_) set_timer();
}

void Ferries::end(const ObjectId& id) {
  if (until_.erase(id) > 0) records_.touch(id);
}

void Ferries::on_timer() {
  std::vector<ObjectId> over;
  for (const auto& [id, until] : until_)
    if (until <= out_.now()) over.push_back(id);
  for (const ObjectId& id : over) end(id);
  set_timer();
}

void Ferries::set_timer() {
  Time next = Time::never();
  for (const auto& [id, until] : until_) next = std::min(next, until);
  timers_.set(timer_, next, timer::Ferry{});
}

void Ferries::check_invariants() const {
  CHECK(until_.size() <= limits_.max_ferries, until_.size());
  for (const auto& [id, until] : until_) CHECK(records_.contains(id), id);
  CHECK(until_.empty() || timer_.has_value(), until_.size());
}

}  // namespace hoplite
