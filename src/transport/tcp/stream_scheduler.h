// Whose turn it is on a connection that many streams share. Pure: no clock, no I/O.
//
// The most urgent priority goes first; within it the earliest deadline; among equals everybody in turn. A stream that
// shares the connection gets shorter turns than one that is alone, so that nobody waits long.
//
// What the caller has been given and not yet passed on is in flight; while the in-flight limit is reached there are no
// turns. So the choice is made as late as possible.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "base/time.h"

namespace hoplite::tcp {

class StreamScheduler {
 public:
  using Stream = std::uint64_t;

  struct Options {
    std::uint64_t turn_bytes = 1;         // of a stream that is the only one ready
    std::uint64_t shared_turn_bytes = 1;  // while others are ready too
    std::uint64_t max_in_flight = 1;      // bytes
  };
  explicit StreamScheduler(const Options& options) : options_(options) {}

  // 0 is the most urgent priority. Time::never() = no deadline. A new stream is not ready.
  void add(Stream stream, std::uint8_t priority, Time deadline);
  // What it has in flight is still to be reported by `passed_on`.
  void remove(Stream stream);
  void set_ready(Stream stream, bool ready);
  bool is_ready(Stream stream) const;
  bool any_ready() const { return !ready_.empty(); }

  struct Turn {
    Stream stream = 0;
    std::uint64_t max_bytes = 0;
  };
  // Whose turn it is, until somebody has taken one. nullopt if no stream is ready, or the in-flight limit is reached.
  std::optional<Turn> next() const;
  // `stream` makes use of its turn and goes to the end of the line; these bytes are in flight.
  void taken(Stream stream, std::uint64_t bytes);
  void passed_on(std::uint64_t bytes);

 private:
  struct State {
    std::uint8_t priority = 0;
    Time deadline;
    std::uint64_t last_turn = 0;
    bool ready = false;
  };
  using Place = std::tuple<std::uint8_t, Time, std::uint64_t, Stream>;  // priority, deadline, last turn
  static Place place_of(Stream stream, const State& state) {
    return {state.priority, state.deadline, state.last_turn, stream};
  }

  Options options_;
  std::unordered_map<Stream, State> streams_;
  std::set<Place> ready_;
  std::uint64_t turns_ = 0;  // taken so far, and streams that came
  std::uint64_t in_flight_ = 0;
};

}  // namespace hoplite::tcp
