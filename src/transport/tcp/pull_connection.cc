#include "transport/tcp/pull_connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.h"

namespace hoplite::tcp {
namespace {

constexpr std::uint64_t kReceiveBytes = kMiB;  // per event of the loop: then other connections have their turn
constexpr std::uint64_t kDiscardBytes = 64 * kKiB;

// Nobody reads it; all connections of a thread share it.
thread_local std::array<std::byte, kDiscardBytes> discard_sink;

}  // namespace

PullConnection::PullConnection(const BulkContext& context, NodeRef parent, const Address& address)
    : context_(context),
      parent_(parent),
      address_(address),
      idle_since_(context.loop.now()),
      meter_(context.meters.of(parent.id)) {
  dial_ = std::make_unique<Dial>(context_.loop, context_.identity, Dial::Options{address, Role::kBulk, parent, {}},
                                 [this](Dial::Outcome outcome) { on_dialled(std::move(outcome)); });
}

PullConnection::~PullConnection() {
  if (fd_) context_.loop.remove(fd_.get());
}

void PullConnection::on_dialled(Dial::Outcome outcome) {
  dial_.reset();
  if (outcome.failure) {
    if (outcome.failure->tell_operator) {
      ++context_.counters.rejected;
      context_.host.emit(bulk_event::Refused{address_.host, outcome.failure->why});
    }
    return break_off();
  }
  fd_ = std::move(outcome.fd);
  counted_ = std::make_unique<ConnectionCount>(context_.counters);
  tune_bulk(fd_.get());
  context_.loop.add(fd_.get(), EPOLLIN, [this](std::uint32_t events) { on_event(events); });
  flush();
}

void PullConnection::start(const CopyPtr& copy, const PullRequest& request, Duration patience) {
  CHECK(request.slices == copy->slices() && copy->has(request.slice), request.slice, request.slices);
  CHECK(request.offset == copy->watermark(request.slice), "a pull begins at the watermark", request.offset);
  Pull pull{copy, request.slice, request.offset, copy->range(request.slice).end, patience};
  pull.heard_at = context_.loop.now();
  CHECK(pulls_.emplace(request.transfer, std::move(pull)).second, "transfer numbers are used once", request.transfer);
  std::string body;
  Writer writer(body);
  PullRequest encoded = request;
  encoded.fields(writer);
  FrameHeader frame;
  frame.type = FrameType::kPull;
  frame.transfer = request.transfer;
  queue_frame(frame, body);
}

void PullConnection::cancel(TransferId transfer) {
  if (!pulls_.contains(transfer)) return;
  end(transfer, PullEnd::kCancelled);
  FrameHeader frame;
  frame.type = FrameType::kCancel;
  frame.transfer = transfer;
  queue_frame(frame, {});
}

void PullConnection::end(TransferId transfer, PullEnd how) {
  const auto it = pulls_.find(transfer);
  if (target_ == &it->second) target_ = nullptr;
  const ValidBytes valid{it->second.copy->range(it->second.slice), it->second.next};
  pulls_.erase(it);
  if (pulls_.empty()) idle_since_ = context_.loop.now();
  context_.host.pull_ended(transfer);
  context_.host.emit(bulk_event::PullEnded{transfer, how, valid});
}

void PullConnection::break_off() {
  if (std::exchange(broken_, true)) return;
  dial_.reset();
  counted_.reset();
  if (fd_) {
    context_.loop.remove(fd_.get());
    fd_.reset();
  }
  while (!pulls_.empty()) end(pulls_.begin()->first, PullEnd::kConnectionLost);
  context_.host.connection_broken();
}

void PullConnection::tick(Time now) {
  for (auto& [transfer, pull] : pulls_) {
    // While frames of other streams take their time on a slow link, this one's parent is not silent.
    // Its answer, too, may be queued behind them; but not for ever, as it may also have been parked.
    const bool busy = now - heard_at_ < pull.patience;
    const Time heard = pull.accepted ? std::max(pull.heard_at, heard_at_) : pull.heard_at;
    const Duration patience = pull.patience * (pull.accepted || !busy ? 1 : 4);
    if (pull.silent || now - heard < patience) continue;
    pull.silent = true;
    context_.host.emit(bulk_event::PullSilent{transfer});
  }
}

void PullConnection::forgive_silence(Duration lost) {
  heard_at_ = heard_at_ + lost;
  for (auto& [transfer, pull] : pulls_) pull.heard_at = pull.heard_at + lost;
}

// --- to the parent

void PullConnection::queue_frame(const FrameHeader& frame, const std::string& body) {
  FrameHeader header = frame;
  header.length = static_cast<std::uint32_t>(body.size());
  const auto bytes = header.encode();
  queue_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size()).append(body);
  if (fd_) flush();
}

