// Whose turn it is on a connection that many streams share. Pure: no clock, no I/O.
//
// Streams that one object is made of (its slices, or what is reduced into it) are a job. The most urgent priority goes first;
// within it the earliest deadline; jobs that are equal in both take turns. A job that shares the connection gets shorter
// turns than one that is alone, so that nobody waits long.
//
// Within a job the stream goes first that has had bytes the longest. What flows round a ring then passes one slice after the
// other at full speed, each a slice's time after it has begun to arrive, and a delay on the way is made up for. If the
// slices shared the connection, all would trickle, and the last bytes of all would be late by every hop's delay.
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
    std::uint64_t turn_bytes = 1;         // of a job that is the only one ready
    std::uint64_t shared_turn_bytes = 1;  // while others are ready too
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
  void add(Stream stream, const Job& job);
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
  // `stream` makes use of its turn and its job goes to the end of the line; these bytes are in flight.
  void taken(Stream stream, std::uint64_t bytes);
  void passed_on(std::uint64_t bytes);

 private:
  struct StreamState {
    Job job;
    std::uint64_t since = 0;  // when it was ready for the first time; 0 = not yet
    bool ready = false;
  };
  struct JobState {
    std::size_t streams = 0;
    std::uint64_t last_turn = 0;
    std::set<std::pair<std::uint64_t, Stream>> ready;  // those ready for the longest first
  };
  using Place = std::tuple<std::uint8_t, Time, std::uint64_t, ObjectId>;  // priority, deadline, last turn, target
  static Place place_of(const Job& job, const JobState& state) {
    return {job.priority, job.deadline, state.last_turn, job.target};
  }

  Options options_;
  std::unordered_map<Stream, StreamState> streams_;
  std::map<Job, JobState> jobs_;
  std::set<Place> line_;     // jobs with a stream that is ready
  std::uint64_t clock_ = 0;  // counts turns, jobs that came and streams that became ready
  std::uint64_t in_flight_ = 0;
};

}  // namespace hoplite::tcp
