#include "dataplane/downstream.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace hoplite::dataplane {

std::uint64_t Downstream::Serve::ready_until() const {
  const std::uint64_t front = buffer->sealed() ? end : buffer->valid(slice).front();
  return std::max(next, std::min(front, limit));
}

Downstream::Downstream(Host& host, NodeRef child, ChannelId channel, const Limits& limits, std::uint64_t turn_bytes,
                       const MakeLink& make)
    : host_(host),
      child_(child),
      channel_(channel),
      limits_(limits),
      scheduler_({turn_bytes, std::min<std::uint64_t>(turn_bytes, limits.shared_frame_bytes), limits.least_share}) {
  link_ = make(*this);
}

void Downstream::break_off() {
  if (broken()) return;
  dead_link_ = std::move(link_);
  asked_.clear();
  while (!serves_.empty()) end(serves_.begin()->first, FrameType::kAbort, Code::kUnavailable);
  host_.link_broken();
}

// --- what the child says

bool Downstream::on_frame(const FrameHeader& frame, ByteView body) {
  if (link_->queued_bytes() > limits_.max_queued_frames_bytes) return false;  // it asks and asks, and does not read
  switch (frame.type) {
    case FrameType::kPull: return handle_pull(frame, body);
    case FrameType::kCancel: return body.empty() && handle_cancel(frame.transfer);
    case FrameType::kLimit: return body.empty() && handle_limit(frame.transfer, frame.offset);
    case FrameType::kPrioritize: return body.empty() && handle_priority(frame.transfer, frame.offset);
    default: return false;  // the parent's own
  }
}

bool Downstream::handle_pull(const FrameHeader& frame, ByteView body) {
  PullRequest pull;
  Reader reader(body);
  pull.fields(reader);
  if (!reader.ok() || !reader.rest().empty() || pull.transfer != frame.transfer || pull.transfer == 0) return false;
  if (pull.slices == 0 || pull.slices > limits_.max_slices || pull.slice >= pull.slices) return false;
  if (serves_.contains(pull.transfer) || asked_.contains(pull.transfer)) return false;
  if (asked_.size() >= limits_.max_asked_pulls) {
    say(FrameType::kAbort, pull.transfer, Code::kUnavailable);
    pump();
    return true;
  }
  asked_.emplace(pull.transfer, Asked{});
  host_.pull_asked(child_, channel_, pull);
  return true;
}

bool Downstream::handle_cancel(TransferId transfer) {
  if (serves_.contains(transfer)) end(transfer, FrameType::kAbort, Code::kCancelled);
  else if (asked_.erase(transfer) > 0) say(FrameType::kAbort, transfer, Code::kCancelled);
  pump();
  return true;
}

bool Downstream::handle_limit(TransferId transfer, std::uint64_t limit) {
  if (const auto asked = asked_.find(transfer); asked != asked_.end()) asked->second.limit = limit;
  const auto it = serves_.find(transfer);
  if (it == serves_.end()) return true;  // it may have ended
  it->second.limit = limit;
  refresh(transfer);
  pump();
  return true;
}

bool Downstream::handle_priority(TransferId transfer, std::uint64_t value) {
  if (value > static_cast<std::uint64_t>(last_enumerator(Priority{}))) return false;
  const auto priority = static_cast<Priority>(value);
  if (const auto asked = asked_.find(transfer); asked != asked_.end()) asked->second.priority = priority;
  const auto it = serves_.find(transfer);
  if (it == serves_.end()) return true;
  scheduler_.prioritize(transfer, priority);
  host_.uplink().remove(it->second.priority);
  host_.uplink().add(priority);
  it->second.priority = priority;
  host_.serve_prioritized(it->second.id, priority);
  return true;
}

// --- what the loop thread says

bool Downstream::accept(ServeId serve, const BufferPtr& buffer, const PullRequest& pull) {
  const auto asked = asked_.extract(pull.transfer);
  const bool still_wanted = !asked.empty();
  const SliceRange range = slice_range(buffer->size(), std::max(pull.slices, 1U), pull.slice);
  const bool fits =
      buffer->can_serve(pull.slice, pull.slices) && pull.offset >= range.begin && pull.offset <= range.end;
  if (!still_wanted || !fits) {
    if (still_wanted) say(FrameType::kAbort, pull.transfer, Code::kInvalidArgument);
    pump();
    return false;
  }
  const auto changed = asked.mapped().priority;
  const Priority priority = changed.value_or(pull.priority);
  Serve state{serve, buffer, pull.slice, priority, pull.offset, range.end};
  state.sent_at = host_.now();
  state.limit = asked.mapped().limit;
  serves_.emplace(pull.transfer, std::move(state));
  // What is combined with others, and what is passed on as it is.
  const std::uint64_t part = std::uint64_t{pull.slice} * 2 + (pull.slot ? 1 : 0);
  scheduler_.add(pull.transfer, {priority, pull.target}, part);
  host_.uplink().add(priority);
  say(FrameType::kAccept, pull.transfer);
  host_.serve_began(*this, pull.transfer, serve, *buffer);
  if (changed) host_.serve_prioritized(serve, *changed);
  refresh(pull.transfer);
  pump();
  return true;
}