void PullConnection::flush() {
  while (sent_ < queue_.size()) {
    const ssize_t sent = send(fd_.get(), queue_.data() + sent_, queue_.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && !would_block(errno)) return break_off();
    if (sent < 0) break;
    sent_ += static_cast<std::size_t>(sent);
  }
  const bool blocked = sent_ < queue_.size();
  if (!blocked) {
    queue_.clear();
    sent_ = 0;
  }
  context_.loop.modify(fd_.get(), blocked ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

// --- from the parent

void PullConnection::on_event(std::uint32_t events) {
  if (events & EPOLLOUT) flush();
  if (!broken_ && (events & (EPOLLIN | EPOLLHUP | EPOLLERR))) receive();
}

void PullConnection::receive() {
  constexpr int kMaxCalls = 64;  // of frames that carry little
  received_ = 0;
  for (int i = 0; i < kMaxCalls && received_ < kReceiveBytes; ++i) {
    if (!receive_some()) return;
  }
}

// One system call: the rest of the frame's payload, where it belongs, and the next frame's header behind it. False if
// there is no more to be had now.
bool PullConnection::receive_some() {
  std::array<iovec, 2> parts{};
  std::size_t count = 0;
  std::uint64_t payload_wanted = 0;
  if (payload_left_ > 0) {
    payload_wanted = target_ ? payload_left_ : std::min(payload_left_, kDiscardBytes);
    parts[count++] = {target_ ? target_->copy->at(target_->next) : discard_sink.data(), payload_wanted};
  }
  std::uint64_t wanted = payload_wanted;
  if (payload_wanted == payload_left_) {
    parts[count++] = {header_.data() + header_bytes_, header_.size() - header_bytes_};
    wanted += header_.size() - header_bytes_;
  }
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  const ssize_t result = recvmsg(fd_.get(), &message, MSG_DONTWAIT);
  if (result < 0 && would_block(errno)) return false;
  if (result <= 0) {
    break_off();
    return false;
  }
  heard_at_ = context_.loop.now();
  const auto got = static_cast<std::uint64_t>(result);
  const std::uint64_t payload = std::min(got, payload_wanted);
  if (payload > 0) take_payload(payload);
  header_bytes_ += got - payload;
  if (header_bytes_ == header_.size() && !handle_header()) {
    break_off();
    return false;
  }
  return got == wanted;
}

void PullConnection::take_payload(std::uint64_t bytes) {
  payload_left_ -= bytes;
  received_ += bytes;
  context_.counters.bulk_bytes_in.fetch_add(bytes, std::memory_order_relaxed);
  meter_->record(context_.loop.now(), bytes);
  if (!target_) return;
  Pull& pull = *target_;
  pull.next += bytes;
  pull.heard_at = context_.loop.now();
  pull.silent = false;
  pull.copy->set_watermark(pull.slice, pull.next);
  context_.host.copy_advanced(*pull.copy);
}

// False if the parent does not keep to the protocol.
bool PullConnection::handle_header() {
  FrameHeader frame;
  header_bytes_ = 0;
  if (!FrameHeader::decode(header_.data(), frame)) return false;
  if (frame.type == FrameType::kData) return handle_data(frame);
  return frame.length == 0 && handle_answer(frame);
}

bool PullConnection::handle_data(const FrameHeader& frame) {
  if (frame.length == 0 || frame.length > context_.limits.max_frame_bytes) return false;
  payload_left_ = frame.length;
  target_ = nullptr;
  const auto it = pulls_.find(frame.transfer);
  if (it == pulls_.end()) return true;  // ended by us a moment ago
  Pull& pull = it->second;
  if (!pull.accepted || frame.offset != pull.next || frame.length > pull.end - pull.next) return false;
  target_ = &pull;
  return true;
}

bool PullConnection::handle_answer(const FrameHeader& frame) {
  const auto it = pulls_.find(frame.transfer);
  if (it == pulls_.end()) return frame.type != FrameType::kPull && frame.type != FrameType::kCancel;
  Pull& pull = it->second;
  pull.heard_at = context_.loop.now();
  pull.silent = false;
  switch (frame.type) {
    case FrameType::kAccept:
      if (std::exchange(pull.accepted, true)) return false;
      context_.host.emit(bulk_event::PullAccepted{frame.transfer});
      return true;
    case FrameType::kStarved: return pull.accepted;
    case FrameType::kEnd:
      if (!pull.accepted || pull.next != pull.end) return false;
      pull.copy->set_final(pull.slice);
      context_.host.copy_advanced(*pull.copy);
      end(frame.transfer, PullEnd::kComplete);
      return true;
    case FrameType::kAbort: end(frame.transfer, pull.accepted ? PullEnd::kAborted : PullEnd::kRefused); return true;
    case FrameType::kPull:
    case FrameType::kCancel:
    case FrameType::kData: return false;
  }
  return false;
}

}  // namespace hoplite::tcp
