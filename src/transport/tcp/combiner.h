// The combinations of one I/O thread. Each goes on as soon as an input does, while what has just been received is still in
// the cache; what one of them makes can be another's input.
//
// After a bounded piece of work a combination waits until the thread's other business has had its turn. Every one that is
// started ends with exactly one CombineEnded. Lives on one I/O thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "transport/tcp/bulk_host.h"
#include "transport/tcp/combination.h"

namespace hoplite::tcp {

class Combiner {
 public:
  // `loop` is that of the I/O thread with this index.
  Combiner(Loop& loop, std::uint32_t thread, BulkHost& host) : loop_(loop), thread_(thread), host_(host) {}
  Combiner(const Combiner&) = delete;
  Combiner& operator=(const Combiner&) = delete;

  void start(Combination::Work work);
  // One that is unknown has ended by itself.
  void stop(CopyKey out, std::uint32_t slice);
  // A watermark of the copy has moved, or it was sealed.
  void input_advanced(const Copy& copy);
  bool busy() const { return !running_.empty(); }

 private:
  struct Running {
    explicit Running(Combination::Work work) : combination(std::move(work)) {}
    Combination combination;
    bool queued = false;  // in `ready_` or `postponed_`
  };
  using Key = std::pair<CopyKey, std::uint32_t>;  // what is made: copy and slice

  void enqueue(Running& running);
  void run();
  void take_turn(Running& running);
  void postpone(Running& running);
  void end(Running& running, bool complete);

  Loop& loop_;
  const std::uint32_t thread_;
  BulkHost& host_;
  std::map<Key, Running> running_;
  std::unordered_map<CopyKey, std::vector<Running*>> readers_;  // by input
  std::deque<Running*> ready_;                                  // empty but for the time of `run`
  std::vector<Running*> postponed_;                             // until the loop comes round
  bool in_run_ = false;
};

}  // namespace hoplite::tcp
