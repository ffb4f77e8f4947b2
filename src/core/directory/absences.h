// Members that are away, and may come back with copies of what was deleted meanwhile.
//
// A member that left at some moment has nothing that was put later. It counts as away until some time after its return,
// when it has told every home what it has. One whose address another node has taken over is gone for good; one that is away
// for too long, or for which more would have to be remembered than there is room for, is *forgotten*: should it come back,
// it is told to come back empty.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/limits.h"
#include "base/node_id.h"
#include "protocol/messages.h"

namespace hoplite {

// The members that see each other.
struct Side {
  std::uint32_t members = 0;
  NodeId lowest;  // of their ids
  // Where two sides have forgotten each other, one of them stays.
  bool stays_before(const Side& other) const {
    return members != other.members ? members > other.members : lowest < other.lowest;
  }
};

class Absences {
 public:
  explicit Absences(const Limits& limits) : limits_(limits) {}

  void left(Time now, std::uint64_t generation, NodeRef node, const Address& address) {
    forgotten_.erase(node.id);
    Absent& absent = absent_[node.id];
    absent = {std::max(absent.left, generation), address, now + limits_.absent_life, std::nullopt};
  }
  void joined(Time now, NodeRef node, const Address& address) {
    // Whoever listens at its address has taken its place.
    std::erase_if(absent_, [&](const auto& item) { return item.first != node.id && item.second.address == address; });
    const auto it = absent_.find(node.id);
    if (it == absent_.end()) return;
    it->second.back_until = now + limits_.tombstone_life;
    // Away, it may have met others who are away.
    for (auto& [id, other] : absent_)
      if (!other.back_until) other.left = std::max(other.left, it->second.left);
  }
  // Told by somebody who knew it: we have never seen this node, or not seen it leave.
  void learn(Time now, const Departure& departure) {
    if (absent_.size() >= limits_.max_members) return;
    absent_.try_emplace(departure.node,
                        Absent{departure.left, departure.address, now + limits_.absent_life, std::nullopt});
  }
  // `side`: who is left here.
  void expire(Time now, const Side& side) {
    std::erase_if(absent_, [&](const auto& item) { return item.second.back_until && *item.second.back_until <= now; });
    std::vector<NodeId> over;
    for (const auto& [node, absent] : absent_)
      if (!absent.back_until && absent.until <= now) over.push_back(node);
    for (const NodeId node : over) forget(node, side);
  }
  // Too much would have to be kept for those who are away. The one that left first is forgotten; nullopt if nobody is away.
  std::optional<NodeId> forget_oldest(const Side& side) {
    if (absent_.empty()) return std::nullopt;
    const NodeId oldest =
        std::ranges::min_element(absent_, {}, [](const auto& item) { return item.second.left; })->first;
    forget(oldest, side);
    return oldest;
  }
  struct Gone {
    std::uint64_t left = 0;
    Side side;  // ours, when it was forgotten
  };
  // nullptr: it was not forgotten. Otherwise it must not bring back what it had when it left.
  const Gone* forgotten(NodeId node) const {
    const auto it = forgotten_.find(node);
    return it == forgotten_.end() ? nullptr : &it->second;
  }

  bool empty() const { return absent_.empty(); }
  // Nobody who is away has anything newer; 0: nobody is.
  std::uint64_t horizon() const {
    std::uint64_t latest = 0;
    for (const auto& [node, absent] : absent_) latest = std::max(latest, absent.left);
    if (absent_.empty()) return 0;
    return latest + static_cast<std::uint64_t>(limits_.clock_margin.ns / 1'000'000);
  }
  std::vector<Departure> all() const {
    std::vector<Departure> all;
    for (const auto& [node, absent] : absent_) all.push_back({node, absent.left, absent.address});
    return all;
  }

 private:
  struct Absent {
    std::uint64_t left = 0;
    Address address;
    Time until;                      // then it is forgotten
    std::optional<Time> back_until;  // it has come back, and counts as away until then
  };

  void forget(NodeId node, const Side& side) {
    const auto it = absent_.find(node);
    if (forgotten_.size() >= limits_.max_members) forgotten_.erase(forgotten_.begin());
    if (!it->second.back_until) forgotten_[node] = {it->second.left, side};
    absent_.erase(it);
  }

  const Limits& limits_;
  std::map<NodeId, Absent> absent_;
  std::map<NodeId, Gone> forgotten_;
};

}  // namespace hoplite
