// What the parts of the agent must agree on between steps.
#include <algorithm>

#include "base/check.h"
#include "core/agent/impl.h"

namespace hoplite {

void Agent::Impl::check_invariants() const {
  CHECK(is_settled());
  table_.check_invariants();
  records_.check_invariants();
  clients_.check_invariants();
  errands_.check_invariants();
  room_.check_invariants();
  puts_.check_invariants();
  gets_.check_invariants();
  fetches_.check_invariants();
  notices_.check_invariants();
  pulls_.check_invariants();
  serves_.check_invariants();
  slots_.check_invariants();
  coordinator_.check_invariants();
  for (const auto& [home, ids] : records_.by_home())
    for (const ObjectId& id : ids) check_record(records_.at(id));
}

void Agent::Impl::check_record(const Record& r) const {
  const std::string id = r.id.to_string();
  const int state = static_cast<int>(fetches_.state(r.id));
  CHECK(!is_unused(r), id);
  CHECK(!is_unwanted(r), id, r.copy, state);
  const Copy* copy = records_.copy_of(r);
  if (copy == nullptr) return;
  CHECK((copy->life() == CopyLife::kWriting) == puts_.contains(r.id), id, static_cast<int>(copy->life()));
  CHECK(!copy->is_complete() || fetches_.is_idle(r.id), id, state);
  CHECK(copy->life() != CopyLife::kFetching || fetches_.is_asking(r.id) ||
            fetches_.state(r.id) == Fetches::State::kPulling,
        id, state);
  for (std::uint32_t i = 0; i < copy->slices.size() && !copy->is_complete(); ++i) {
    const CopySlice& slice = copy->slices[i];
    const bool arrives = !slice.combined && (slice.state == SliceState::kAsked || slice.state == SliceState::kAttached);
    CHECK(arrives == pulls_.is_running(copy->key, i), id, i, static_cast<int>(slice.state));
    CHECK(!arrives || pulls_.priority(copy->key, i) == demand(*copy, i), id, i);
  }
}

}  // namespace hoplite
