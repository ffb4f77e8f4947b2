#include "transport/tcp/stream_scheduler.h"

#include <algorithm>

#include "base/check.h"

namespace hoplite::tcp {

void StreamScheduler::add(Stream stream, const Job& job) {
  CHECK(streams_.emplace(stream, StreamState{job, 0, false}).second, stream);
  JobState& state = jobs_[job];
  // A newcomer comes after those that are waiting, not before all that have had a turn.
  if (state.streams++ == 0) state.last_turn = ++clock_;
}

void StreamScheduler::remove(Stream stream) {
  set_ready(stream, false);
  const auto it = streams_.find(stream);
  const auto job = jobs_.find(it->second.job);
  if (--job->second.streams == 0) jobs_.erase(job);
  streams_.erase(it);
}

void StreamScheduler::set_ready(Stream stream, bool ready) {
  const auto it = streams_.find(stream);
  CHECK(it != streams_.end(), stream);
  StreamState& state = it->second;
  if (std::exchange(state.ready, ready) == ready) return;
  if (state.since == 0) state.since = ++clock_;
  JobState& job = jobs_.at(state.job);
  if (ready) {
    job.ready.emplace(state.since, stream);
    line_.insert(place_of(state.job, job));
  } else {
    job.ready.erase({state.since, stream});
    if (job.ready.empty()) line_.erase(place_of(state.job, job));
  }
}

bool StreamScheduler::is_ready(Stream stream) const {
  const auto it = streams_.find(stream);
  return it != streams_.end() && it->second.ready;
}

std::optional<StreamScheduler::Turn> StreamScheduler::next() const {
  if (line_.empty() || in_flight_ >= options_.max_in_flight) return std::nullopt;
  const auto& [priority, deadline, last_turn, target] = *line_.begin();
  const JobState& job = jobs_.at({priority, deadline, target});
  const std::uint64_t turn_bytes = line_.size() > 1 ? options_.shared_turn_bytes : options_.turn_bytes;
  return Turn{job.ready.begin()->second, std::min(turn_bytes, options_.max_in_flight - in_flight_)};
}

void StreamScheduler::taken(Stream stream, std::uint64_t bytes) {
  const auto it = streams_.find(stream);
  CHECK(it != streams_.end(), stream);
  const Job& job = it->second.job;
  JobState& state = jobs_.at(job);
  const bool waits = line_.erase(place_of(job, state)) > 0;
  state.last_turn = ++clock_;
  if (waits) line_.insert(place_of(job, state));
  in_flight_ += bytes;
}

void StreamScheduler::passed_on(std::uint64_t bytes) {
  CHECK(bytes <= in_flight_, bytes, in_flight_);
  in_flight_ -= bytes;
}

}  // namespace hoplite::tcp
