// Whose turn it is on a link that many streams share. Pure: no clock, no I/O.
//
// A higher priority goes first; while it does, every lower one that waits is owed a share of what it sends, and gets a turn
// when that has added up to one. So nothing starves.
//
// Streams that one object is made of (its slices, or what is reduced into it) are a job. Jobs of one priority share the link
// byte by byte: the one that has had the least is next. A job that shares the link gets shorter turns than one that is alone,
// so that nobody waits long.
//
// Within a job one part goes after the other, the one first whose first bytes were there first. What flows round a ring then
// passes slice by slice at full speed, each a slice's time after it has begun to arrive, and a delay on the way is made up
// for. If the slices shared the link, all would trickle, and the last bytes of all would be late by every hop's delay.
// Streams of one part (the inputs of one combination, of no use without each other) take turns.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "hoplite/object_id.h"
#include "hoplite/priority.h"

namespace hoplite::dataplane {

class StreamScheduler {
 public:
  using Stream = std::uint64_t;

  struct Options {
    std::uint64_t turn_bytes = 1;         // of a stream that takes no turns with others
    std::uint64_t shared_turn_bytes = 1;  // while it does
    std::uint32_t least_share = 20;       // a lower priority that waits gets one byte of so many
  };
  explicit StreamScheduler(const Options& options) : options_(options) {}

  struct Job {
    Priority priority = Priority::kNormal;
    ObjectId target;
    auto operator<=>(const Job&) const = default;
  };
  // A new stream is not ready.
  void add(Stream stream, const Job& job, std::uint64_t part);
  void remove(Stream stream);
  void prioritize(Stream stream, Priority priority);
  void set_ready(Stream stream, bool ready);

  struct Turn {
    Stream stream = 0;
    std::uint64_t max_bytes = 0;
    Priority priority = Priority::kNormal;
  };
  // Whose turn it is, until somebody has taken one. nullopt if no stream is ready.
  std::optional<Turn> next() const;
  // `stream` has used its turn for so many bytes.
  void taken(Stream stream, std::uint64_t bytes);

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
    std::uint64_t had_bytes = 0;  // counted from where the others of its class were when it began to wait
    std::uint64_t last_turn = 0;
    std::set<InJob> waiting;  // those that are ready
  };
  using Place = std::tuple<std::uint64_t, std::uint64_t, ObjectId>;  // bytes had, last turn, target
  struct Class {                                                     // of one priority
    std::set<Place> line;                                            // jobs with a stream that is ready
    std::uint64_t reached_bytes = 0;                                 // what the job served last had had before
    std::uint64_t owed_bytes = 0;                                    // by higher classes, times `least_share`
  };

  static Place place_of(const Job& job, const JobState& state) {
    return {state.had_bytes, state.last_turn, job.target};
  }
  static InJob place_in_job(Stream stream, const StreamState& state, const JobState& job) {
    return {job.parts.at(state.part).since, state.last_turn, stream};
  }
  Class& class_of(Priority priority) { return classes_[static_cast<std::size_t>(priority)]; }
  const JobState& first_job(Priority priority) const;
  std::optional<Priority> next_class() const;
  bool shares(const JobState& job) const;
  void owe(Priority served, std::uint64_t bytes);

  Options options_;
  std::unordered_map<Stream, StreamState> streams_;
  std::map<Job, JobState> jobs_;
  std::array<Class, static_cast<std::size_t>(last_enumerator(Priority{})) + 1> classes_;
  std::uint64_t clock_ = 0;  // counts turns, jobs that came and streams that became ready
};

}  // namespace hoplite::dataplane
