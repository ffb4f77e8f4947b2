#include "core/broadcast/relay_plan.h"

#include <algorithm>

namespace hoplite {

NodeId RelayPlan::choose(Time now, const Transfer& transfer, const LinkCosts& links, const Limits& limits) {
  remove(transfer.receiver);
  if (home_free_ <= now) relays_.clear();  // whoever asks next is the first of a crowd, or alone
  NodeId sender = transfer.home;
  Time begin = std::max(now, home_free_);
  for (const Relay& relay : relays_) {
    const Time told = now + Duration::from_seconds(links(transfer.home, relay.node).hop_s);
    const Time can_begin = std::max(told, relay.free);
    if (can_begin < begin) sender = relay.node, begin = can_begin;
  }
  const LinkCost link = links(sender, transfer.receiver);
  const Time sent = begin + Duration::from_seconds(static_cast<double>(transfer.bytes) / link.bytes_per_s);
  const auto relay = std::ranges::find(relays_, sender, &Relay::node);
  (relay == relays_.end() ? home_free_ : relay->free) = sent;
  if (relays_.size() < limits.max_relays)
    relays_.push_back({transfer.receiver, sent + Duration::from_seconds(link.hop_s)});
  return sender;
}

void RelayPlan::remove(NodeId node) {
  std::erase_if(relays_, [node](const Relay& relay) { return relay.node == node; });
}

}  // namespace hoplite
