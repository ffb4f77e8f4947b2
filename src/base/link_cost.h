// What it costs to send bytes from one node to another, as far as it has been measured. Plans of broadcasts and reduces ask
// for each pair of nodes by itself; whoever makes the plan says how much is known about pairs.
#pragma once

#include <algorithm>
#include <functional>
#include <span>

#include "base/node_id.h"

namespace hoplite {

struct LinkCost {
  double hop_s = 0;  // until the first byte is there and can be passed on
  double bytes_per_s = 1;
  double grain_bytes = 4096;  // about what a relay reads at a time while it waits for more: a few packets
};

using LinkCosts = std::function<LinkCost(NodeId from, NodeId to)>;

inline LinkCosts same_for_all(LinkCost cost) {
  return [cost](NodeId, NodeId) { return cost; };
}

// What a stream along `chain` meets: the longest hop, and the slowest link. Of one node: what it costs to send to itself.
inline LinkCost worst_along(std::span<const NodeId> chain, const LinkCosts& links) {
  LinkCost worst = links(chain.front(), chain.back());
  for (std::size_t i = 1; i < chain.size(); ++i) {
    const LinkCost link = links(chain[i - 1], chain[i]);
    worst.hop_s = std::max(worst.hop_s, link.hop_s);
    worst.bytes_per_s = std::min(worst.bytes_per_s, link.bytes_per_s);
  }
  return worst;
}

}  // namespace hoplite
