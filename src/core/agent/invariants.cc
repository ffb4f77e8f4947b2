// What the parts of the agent must agree on between steps.
#include <algorithm>

#include "base/check.h"
#include "core/agent/impl.h"

namespace hoplite {

void Agent::Impl::check_invariants() const {
  CHECK(is_settled());
  table_.check_invariants();
  clients_.check_invariants();
  errands_.check_invariants();
  room_.check_invariants();
  pulls_.check_invariants();
  serves_.check_invariants();
  slots_.check_invariants();
  coordinator_.check_invariants();
  std::size_t known = 0;
  for (const auto& [home, ids] : by_home_) {
    for (const ObjectId& id : ids) {
      const Record* r = find(id);
      CHECK(r != nullptr && r->home.id == home, id.to_string(), home.to_string());
      check_record(*r);
    }
    known += ids.size();
  }
  CHECK(known == records_.size(), known, records_.size());
}

void Agent::Impl::check_record(const Record& r) const {
  const std::string id = r.id.to_string();
  CHECK(!r.unused(), id);
  CHECK(!is_unwanted(r), id, r.copy, static_cast<int>(r.fetch));
  CHECK((r.fetch == Fetch::kNeedsRoom) == (room_.is_waiting(Room::Fetch{r.id})), id, static_cast<int>(r.fetch));
  CHECK(r.fetch != Fetch::kAsking || r.want_timer, id);
  CHECK(!r.want_timer || r.fetch == Fetch::kAsking, id, static_cast<int>(r.fetch));
  CHECK(r.want_request == 0 || open_requests_.contains(r.want_request), id, r.want_request);
  CHECK(!r.wants_notice() || r.notify_timer, id, r.waits.size(), r.watchers.size());
  const Copy* copy = current_copy(r);
  CHECK(!r.put || r.put->copy == r.copy, id, r.copy);
  CHECK(!r.put || r.put->retry || (r.put->claimed && !r.put->sealing), id, r.put->request);
  CHECK(r.fetch != Fetch::kPulling || copy != nullptr, id);
  if (copy == nullptr) return;
  CHECK(copy->id == r.id && copy->is_current(), id, copy->key, static_cast<int>(copy->life()));
  CHECK((copy->life() == CopyLife::kWriting) == r.put.has_value(), id, static_cast<int>(copy->life()));
  CHECK(r.gets.empty() || !copy->is_complete(), id, r.gets.size());
  CHECK(copy->life() != CopyLife::kFetching || r.fetch == Fetch::kAsking || r.fetch == Fetch::kPulling, id,
        static_cast<int>(r.fetch));
  for (std::uint32_t i = 0; i < copy->slices.size() && !copy->is_complete(); ++i) {
    const CopySlice& slice = copy->slices[i];
    const bool arrives = !slice.combined && (slice.state == SliceState::kAsked || slice.state == SliceState::kAttached);
    CHECK(arrives == pulls_.is_running(copy->key, i), id, i, static_cast<int>(slice.state));
    CHECK(!arrives || pulls_.priority(copy->key, i) == demand(*copy, i), id, i);
  }
}

}  // namespace hoplite