void Downstream::refuse(TransferId transfer, Code code) {
  if (asked_.erase(transfer) == 0) return;
  say(FrameType::kAbort, transfer, code);
  pump();
}

void Downstream::stop(TransferId transfer, Code code) {
  if (!serves_.contains(transfer)) return;
  end(transfer, FrameType::kAbort, code);
  pump();
}

void Downstream::refresh(TransferId transfer) {
  const auto it = serves_.find(transfer);
  if (it == serves_.end()) return;
  const Serve& serve = it->second;
  // Final is read first: what it promises is then among the valid bytes.
  const bool final = serve.buffer->final(serve.slice);
  scheduler_.set_ready(transfer, serve.next < serve.ready_until());
  const bool in_frame = sending_ && sending_of_ == transfer;
  if (!in_frame && final && serve.next == serve.end) end(transfer, FrameType::kEnd, Code::kOk);
}

void Downstream::end(TransferId transfer, FrameType how, Code code) {
  const auto it = serves_.find(transfer);
  if (sending_ && sending_of_ == transfer) {
    sending_of_ = 0;
    if (link_) link_->detach();
  }
  say(how, transfer, code);
  scheduler_.remove(transfer);
  const Serve serve = std::move(it->second);
  serves_.erase(it);
  host_.uplink().remove(serve.priority);
  host_.serve_ended(*this, transfer, serve.id, *serve.buffer);
}

void Downstream::say(FrameType type, TransferId transfer, Code code) {
  if (!broken()) link_->send({.type = type, .code = code, .transfer = transfer});
}

void Downstream::tick() {
  if (broken()) return;
  const Time now = host_.now();
  const bool drained = link_->queued_bytes() == 0;
  for (auto& [transfer, serve] : serves_) {
    if (drained) serve.sign_queued = false;
    if (now - serve.sent_at < limits_.starved_every || serve.sign_queued) continue;
    say(FrameType::kStarved, transfer);
    serve.sign_queued = true;
    serve.sent_at = now;
  }
  pump();
}

// --- sending

void Downstream::pump() {
  while (!broken() && !sending_ && send_next()) continue;
  if (!broken() && !sending_) link_->flush();
}

// False: there is nothing to send, or the link takes no more now.
bool Downstream::send_next() {
  const auto turn = scheduler_.next();
  if (!turn) return false;
  const TransferId transfer = turn->stream;
  Serve& serve = serves_.at(transfer);
  const Time now = host_.now();
  const std::uint64_t admitted = host_.uplink().admitted(now, turn->priority);
  if (admitted == 0) return false;  // the lane calls when more urgent ones are over, or have left it a share
  const std::uint64_t length = std::min({serve.ready_until() - serve.next, turn->max_bytes, admitted});
  const FrameHeader frame{.type = FrameType::kData,
                          .length = static_cast<std::uint32_t>(length),
                          .transfer = transfer,
                          .offset = serve.next};
  const bool more = frame.offset + frame.length < serve.end;
  const Link::Sent sent = link_->send_data(frame, serve.buffer->at(serve.next), more);
  if (sent == Link::Sent::kNothing || broken()) return false;
  serve.next += frame.length;
  sending_ = true;
  sending_of_ = transfer;
  scheduler_.set_ready(transfer, serve.next < serve.ready_until());
  scheduler_.taken(transfer, frame.length);
  host_.uplink().sent(now, turn->priority, frame.length);
  if (sent == Link::Sent::kPart) return false;
  frame_sent();
  return true;
}

void Downstream::on_writable() {
  if (sending_) frame_sent();
  pump();
}

void Downstream::frame_sent() {
  sending_ = false;
  const auto it = serves_.find(sending_of_);
  if (it == serves_.end()) return;
  it->second.sent_at = host_.now();
  refresh(sending_of_);
}

}  // namespace hoplite::dataplane
