#include "transport/tcp/stream_scheduler.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace hoplite::tcp {

void StreamScheduler::add(Stream stream, const Job& job, std::uint64_t part) {
  CHECK(streams_.emplace(stream, StreamState{job, part, 0, false}).second, stream);
  JobState& state = jobs_[job];
  // A newcomer comes after those that are waiting, not before all that have had a turn.
  if (state.parts.empty()) state.last_turn = ++clock_;
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

void StreamScheduler::set_ready(Stream stream, bool ready) {
  const auto it = streams_.find(stream);
  CHECK(it != streams_.end(), stream);
  StreamState& state = it->second;
  if (std::exchange(state.ready, ready) == ready) return;
  JobState& job = jobs_.at(state.job);
  std::uint64_t& since = job.parts.at(state.part).since;
  if (since == 0) since = ++clock_;
  if (ready) {
    job.waiting.insert(place_in_job(stream, state, job));
    line_.insert(place_of(state.job, job));
  } else {
    job.waiting.erase(place_in_job(stream, state, job));
    if (job.waiting.empty()) line_.erase(place_of(state.job, job));
  }
}

bool StreamScheduler::is_ready(Stream stream) const {
  const auto it = streams_.find(stream);
  return it != streams_.end() && it->second.ready;
}

// Others wait, and are not to wait long: other jobs, or streams of the same part.
bool StreamScheduler::shares(const JobState& job) const {
  const auto first = job.waiting.begin();
  const auto second = std::next(first);
  return line_.size() > 1 || (second != job.waiting.end() && std::get<0>(*first) == std::get<0>(*second));
}

std::optional<StreamScheduler::Turn> StreamScheduler::next() const {
  if (line_.empty() || in_flight_ >= options_.max_in_flight) return std::nullopt;
  const auto& [priority, deadline, last_turn, target] = *line_.begin();
  const JobState& job = jobs_.at({priority, deadline, target});
  const std::uint64_t turn_bytes = shares(job) ? options_.shared_turn_bytes : options_.turn_bytes;
  return Turn{std::get<2>(*job.waiting.begin()), std::min(turn_bytes, options_.max_in_flight - in_flight_)};
}

void StreamScheduler::taken(Stream stream, std::uint64_t bytes) {
  const auto it = streams_.find(stream);
  CHECK(it != streams_.end(), stream);
  StreamState& state = it->second;
  JobState& job = jobs_.at(state.job);
  const bool in_line = line_.erase(place_of(state.job, job)) > 0;
  if (state.ready) job.waiting.erase(place_in_job(stream, state, job));
  state.last_turn = job.last_turn = ++clock_;
  if (state.ready) job.waiting.insert(place_in_job(stream, state, job));
  if (in_line) line_.insert(place_of(state.job, job));
  in_flight_ += bytes;
}

void StreamScheduler::passed_on(std::uint64_t bytes) {
  CHECK(bytes <= in_flight_, bytes, in_flight_);
  in_flight_ -= bytes;
}

}  // namespace hoplite::tcp
