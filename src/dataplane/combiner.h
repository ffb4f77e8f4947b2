// The combinations of one lane. Each goes on as soon as an input does, while what has just been received is still in the
// cache; what one of them makes can be another's input.
//
// After a bounded piece of work a combination waits until the lane's other business has had its turn. Every one that is
// started ends with exactly one call of `ended`.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dataplane/combination.h"

namespace hoplite::dataplane {

class Combiner {
 public:
  class Host {
   public:
    // A slice has more valid bytes, or is final now.
    virtual void buffer_advanced(Buffer& buffer) = 0;
    virtual void combine_ended(CopyKey out, std::uint32_t slice, bool complete) = 0;

   protected:
    ~Host() = default;
  };

  Combiner(std::uint32_t lane, Host& host) : lane_(lane), host_(host) {}
  Combiner(const Combiner&) = delete;
  Combiner& operator=(const Combiner&) = delete;

  void start(Combination::Work work);
  // One that is unknown has ended by itself.
  void stop(CopyKey out, std::uint32_t slice);
  // A slice of the buffer has more valid bytes, or the buffer was sealed.
  void input_advanced(const Buffer& buffer);
  bool busy() const { return !running_.empty(); }
  // Some have more to do now, and have had their turn: call `go_on` when others have had theirs.
  bool postponed() const { return !postponed_.empty(); }
  void go_on();

 private:
  struct Running {
    explicit Running(Combination::Work work) : combination(std::move(work)) {}
    Combination combination;
    bool queued = false;  // in `ready_` or `postponed_`
  };
  using Key = std::pair<CopyKey, std::uint32_t>;  // what is made: buffer and slice

  void enqueue(Running& running);
  void run();
  void take_turn(Running& running);
  void end(Running& running, bool complete);

  const std::uint32_t lane_;
  Host& host_;
  std::map<Key, Running> running_;
  std::unordered_map<CopyKey, std::vector<Running*>> readers_;  // by input
  std::deque<Running*> ready_;                                  // empty but for the time of `run`
  std::vector<Running*> postponed_;
  bool in_run_ = false;
};

}  // namespace hoplite::dataplane
