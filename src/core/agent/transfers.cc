// Pulling from parents and serving children: what Pulls and Serves report meets records and copies here.
#include <algorithm>

#include "base/check.h"
#include "base/coverage.h"
#include "core/agent/impl.h"

namespace hoplite {

// --- as a child ----------------------------------------------------------------------------------------------------------

// False: there is no way to this parent.
bool Agent::Impl::start_pull(Copy& copy, std::uint32_t slice, NodeRef parent) {
  const Address* address = parent.id == self().id ? nullptr : out_.depend_on(parent.id);
  if (address == nullptr) {
    fetches_.avoid(copy.id, parent.id);
    return false;
  }
  copy.slices[slice].state = SliceState::kAsked;
  PullRequest pull;
  pull.id = pull.target = copy.id;
  pull.version = copy.version;
  pull.slice = slice;
  pull.slices = copy.slice_count();
  pull.offset = copy.slices[slice].valid.front();
  // Those that are parked do not count: they depend on nothing yet, so they cannot be part of a cycle.
  pull.has_children = serves_.children(copy.key, slice) > 0;
  pull.priority = demand(copy, slice);
  pull.ticket = copy.slices[slice].ticket;
  pulls_.start(table_.use(copy, CopyUser::kPull), {parent, *address, pull}, out_.effects());
  return true;
}

void Agent::Impl::on(const event::PullAccepted& e) {
  const auto accepted = pulls_.on_accepted(e.transfer);
  if (accepted && std::holds_alternative<Pulls::FetchOf>(accepted->owner)) fetch_accepted(*accepted);
}

void Agent::Impl::fetch_accepted(const Pulls::Accepted& e) {
  Copy& copy = table_.at(e.copy);
  CHECK(copy.is_growing() && copy.slices[e.slice].state == SliceState::kAsked, e.copy, e.slice);
  copy.slices[e.slice].state = SliceState::kAttached;
  records_.can_be_pulled(copy.id);
}

void Agent::Impl::on(const event::PullSilent& e) { pulls_.on_silent(e.transfer, out_.effects()); }

void Agent::Impl::on(const event::PullEnded& e) {
  const auto ended = pulls_.on_ended(e);
  if (!ended) return;
  if (const auto* input = std::get_if<Pulls::InputOf>(&ended->owner)) slots_.on_input_ended(*input, *ended);
  else fetch_ended(*ended);
}

void Agent::Impl::fetch_ended(const Pulls::Ended& e) {
  Copy& copy = table_.at(e.copy);
  CopySlice& slice = copy.slices[e.slice];
  CHECK(copy.is_growing() && !slice.is_done(), e.copy, e.slice);
  slice.valid.extend_to(std::clamp(e.valid.front(), slice.valid.front(), slice.valid.slice().end));
  Record& r = records_.at(copy.id);
  if (e.how == PullEnd::kComplete) {
    CHECK(slice.valid.complete(), copy.id, slice.valid.front(), slice.valid.missing());
    slice.state = SliceState::kDone;
    records_.can_be_pulled(copy.id);
    if (std::ranges::all_of(copy.slices, &CopySlice::is_done)) complete_fetch(r, copy);
    return;
  }
  slice.state = SliceState::kMissing;
  records_.touch(copy.id);
  if (is_unwanted(r)) return;
  // That we have no path to it says nothing about it.
  if (!out_.is_detour(e.parent.id)) fetches_.avoid(copy.id, e.parent.id);
  const Duration pause = pulls_.pause_after(e.failures);
  if (pause == Duration{}) return fetches_.ask(want_of(r));
  COVERAGE_MARK(fetch_backs_off);
  fetches_.ask_later(copy.id, pause);
}

// At what rate the fetch went, KiB/s; 0 if that says little about links: small objects, and those that were still written.
std::uint32_t Agent::Impl::pace_kib(const Copy& copy) const {
  if (copy.extent.size < limits_.worth_measuring_bytes || !copy.timed_since) return 0;
  const double seconds = std::max((out_.now() - *copy.timed_since).seconds(), 1e-6);
  const double rate_kib = std::clamp(static_cast<double>(copy.extent.size) / seconds / 1024, 1.0, 4e9);
  return static_cast<std::uint32_t>(rate_kib);
}

void Agent::Impl::complete_fetch(const Record& record, Copy& copy) {
  copies_.complete(copy);
  pulls_.forget(copy.key);
  fetches_.end(copy.id);
  ferries_.end(copy.id);
  announcer_.tell(record, pace_kib(copy));
  gets_.fulfil(copy.id);
  became_ready(record);
  records_.can_be_pulled(copy.id);
}

// --- as a parent ---------------------------------------------------------------------------------------------------------

void Agent::Impl::on(const event::PullAsked& e) {
  // A peer that we have not heard of yet is welcome: it proved that it belongs here.
  const bool known = membership_.address_of(e.peer.id) != nullptr;
  const bool sane = e.pull.slices >= 1 && e.pull.slices <= limits_.max_slices && e.pull.slice < e.pull.slices;
  const Serves::Asked asked{e.peer, e.channel, e.pull, out_.now()};
  if (!sane || (known && !membership_.is_alive(e.peer))) return Serves::refuse(asked, out_.effects());
  consider_pull(asked);
}

void Agent::Impl::consider_pull(const Serves::Asked& asked) {
  const PullRequest& pull = asked.pull;
  Copy* copy = records_.copy_of(pull.id);
  if (copy == nullptr || copy->version != pull.version) {
    if (Copy* output = slots_.exported(pull.id, pull.version); output != nullptr)
      return slots_.may_pull(*output, pull) ? accept_pull(*output, asked) : Serves::refuse(asked, out_.effects());
    // Its order is on the way. Or the child is faster than the home's word to us: what we have asked for, we may get.
    const bool expected = pull.slot || (copy == nullptr && fetches_.is_asking(pull.id));
    if (expected) return serves_.park(out_.now(), asked, out_.effects());
    COVERAGE_MARK(pull_refused_no_such_copy);
    announcer_.withdraw(records_.home(pull.id), pull.id, pull.version);  // somebody believes that we have it
    return Serves::refuse(asked, out_.effects());
  }
  switch (Serves::judge(pull, source_of(*copy, pull.slice))) {
    case Serves::Verdict::kAccept: return accept_pull(*copy, asked);
    case Serves::Verdict::kPark: return serves_.park(out_.now(), asked, out_.effects());
    case Serves::Verdict::kRefuse: return Serves::refuse(asked, out_.effects());
  }
}

Serves::Source Agent::Impl::source_of(const Copy& copy, std::uint32_t slice) const {
  using Here = Serves::Source::Here;
  Serves::Source source{copy.extent.size, copy.slice_count(), Here::kWhole, 0};
  if (copy.is_complete()) return source;
  if (copy.life() == CopyLife::kWriting) {
    source.here = puts_.is_claimed(copy.id) ? Here::kProduced : Here::kNotYet;
    source.front = copy.written.front();
    return source;
  }
  if (slice >= copy.slices.size() || copy.slices[slice].is_done()) return source;
  const bool attached = copy.slices[slice].state == SliceState::kAttached;
  source.here = !attached ? Here::kNotYet : copy.slices[slice].combined ? Here::kProduced : Here::kRelayed;
  source.front = copies_.valid(copy, slice).front();
  if (!copy.slices[slice].combined) source.ticket = copy.slices[slice].ticket;
  return source;
}

void Agent::Impl::accept_pull(Copy& copy, const Serves::Asked& asked) {
  if (copy.in_data_plane() == InDataPlane::kClosing) return Serves::refuse(asked, out_.effects());
  copies_.open(copy);
  table_.touch(copy);
  serves_.accept(table_.use(copy, CopyUser::kServe), asked, out_.effects());
  demand_changed(copy, asked.pull.slice);
}

void Agent::Impl::on(const event::ServeEnded& e) {
  if (const auto served = serves_.end(e.serve)) demand_changed(table_.at(served->copy), served->slice);
}

void Agent::Impl::on(const event::ServePrioritized& e) {
  if (const auto served = serves_.prioritize(e.serve, e.priority))
    demand_changed(table_.at(served->copy), served->slice);
}

// --- priorities ----------------------------------------------------------------------------------------------------------

// Children came or left, or want it at another priority.
void Agent::Impl::demand_changed(const Copy& copy, std::uint32_t slice) {
  if (copy.is_current()) records_.touch(copy.id);
  else slots_.demand_changed(copy.key, slice);
}

// A slice is pulled at the highest priority of all who need it: readers here, and children.
Priority Agent::Impl::demand(const Copy& copy, std::uint32_t slice) const {
  const Priority readers = copy.is_current() ? gets_.highest(copy.id) : Priority::kLow;
  return std::max({copy.least_priority, serves_.highest(copy.key, slice), readers});
}

void Agent::Impl::reprioritize(const Record& record) {
  const Copy* copy = records_.copy_of(record);
  if (copy == nullptr || copy->is_complete()) return;
  for (std::uint32_t i = 0; i < copy->slices.size(); ++i) {
    if (copy->slices[i].combined) slots_.demand_changed(copy->key, i);
    else pulls_.prioritize(copy->key, i, demand(*copy, i), out_.effects());
  }
}

void Agent::Impl::on(const event::CopyClosed& e) {
  table_.closed(table_.at(e.copy));
  slots_.on_closed(e.copy);
}

}  // namespace hoplite
