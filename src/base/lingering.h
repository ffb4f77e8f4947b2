// Whether to go on looking for something to do for a moment before falling asleep: waking a sleeping core takes longer than
// most answers. It is worth its time while what comes next mostly comes soon, as in a conversation; else it is tried now
// and then, in case that has changed.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hoplite {

class Lingering {
 public:
  bool worth_a_try() { return score_ > 0 || ++skipped_ % kTryEvery == 0; }
  void paid(bool yes) { score_ = std::clamp(score_ + (yes ? 2 : -1), 0, kMaxScore); }

 private:
  static constexpr int kMaxScore = 16;
  static constexpr std::uint32_t kTryEvery = 16;
  int score_ = 0;
  std::uint32_t skipped_ = 0;
};

}  // namespace hoplite
