#include "core/agent/deputies.h"

#include <vector>

namespace hoplite {

void Deputies::note(const Heard& heard) {
  const auto [it, fresh] = noted_.try_emplace(heard.id, heard);
  if (!fresh) {
    const bool was_told_of_nothing = !it->second.deleted && heard.deleted && it->second.version == heard.version;
    if (was_told_of_nothing) noted_.erase(it);
    else it->second = heard;
  }
  if (!timer_) timers_.set(timer_, out_.now() + limits_.hearsay_every, timer::Hearsay{});
}

void Deputies::forget_all() {
  noted_.clear();
  anew_.clear();
  timers_.cancel(timer_);
}

void Deputies::tell() {
  std::map<NodeRef, Hearsay> next;
  const auto send = [&](NodeRef to, Hearsay& hearsay) {
    hearsay.anew = anew_.erase(to.id) > 0;
    out_.send(to, std::exchange(hearsay, {}));
  };
  for (const auto& [id, heard] : std::exchange(noted_, {})) {
    if (records_.home(id) != out_.self()) continue;  // it has moved: the new home has heard of it
    const NodeRef deputy = deputy_of(id, out_.self(), records_.alive());
    if (deputy.id.is_nil()) continue;
    Hearsay& hearsay = next[deputy];
    hearsay.heard.push_back(heard);
    if (hearsay.heard.size() >= limits_.facts_per_message) send(deputy, hearsay);
  }
  for (auto& [deputy, hearsay] : next)
    if (!hearsay.heard.empty()) send(deputy, hearsay);
}

}  // namespace hoplite
