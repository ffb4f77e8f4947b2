// Small objects that this node passes on to others, on behalf of their homes.
#include "base/coverage.h"
#include "core/agent/impl.h"

namespace hoplite {

void Agent::Impl::on(NodeRef from, const PassOn& m) {
  if (from == home(m.id)) pass_on(m);
}

void Agent::Impl::pass_on(const PassOn& asked) {
  const Record* r = find(asked.id);
  const Copy* copy = r == nullptr || r->copy == 0 ? nullptr : table_.find(r->copy);
  if (copy != nullptr && copy->version == asked.version && copy->is_complete())
    return send(asked.receiver, InlineObject{asked.request, asked.id, copy->version, copy->meta},
                effect::Payload::kExtent, copy->extent);
  const bool coming = r != nullptr && (r->fetch == Fetch::kAsking || r->fetch == Fetch::kPulling);
  if (!coming || parked_passes_[asked.id].size() >= limits_.max_passes) return refuse_pass(asked);
  COVERAGE_MARK(pass_parked);
  parked_passes_[asked.id].push_back(asked);
}

void Agent::Impl::refuse_parked(const ObjectId& id) {
  for (const PassOn& asked : take_parked_passes(id)) refuse_pass(asked);
  serves_.refuse_parked(id, *effects_);
}

// The home serves the receiver itself.
void Agent::Impl::refuse_pass(const PassOn& asked) {
  COVERAGE_MARK(pass_refused);
  send(home(asked.id), Withdraw{asked.id, asked.version});
}

std::vector<PassOn> Agent::Impl::take_parked_passes(const ObjectId& id) {
  const auto node = parked_passes_.extract(id);
  return node.empty() ? std::vector<PassOn>{} : std::move(node.mapped());
}

}  // namespace hoplite
