#include "transport/tcp/stream_scheduler.h"

#include <algorithm>

#include "base/check.h"

namespace hoplite::tcp {

void StreamScheduler::add(Stream stream, std::uint8_t priority, Time deadline) {
  // A newcomer comes after those that are waiting, not before all that have had a turn.
  const bool fresh = streams_.emplace(stream, State{priority, deadline, ++turns_, false}).second;
  CHECK(fresh, stream);
}

void StreamScheduler::remove(Stream stream) {
  set_ready(stream, false);
  streams_.erase(stream);
}

void StreamScheduler::set_ready(Stream stream, bool ready) {
  const auto it = streams_.find(stream);
  CHECK(it != streams_.end(), stream);
  if (it->second.ready == ready) return;
  it->second.ready = ready;
  if (ready) {
    ready_.insert(place_of(stream, it->second));
  } else {
    ready_.erase(place_of(stream, it->second));
  }
}

bool StreamScheduler::is_ready(Stream stream) const {
  const auto it = streams_.find(stream);
  return it != streams_.end() && it->second.ready;
}

std::optional<StreamScheduler::Turn> StreamScheduler::next() const {
  if (ready_.empty() || in_flight_ >= options_.max_in_flight) return std::nullopt;
  const std::uint64_t turn_bytes = ready_.size() > 1 ? options_.shared_turn_bytes : options_.turn_bytes;
  return Turn{std::get<3>(*ready_.begin()), std::min(turn_bytes, options_.max_in_flight - in_flight_)};
}

void StreamScheduler::taken(Stream stream, std::uint64_t bytes) {
  const auto it = streams_.find(stream);
  CHECK(it != streams_.end(), stream);
  State& state = it->second;
  if (state.ready) ready_.erase(place_of(stream, state));
  state.last_turn = ++turns_;
  if (state.ready) ready_.insert(place_of(stream, state));
  in_flight_ += bytes;
}

void StreamScheduler::passed_on(std::uint64_t bytes) {
  CHECK(bytes <= in_flight_, bytes, in_flight_);
  in_flight_ -= bytes;
}

}  // namespace hoplite::tcp
