#include "base/check.h"
#include "client/states.h"

namespace hoplite {
namespace {

using client::Following;
using client::Reading;

// With the lock held, as below.
bool anything_new(const Reading& state) {
  const Following& following = *state.call->following;
  return following.resets != state.seen_resets ||
         (following.opened && (!state.seen_size || following.opened->bytes != state.seen_bytes));
}

// What there is to tell the reader now; nullopt: nothing new.
std::optional<Follower::Progress> news(Reading& state, ClientMapping& mapping) {
  if (!anything_new(state)) return std::nullopt;
  Following& following = *state.call->following;
  Follower::Progress progress;
  if (following.resets != state.seen_resets) {
    state.seen_resets = following.resets;
    state.seen_bytes = 0;
    state.seen_size = false;
    progress.event = Follower::Event::kReset;
    return progress;
  }
  const auto whole = mapping.view({following.opened->offset, following.opened->size});
  CHECK(whole.ok(), "checked when it came");
  following.shown = true;
  state.seen_size = true;
  state.seen_bytes = following.opened->bytes;
  progress.bytes = whole->first(following.opened->bytes);
  progress.size = following.opened->size;
  return progress;
}

}  // namespace

Follower::Follower(std::unique_ptr<client::Reading> state) : state_(std::move(state)) {}
Follower::Follower(Follower&&) noexcept = default;
Follower& Follower::operator=(Follower&&) noexcept = default;
Follower::~Follower() = default;

Result<Follower::Progress> Follower::next(Timeout timeout) {
  client::Reading& state = *state_;
  client::Connection& connection = *state.connection;
  client::Call& call = *state.call;
  if (state.complete) return Progress{Event::kComplete, state.complete.bytes(), state.complete.size()};
  if (state.failed) return *state.failed;

  std::optional<CopyKey> outdated;  // the reader has heard of the reset: what it saw before may go
  connection.locked([&] {
    if (state.seen_resets == call.following->resets) std::swap(outdated, call.following->outdated);
  });
  if (outdated) connection.release(*outdated, state.born);

  const auto until = std::min(client::Deadline::after(timeout).at, call.deadline.with_grace());
  const bool in_time = connection.wait_until(call, until, [&] { return anything_new(state); });
  std::optional<Progress> progress;
  bool ended = false;
  connection.locked([&] {
    progress = news(state, connection.mapping());
    ended = call.result.has_value();
  });
  // Bytes first, then the end: but once it is complete there is no point in partial views.
  if (progress && (progress->event == Event::kReset || !ended)) return *progress;
  if (!ended && !in_time && call.deadline.with_grace() > client::Clock::now())
    return call.subject.error(Code::kTimedOut, "no more bytes arrived in time");
  auto view = client::to_view(state.connection, call, connection.wait(call));
  if (!view) {
    state.failed = view.error();
    return view.error();
  }
  state.complete = *std::move(view);
  return Progress{Event::kComplete, state.complete.bytes(), state.complete.size()};
}

View Follower::view() const { return state_->complete; }

bool Follower::ended() const { return state_->complete || state_->failed; }

}  // namespace hoplite
