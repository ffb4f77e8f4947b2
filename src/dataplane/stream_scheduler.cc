#include "dataplane/stream_scheduler.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace hoplite::dataplane {

void StreamScheduler::add(Stream stream, const Job& job, std::uint64_t part) {
  CHECK(streams_.emplace(stream, StreamState{job, part, 0, false}).second, stream);
  JobState& state = jobs_[job];
  if (state.parts.empty()) state.last_turn = ++clock_;  // a newcomer comes after its equals
  ++state.parts[part].streams;
}

void StreamScheduler::remove(Stream stream) {
  set_ready(stream, false);
  const auto it = streams_.find(stream);
  const auto job = jobs_.find(it->second.job);
  const auto part = job->second.parts.find(it->second.part);
  if (--part->second.streams == 0) job->second.parts.erase(part);
  if (job->second.parts.empty()) jobs_.erase(job);
  streams_.erase(it);
}

void StreamScheduler::prioritize(Stream stream, Priority priority) {
  const StreamState state = streams_.at(stream);
  if (state.job.priority == priority) return;
  remove(stream);
  add(stream, {priority, state.job.target}, state.part);
  set_ready(stream, state.ready);
}

void StreamScheduler::set_ready(Stream stream, bool ready) {
  const auto it = streams_.find(stream);
  CHECK(it != streams_.end(), stream);
  StreamState& state = it->second;
  if (std::exchange(state.ready, ready) == ready) return;
  JobState& job = jobs_.at(state.job);
  Class& in = class_of(state.job.priority);
  std::uint64_t& since = job.parts.at(state.part).since;
  if (since == 0) since = ++clock_;
  if (ready) {
    // What it did not use while it had nothing to send is not made up for.
    if (job.waiting.empty()) job.had_bytes = std::max(job.had_bytes, in.reached_bytes);
    job.waiting.insert(place_in_job(stream, state, job));
    in.line.insert(place_of(state.job, job));
  } else {
    job.waiting.erase(place_in_job(stream, state, job));
    if (job.waiting.empty()) in.line.erase(place_of(state.job, job));
  }
}

// The highest that waits, unless a lower one is owed a turn.
std::optional<Priority> StreamScheduler::next_class() const {
  std::optional<Priority> best;
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    if (classes_[i].line.empty()) continue;
    best = static_cast<Priority>(i);
    if (classes_[i].owed_bytes >= options_.shared_turn_bytes * options_.least_share) return best;
  }
  return best;
}

const StreamScheduler::JobState& StreamScheduler::first_job(Priority priority) const {
  const Place& first = *classes_[static_cast<std::size_t>(priority)].line.begin();
  return jobs_.at({priority, std::get<ObjectId>(first)});
}

// Others wait, and are not to wait long: other jobs, or streams of the same part.
bool StreamScheduler::shares(const JobState& job) const {
  std::size_t jobs = 0;
  for (const Class& c : classes_) jobs += c.line.size();
  const auto first = job.waiting.begin();
  const auto second = std::next(first);
  return jobs > 1 || (second != job.waiting.end() && std::get<0>(*first) == std::get<0>(*second));
}

std::optional<StreamScheduler::Turn> StreamScheduler::next() const {
  const auto priority = next_class();
  if (!priority) return std::nullopt;
  const JobState& job = first_job(*priority);
  return Turn{std::get<2>(*job.waiting.begin()), shares(job) ? options_.shared_turn_bytes : options_.turn_bytes,
              *priority};
}

void StreamScheduler::taken(Stream stream, std::uint64_t bytes) {
  const auto it = streams_.find(stream);
  CHECK(it != streams_.end(), stream);
  StreamState& state = it->second;
  JobState& job = jobs_.at(state.job);
  Class& in = class_of(state.job.priority);
  const bool in_line = in.line.erase(place_of(state.job, job)) > 0;
  if (state.ready) job.waiting.erase(place_in_job(stream, state, job));
  in.reached_bytes = std::max(in.reached_bytes, job.had_bytes);
  job.had_bytes += bytes;
  state.last_turn = job.last_turn = ++clock_;
  if (state.ready) job.waiting.insert(place_in_job(stream, state, job));
  if (in_line) in.line.insert(place_of(state.job, job));
  owe(state.job.priority, bytes);
}

void StreamScheduler::owe(Priority served, std::uint64_t bytes) {
  const std::uint64_t turn = options_.shared_turn_bytes * options_.least_share;
  for (std::size_t i = 0; i < static_cast<std::size_t>(served); ++i)
    if (!classes_[i].line.empty()) classes_[i].owed_bytes = std::min(classes_[i].owed_bytes + bytes, 2 * turn);
  // Its own bytes count as part of the share's whole: one in `least_share`, not one for so many of the others.
  std::uint64_t& owed = class_of(served).owed_bytes;
  owed -= std::min(owed, bytes * (options_.least_share - 1));
}

}  // namespace hoplite::dataplane
