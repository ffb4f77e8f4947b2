#include "core/agent/relays.h"

#include "base/coverage.h"

namespace hoplite {

void Relays::pass_on(const PassOn& asked) {
  const Copy* copy = records_.copy_of(asked.id);
  if (copy != nullptr && copy->version == asked.version && copy->is_complete())
    return out_.send_with_bytes(asked.receiver, InlineObject{asked.request, asked.id, copy->version, copy->meta},
                                copy->extent);
  const Fetches::State state = fetches_.state(asked.id);
  const bool coming = state == Fetches::State::kAsking || state == Fetches::State::kPulling;
  if (!coming || parked_[asked.id].size() >= limits_.max_passes) return refuse(asked);
  COVERAGE_MARK(pass_parked);
  parked_[asked.id].push_back(asked);
}

void Relays::retry(const ObjectId& id) {
  for (const PassOn& asked : take_parked(id)) pass_on(asked);
}

void Relays::refuse(const ObjectId& id) {
  for (const PassOn& asked : take_parked(id)) refuse(asked);
}

void Relays::refuse(const PassOn& asked) {
  COVERAGE_MARK(pass_refused);
  out_.send(records_.home(asked.id), Withdraw{asked.id, asked.version});
}

std::vector<PassOn> Relays::take_parked(const ObjectId& id) {
  auto node = parked_.extract(id);
  return node.empty() ? std::vector<PassOn>{} : std::move(node.mapped());
}

}  // namespace hoplite
