// Results of reduces that come into being here: what Slots asks of the rest of the agent.
#include <algorithm>

#include "base/check.h"
#include "core/agent/impl.h"

namespace hoplite {

// The home has given the id to a reduce. If it is also asked for a client's put, it refuses that, or accepts it because the
// reduce has failed meanwhile. A put that it had accepted before, it does not know any more: so it is asked again.
bool Agent::Impl::may_become_target(const ObjectId& id) {
  if (puts_.contains(id) && puts_.is_answered(id)) puts_.claim(id);
  return !puts_.contains(id);
}

void Agent::Impl::become_target(Copy& out) {
  Record& r = records_.add(out.id);
  CHECK(!puts_.contains(out.id), out.id);
  if (!fetches_.is_idle(out.id)) stop_fetch(r);
  if (const Copy* old = records_.copy_of(r)) {
    announcer_.withdraw(r.home, out.id, old->version);
    retire(r);
  }
  r.copy = out.key;
  pulls_.set_owner(out.key, Pulls::FetchOf{out.id});
  copies_.open(out);
}

// If there are other slices, they are fetched from where they come into being.
void Agent::Impl::target_grows(Copy& out) {
  const Record& r = records_.at(out.id);
  announcer_.tell(r);
  if (out.is_striped() && fetches_.is_idle(out.id)) fetches_.ask(want_of(r));
  gets_.fulfil(out.id);
  records_.can_be_pulled(out.id);
}

void Agent::Impl::target_committed(Copy& out) {
  records_.can_be_pulled(out.id);
  if (!std::ranges::all_of(out.slices, &CopySlice::is_done)) return;
  out.primary = true;
  complete_fetch(records_.at(out.id), out);
}

void Agent::Impl::target_dropped(Copy& out) {
  Record& r = records_.at(out.id);
  CHECK(r.copy == out.key, out.id, r.copy, out.key);
  announcer_.withdraw(r.home, out.id, out.version);
  ask_after_withdrawal(out.id);
  retire(r);
}

// What it coordinated is lost, and who asks will be told why.
void Agent::Impl::drop_slots_of(NodeRef coordinator) {
  for (const auto& [target, version] : slots_.drop_those_of(coordinator))
    announcer_.remember(target, version, coordinator_gone(coordinator));
}

}  // namespace hoplite
