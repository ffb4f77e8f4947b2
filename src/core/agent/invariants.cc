// What the parts of the agent must agree on between steps.
#include <algorithm>

#include "base/check.h"
#include "core/agent/impl.h"

namespace hoplite {

void Agent::Impl::check_invariants() const {
  CHECK(is_settled());
  membership_.check_invariants();
  out_.check_invariants();
  directory_.check_invariants();
  table_.check_invariants();
  records_.check_invariants();
  clients_.check_invariants();
  errands_.check_invariants();
  room_.check_invariants();
  puts_.check_invariants();
  gets_.check_invariants();
  fetches_.check_invariants();
  notices_.check_invariants();
  ferries_.check_invariants();
  pulls_.check_invariants();
  serves_.check_invariants();
  slots_.check_invariants();
  coordinator_.check_invariants();
  for (const auto& [home, ids] : records_.by_home())
    for (const ObjectId& id : ids) check_record(records_.at(id));
}

void Agent::Impl::check_record(const Record& r) const {
  const Fetches::State state = fetches_.state(r.id);
  CHECK(!is_unused(r), r.id);
  CHECK(!is_unwanted(r), r.id, r.copy, state);
  const Copy* copy = records_.copy_of(r);
  if (copy == nullptr) return;
  CHECK((copy->life() == CopyLife::kWriting) == puts_.contains(r.id), r.id, copy->life());
  CHECK(!copy->is_complete() || fetches_.is_idle(r.id), r.id, state);
  CHECK(copy->life() != CopyLife::kFetching || fetches_.is_asking(r.id) ||
            fetches_.state(r.id) == Fetches::State::kPulling,
        r.id, state);
  for (std::uint32_t i = 0; i < copy->slices.size() && !copy->is_complete(); ++i) {
    const CopySlice& slice = copy->slices[i];
    const bool arrives = !slice.combined && (slice.state == SliceState::kAsked || slice.state == SliceState::kAttached);
    CHECK(arrives == pulls_.is_running(copy->key, i), r.id, i, slice.state);
    CHECK(!arrives || pulls_.priority(copy->key, i) == demand(*copy, i), r.id, i);
  }
}

}  // namespace hoplite
