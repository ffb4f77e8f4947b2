// Which of a lane's pulls may have the node's downlink for themselves, and what the others get meanwhile. Pure.
//
// Only the receiver sees that several parents fill its link. While bytes of a higher priority flow, pulls of lower ones are
// held: they get no more than what is granted to them, one byte of `least_share` for each lower priority, in turns among its
// pulls. When the urgent ones are over, or nothing has come of them for a while, the others are let go again.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "base/time.h"
#include "hoplite/priority.h"
#include "protocol/transfer.h"

namespace hoplite::dataplane {

class Downlink {
 public:
  struct Options {
    Duration idle_after;  // without a byte for so long, a pull does not hold others
    std::uint64_t grant_bytes = 1;
    std::uint32_t least_share = 20;
  };
  enum class Change : std::uint8_t {
    kHold,   // nothing more from now on
    kGrant,  // grant_bytes more
    kLetGo,
  };
  using Changes = std::vector<std::pair<TransferId, Change>>;

  explicit Downlink(const Options& options) : options_(options) {}

  const Options& options() const { return options_; }
  // A pull that has just begun counts as one whose bytes flow.
  void add(Time now, TransferId transfer, Priority priority, Changes& out);
  void remove(Time now, TransferId transfer, Changes& out);
  void prioritize(Time now, TransferId transfer, Priority priority, Changes& out);
  void received(Time now, TransferId transfer, std::uint64_t bytes, Changes& out);
  void tick(Time now, Changes& out);

 private:
  struct Pull {
    Priority priority = Priority::kNormal;
    bool held = false;
    Time moved_at;
  };
  struct Class {
    std::size_t pulls = 0;
    std::uint64_t owed_bytes = 0;
    TransferId granted_last = 0;
  };
  Class& class_of(Priority priority) { return classes_[static_cast<std::size_t>(priority)]; }
  bool of_one_class() const;
  bool flows(Time now, const Pull& pull) const { return now - pull.moved_at < options_.idle_after; }
  void decide(Time now, Changes& out);
  void owe(Priority received, std::uint64_t bytes, Changes& out);
  void grant(Priority priority, Changes& out);

  Options options_;
  std::map<TransferId, Pull> pulls_;
  std::array<Class, static_cast<std::size_t>(last_enumerator(Priority{})) + 1> classes_;
  bool any_held_ = false;
};

}  // namespace hoplite::dataplane
