#include "dataplane/combiner.h"

#include <algorithm>

#include "base/check.h"

namespace hoplite::dataplane {
namespace {

// Read, then others have their turn: a fraction of a millisecond, as one event of a link takes.
constexpr std::uint64_t kTurnBytes = 4 * kMiB;
constexpr std::uint64_t kLeastBytes = 4 * kKiB;  // of output

// Of output, in whole elements of every type.
std::uint64_t turn_of(std::size_t inputs) { return std::max(kLeastBytes, kTurnBytes / inputs / 64 * 64); }

}  // namespace

void Combiner::start(Combination::Work work) {
  const Key key{work.out->key(), work.slice};
  const auto [it, fresh] = running_.try_emplace(key, std::move(work));
  CHECK(fresh, key.first, key.second);
  Running& running = it->second;
  // First the registration, then a look at the valid bytes (buffer.h).
  for (const Combination::Input& input : running.combination.work().inputs) {
    readers_[input.buffer->key()].push_back(&running);
    input.buffer->set_combining(lane_, true);
  }
  enqueue(running);
  run();
}

void Combiner::stop(CopyKey out, std::uint32_t slice) {
  if (const auto it = running_.find({out, slice}); it != running_.end()) end(it->second, false);
}

void Combiner::input_advanced(const Buffer& buffer) {
  const auto it = readers_.find(buffer.key());
  if (it == readers_.end()) return;
  for (Running* reader : it->second) enqueue(*reader);
  run();
}

void Combiner::go_on() {
  ready_.assign(postponed_.begin(), postponed_.end());
  postponed_.clear();
  run();
}

void Combiner::enqueue(Running& running) {
  if (std::exchange(running.queued, true)) return;
  ready_.push_back(&running);
}

// A combination's progress may make others ready: then we are called again from inside, and the outer call goes on with
// them.
void Combiner::run() {
  if (std::exchange(in_run_, true)) return;
  while (!ready_.empty()) {
    Running& running = *ready_.front();
    ready_.pop_front();
    running.queued = false;
    take_turn(running);
  }
  in_run_ = false;
}

void Combiner::take_turn(Running& running) {
  Combination& combination = running.combination;
  const Combination::Work& work = combination.work();
  const bool moved = combination.step(turn_of(work.inputs.size()));
  const bool complete = combination.complete();
  if (complete && work.final) work.out->set_final(work.slice);
  if (moved || complete) host_.buffer_advanced(*work.out);
  if (complete) return end(running, true);
  if (combination.ready() && !std::exchange(running.queued, true)) postponed_.push_back(&running);
}

void Combiner::end(Running& running, bool complete) {
  const Combination::Work& work = running.combination.work();
  const Key key{work.out->key(), work.slice};
  for (const Combination::Input& input : work.inputs) {
    const auto it = readers_.find(input.buffer->key());
    if (it == readers_.end()) continue;  // it is an input twice
    std::erase(it->second, &running);
    if (!it->second.empty()) continue;
    readers_.erase(it);
    input.buffer->set_combining(lane_, false);
  }
  std::erase(ready_, &running);
  std::erase(postponed_, &running);
  running_.erase(key);
  host_.combine_ended(key.first, key.second, complete);
}

}  // namespace hoplite::dataplane
