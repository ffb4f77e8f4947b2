#include "dataplane/upstream.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace hoplite::dataplane {

Upstream::Upstream(Host& host, LinkDialler& dialler, NodeRef parent, const Address& address, const Limits& limits)
    : host_(host), parent_(parent), limits_(limits), idle_since_(host.now()) {
  link_ = dialler.dial(parent, address, *this);
}

void Upstream::start(const BufferPtr& buffer, const PullRequest& request, Duration patience) {
  const ValidBytes valid = buffer->valid(request.slice);
  CHECK(request.offset == valid.front(), "a pull begins behind the valid bytes", request.offset, valid.front());
  Pull pull{buffer, request.slice, valid, patience};
  pull.heard_at = host_.now();
  CHECK(pulls_.emplace(request.transfer, std::move(pull)).second, "transfer numbers are used once", request.transfer);
  std::string body;
  Writer writer(body);
  PullRequest encoded = request;
  encoded.fields(writer);
  link_->send({.type = FrameType::kPull, .transfer = request.transfer}, as_bytes(body));
  link_->flush();
}

void Upstream::cancel(TransferId transfer) {
  if (!pulls_.contains(transfer)) return;
  end(transfer, PullEnd::kCancelled);
  say(FrameType::kCancel, transfer);
}

void Upstream::prioritize(TransferId transfer, Priority priority) {
  say(FrameType::kPrioritize, transfer, static_cast<std::uint64_t>(priority));
}

void Upstream::limit(TransferId transfer, std::uint64_t more_bytes) {
  Pull& pull = pulls_.at(transfer);
  const std::uint64_t before = pull.limit == kNoLimit ? 0 : pull.limit;
  pull.limit = std::max(before, pull.valid.front()) + more_bytes;
  say(FrameType::kLimit, transfer, pull.limit);
}

void Upstream::let_go(TransferId transfer) {
  pulls_.at(transfer).limit = kNoLimit;
  say(FrameType::kLimit, transfer, kNoLimit);
}

void Upstream::say(FrameType type, TransferId transfer, std::uint64_t offset) {
  if (broken()) return;
  link_->send({.type = type, .transfer = transfer, .offset = offset});
  link_->flush();
}

void Upstream::end(TransferId transfer, PullEnd how) {
  const auto it = pulls_.find(transfer);
  if (arriving_ == transfer) arriving_ = 0;
  const ValidBytes valid = it->second.valid;
  pulls_.erase(it);
  if (pulls_.empty()) idle_since_ = host_.now();
  host_.pull_ended(transfer, how, valid);
}

void Upstream::break_off() {
  if (broken()) return;
  dead_link_ = std::move(link_);
  while (!pulls_.empty()) end(pulls_.begin()->first, PullEnd::kConnectionLost);
  host_.link_broken();
}

void Upstream::tick() {
  const Time now = host_.now();
  for (auto& [transfer, pull] : pulls_) {
    // While frames of other streams take their time on a slow link, this one's parent is not silent.
    const bool busy = now - heard_at_ < pull.patience;
    const Time heard = pull.accepted ? std::max(pull.heard_at, heard_at_) : pull.heard_at;
    const Duration patience = pull.patience * (pull.accepted || !busy ? 1 : limits_.queued_stalls);
    if (pull.silent || now - heard < patience) continue;
    pull.silent = true;
    host_.pull_silent(transfer);
  }
}

void Upstream::forgive_silence(Duration lost) {
  heard_at_ = heard_at_ + lost;
  for (auto& [transfer, pull] : pulls_) pull.heard_at = pull.heard_at + lost;
}

// --- from the parent

bool Upstream::on_data(const FrameHeader& frame) {
  heard_at_ = host_.now();
  if (frame.length == 0 || frame.length > limits_.max_frame_bytes) return false;
  arriving_ = 0;
  const auto it = pulls_.find(frame.transfer);
  if (it == pulls_.end()) return true;  // ended by us a moment ago
  const Pull& pull = it->second;
  if (!pull.accepted || frame.offset != pull.valid.front() || frame.length > pull.valid.missing()) return false;
  arriving_ = frame.transfer;
  return true;
}

std::byte* Upstream::data_place() {
  if (arriving_ == 0) return nullptr;
  const Pull& pull = pulls_.at(arriving_);
  return pull.buffer->at(pull.valid.front());
}

void Upstream::on_data_bytes(std::uint64_t count) {
  heard_at_ = host_.now();
  if (arriving_ == 0) return;
  Pull& pull = pulls_.at(arriving_);
  pull.valid.extend_to(pull.valid.front() + count);
  pull.heard_at = heard_at_;
  pull.silent = false;
  const BufferPtr buffer = pull.buffer;
  buffer->set_valid(pull.slice, pull.valid);
  host_.pull_received(arriving_, count);
  host_.buffer_advanced(*buffer);
}

bool Upstream::on_frame(const FrameHeader& frame, ByteView body) {
  heard_at_ = host_.now();
  const bool parents = frame.type == FrameType::kAccept || frame.type == FrameType::kStarved ||
                       frame.type == FrameType::kEnd || frame.type == FrameType::kAbort;
  if (!parents || !body.empty()) return false;
  const auto it = pulls_.find(frame.transfer);
  if (it == pulls_.end()) return true;
  Pull& pull = it->second;
  pull.heard_at = heard_at_;
  pull.silent = false;
  if (frame.type == FrameType::kAccept) {
    if (std::exchange(pull.accepted, true)) return false;
    host_.pull_accepted(frame.transfer);
    return true;
  }
  if (frame.type == FrameType::kAbort) {
    end(frame.transfer, pull.accepted ? PullEnd::kAborted : PullEnd::kRefused);
    return true;
  }
  if (frame.type == FrameType::kStarved) return pull.accepted;
  if (!pull.accepted || !pull.valid.complete()) return false;
  const BufferPtr buffer = pull.buffer;
  buffer->set_final(pull.slice);
  host_.buffer_advanced(*buffer);
  end(frame.transfer, PullEnd::kComplete);
  return true;
}

}  // namespace hoplite::dataplane
