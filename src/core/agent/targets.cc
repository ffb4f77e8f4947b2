// Results of reduces that come into being here: what Slots asks of the rest of the agent.
#include <algorithm>

#include "base/check.h"
#include "core/agent/impl.h"

namespace hoplite {

const Address* Agent::Impl::depend_on(NodeId node) {
  const Address* address = membership_.address_of(node);
  if (address != nullptr) membership_.touch(now_, node);
  return address;
}

Copy* Agent::Impl::find_copy(const ObjectId& id) {
  const Record* r = find(id);
  return r == nullptr ? nullptr : current_copy(*r);
}

void Agent::Impl::become_target(Copy& out) {
  Record& r = record(out.id);
  // A client that is putting it has lost: the home has given the id to the reduce.
  if (r.put) fail_put(r, Code::kExists, "object " + out.id.to_string());
  if (r.fetch != Fetch::kIdle) stop_asking(r);
  if (const Copy* old = current_copy(r)) {
    send(r.home, Withdraw{out.id, old->version});
    retire(r);
  }
  r.copy = out.key;
  pulls_.set_owner(out.key, Pulls::FetchOf{out.id});
  open_in_data_plane(out);
}

// If there are other slices, they are fetched from where they come into being.
void Agent::Impl::target_grows(Copy& out) {
  Record& r = records_.at(out.id);
  announce(r);
  if (out.is_striped() && r.fetch == Fetch::kIdle) send_want(r);
  fulfil_gets(r);
  servable_.insert(out.id);
}

void Agent::Impl::target_committed(Copy& out) {
  servable_.insert(out.id);
  if (!std::ranges::all_of(out.slices, &CopySlice::is_done)) return;
  out.primary = true;
  complete_fetch(records_.at(out.id), out);
}

void Agent::Impl::target_dropped(Copy& out) {
  Record& r = records_.at(out.id);
  CHECK(r.copy == out.key, out.id.to_string(), r.copy, out.key);
  send(r.home, Withdraw{out.id, out.version});
  retire(r);
}

// What it coordinated is lost, and who asks will be told why.
void Agent::Impl::drop_slots_of(NodeRef coordinator) {
  for (const auto& [target, version] : slots_.drop_those_of(coordinator))
    remember(target, version, coordinator_gone(coordinator));
}

}  // namespace hoplite
