// Whose turn it is on a connection that many streams share. Pure: no clock, no I/O.
//
// Streams that one object is made of (its slices, or what is reduced into it) are a job. The most urgent priority goes first;
// within it the earliest deadline; jobs that are equal in both take turns. A job that shares the connection gets shorter
// turns than one that is alone, so that nobody waits long.
//
// Within a job one part goes after the other, the one first whose first bytes were there first. What flows round a ring then
// passes slice by slice at full speed, each a slice's time after it has begun to arrive, and a delay on the way is made up
// for. If the slices shared the connection, all would trickle, and the last bytes of all would be late by every hop's delay.
// Streams of one part (the inputs of one combination, of no use without each other) take turns.
//
// What the caller has been given and not yet passed on is in flight; while the in-flight limit is reached there are no
// turns. So the choice is made as late as possible.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/time.h"
#include "hoplite/object_id.h"

namespace hoplite::tcp {

class StreamScheduler {
 public:
  using Stream = std::uint64_t;

  struct Options {
    std::uint64_t turn_bytes = 1;         // of a stream that takes no turns with others
    std::uint64_t shared_turn_bytes = 1;  // while it does
    std::uint64_t max_in_flight = 1;      // bytes
  };
  explicit StreamScheduler(const Options& options) : options_(options) {}

  struct Job {
    std::uint8_t priority = 1;      // 0 is the most urgent
    Time deadline = Time::never();  // none
    ObjectId target;
    auto operator<=>(const Job&) const = default;
  };
  // A new stream is not ready.
  void add(Stream stream, const Job& job, std::uint64_t part);
  // What it has in flight is still to be reported by `passed_on`.
  void remove(Stream stream);
  void set_ready(Stream stream, bool ready);
  bool is_ready(Stream stream) const;
  bool any_ready() const { return !line_.empty(); }

  struct Turn {
    Stream stream = 0;
    std::uint64_t max_bytes = 0;
  };
  // Whose turn it is, until somebody has taken one. nullopt if no stream is ready, or the in-flight limit is reached.
  std::optional<Turn> next() const;
  // `stream` makes use of its turn; it and its job go to the end of their lines. These bytes are in flight.
  void taken(Stream stream, std::uint64_t bytes);
  void passed_on(std::uint64_t bytes);

 private:
  struct StreamState {
    Job job;
    std::uint64_t part = 0;
    std::uint64_t last_turn = 0;
    bool ready = false;
  };
  struct Part {
    std::size_t streams = 0;
    std::uint64_t since = 0;  // when one of them was ready for the first time; 0 = not yet
  };
  using InJob = std::tuple<std::uint64_t, std::uint64_t, Stream>;  // the part's `since`, the last turn
  struct JobState {
    std::map<std::uint64_t, Part> parts;
    std::uint64_t last_turn = 0;
    std::set<InJob> waiting;  // those that are ready
  };
  using Place = std::tuple<std::uint8_t, Time, std::uint64_t, ObjectId>;  // priority, deadline, last turn, target
  static Place place_of(const Job& job, const JobState& state) {
    return {job.priority, job.deadline, state.last_turn, job.target};
  }
  static InJob place_in_job(Stream stream, const StreamState& state, const JobState& job) {
    return {job.parts.at(state.part).since, state.last_turn, stream};
  }
  bool shares(const JobState& job) const;

  Options options_;
  std::unordered_map<Stream, StreamState> streams_;
  std::map<Job, JobState> jobs_;
  std::set<Place> line_;     // jobs with a stream that is ready
  std::uint64_t clock_ = 0;  // counts turns, jobs that came and streams that became ready
  std::uint64_t in_flight_ = 0;
};

}  // namespace hoplite::tcp
