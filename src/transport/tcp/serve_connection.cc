#include "transport/tcp/serve_connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

namespace hoplite::tcp {
namespace {

// While streams take turns: 4 ms at 500 Mbit/s, and still long enough to cost nothing in headers.
constexpr std::uint64_t kSharedFrameBytes = 256 * kKiB;
constexpr std::uint64_t kSendBytes = kMiB;    // per event of the loop: then other connections have their turn
constexpr std::size_t kMaxAsked = 4096;       // pulls of one child that wait for an answer
constexpr std::size_t kMaxQueueBytes = kMiB;  // short frames for a child that does not read
constexpr std::size_t kInputBytes = 4 * kKiB;
// A flowing stream fills the segment within this time at 12 Mbit/s; a slower one does not mind small segments.
constexpr Duration kTailDelay = Duration::ms(1);

StreamScheduler::Options scheduler_options(const BulkContext& context) {
  const std::uint64_t frame = context.limits.max_frame_bytes;
  const std::uint64_t shared = std::min(frame, kSharedFrameBytes);
  // Under a rate limit the wire is slow for certain. One frame at a time: the next choice is made when its last byte is
  // in the kernel.
  return {context.limiter.unlimited() ? frame : shared, shared, frame};
}

// Cuts the list of parts down to `bytes`; returns their sum.
std::uint64_t trim(std::span<iovec> parts, std::uint64_t bytes) {
  std::uint64_t left = bytes;
  for (iovec& part : parts) {
    part.iov_len = std::min<std::uint64_t>(part.iov_len, left);
    left -= part.iov_len;
  }
  return bytes - left;
}

}  // namespace

ServeConnection::ServeConnection(const BulkContext& context, UniqueFd fd, NodeRef child, ChannelId channel)
    : context_(context),
      fd_(std::move(fd)),
      child_(child),
      channel_(channel),
      counted_(context.counters),
      scheduler_(scheduler_options(context)) {
  tune_bulk(fd_.get());
  context_.loop.add(fd_.get(), EPOLLIN, [this](std::uint32_t events) { on_event(events); });
}

ServeConnection::~ServeConnection() {
  give_back_tokens();
  context_.loop.cancel(token_timer_);
  context_.loop.cancel(tail_timer_);
  if (fd_) context_.loop.remove(fd_.get());
}

void ServeConnection::break_off() {
  if (std::exchange(broken_, true)) return;
  context_.loop.cancel(std::exchange(token_timer_, 0));
  context_.loop.cancel(std::exchange(tail_timer_, 0));
  context_.loop.remove(fd_.get());
  fd_.reset();
  give_back_tokens();
  asked_.clear();
  while (!serves_.empty()) end(serves_.begin()->first, FrameType::kAbort, Code::kUnavailable);
  context_.host.connection_broken();
}

// --- what the child says

void ServeConnection::on_event(std::uint32_t events) {
  if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive();
  if (broken_) return;
  if (events & EPOLLOUT) blocked_ = more_to_send_ = false;
  pump();
}

void ServeConnection::receive() {
  std::array<char, kInputBytes> buffer;
  const ssize_t got = recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0 && would_block(errno)) return;
  if (got <= 0) return break_off();
  input_.append(buffer.data(), static_cast<std::size_t>(got));
  if (!handle_frames() || queue_.size() - queue_sent_ > kMaxQueueBytes) break_off();
}

// False if the child does not keep to the protocol.
bool ServeConnection::handle_frames() {
  std::size_t used = 0;
  while (input_.size() - used >= FrameHeader::kSize) {
    FrameHeader frame;
    if (!FrameHeader::decode(reinterpret_cast<const std::byte*>(input_.data()) + used, frame)) return false;
    if (frame.length > PullRequest::kMaxEncoded) return false;
    if (input_.size() - used - FrameHeader::kSize < frame.length) break;
    const std::string body = input_.substr(used + FrameHeader::kSize, frame.length);
    used += FrameHeader::kSize + frame.length;
    if (frame.type == FrameType::kPull) {
      if (!handle_pull(frame, body)) return false;
    } else if (frame.type == FrameType::kCancel && body.empty()) {
      handle_cancel(frame.transfer);
    } else {
      return false;
    }
  }
  input_.erase(0, used);
  return true;
}

bool ServeConnection::handle_pull(const FrameHeader& frame, const std::string& body) {
  PullRequest pull;
  Reader reader(as_bytes(body));
  pull.fields(reader);
  if (!reader.ok() || !reader.rest().empty() || pull.transfer != frame.transfer) return false;
  if (pull.slices == 0 || pull.slices > context_.limits.max_slices || pull.slice >= pull.slices)
    return false;
  if (serves_.contains(pull.transfer) || asked_.contains(pull.transfer)) return false;
  if (asked_.size() >= kMaxAsked) {
    queue_frame(FrameType::kAbort, pull.transfer, Code::kUnavailable);
    return true;
  }
  asked_.insert(pull.transfer);
  context_.host.emit(bulk_event::PullAsked{child_, channel_, pull});
  return true;
}

void ServeConnection::handle_cancel(TransferId transfer) {
  if (serves_.contains(transfer)) return end(transfer, FrameType::kAbort, Code::kCancelled);
  if (asked_.erase(transfer) > 0) queue_frame(FrameType::kAbort, transfer, Code::kCancelled);
}

// --- what the loop thread says

void ServeConnection::accept(ServeId serve, const CopyPtr& copy, const PullRequest& pull) {
  const bool still_wanted = asked_.erase(pull.transfer) > 0;
  const SliceRange range = slice_range(copy->size(), std::max(pull.slices, 1U), pull.slice);
  const bool fits = copy->can_serve(pull.slice, pull.slices) && pull.offset >= range.begin && pull.offset <= range.end;
  if (!still_wanted || !fits) {
    if (still_wanted) queue_frame(FrameType::kAbort, pull.transfer, Code::kInvalidArgument);
    context_.host.emit(bulk_event::ServeEnded{serve});
    return pump();
  }
  const Time now = context_.loop.now();
  Serve state{serve, copy, pull.slice, pull.offset, range.end};
  state.sent_at = now;
  serves_.emplace(pull.transfer, std::move(state));
  const Time deadline = pull.deadline_ms > 0 ? now + Duration::ms(pull.deadline_ms) : Time::never();
  // What is combined with others, and what is passed on as it is.
  const std::uint64_t part = std::uint64_t{pull.slice} * 2 + (pull.slot ? 1 : 0);
  scheduler_.add(pull.transfer, {static_cast<std::uint8_t>(2 - static_cast<int>(pull.priority)), deadline, pull.target}, part);
  queue_frame(FrameType::kAccept, pull.transfer, Code::kOk);
  context_.host.serve_began(*this, pull.transfer, serve, *copy);
  refresh(pull.transfer);
  pump();
}

void ServeConnection::refuse(TransferId transfer, Code code) {
  if (asked_.erase(transfer) == 0) return;
  queue_frame(FrameType::kAbort, transfer, code);
  pump();
}

void ServeConnection::stop(TransferId transfer, Code code) {
  if (!serves_.contains(transfer)) return;
  end(transfer, FrameType::kAbort, code);
  pump();
}

void ServeConnection::refresh(TransferId transfer) {
  const auto it = serves_.find(transfer);
  if (it == serves_.end()) return;
  const Serve& serve = it->second;
  // Final is read first: what it promises is then in the watermark.
  const bool final = serve.copy->final(serve.slice);
  const bool has_more = serve.next < serve.valid_end();
  scheduler_.set_ready(transfer, has_more);
  const bool in_frame = frame_.active && frame_.transfer == transfer;
  if (!in_frame && final && serve.next == serve.end) end(transfer, FrameType::kEnd, Code::kOk);
}

void ServeConnection::end(TransferId transfer, FrameType how, Code code) {
  const auto it = serves_.find(transfer);
  if (frame_.begun() && frame_.transfer == transfer) detach_frame();
  queue_frame(how, transfer, code);
  scheduler_.remove(transfer);
  const Serve serve = std::move(it->second);
  serves_.erase(it);
  context_.host.serve_ended(*this, transfer, serve.id, *serve.copy);
  context_.host.emit(bulk_event::ServeEnded{serve.id});
}

void ServeConnection::queue_frame(FrameType type, TransferId transfer, Code code) {
  if (broken_) return;
  FrameHeader frame;
  frame.type = type;
  frame.transfer = transfer;
  frame.code = code;
  const auto bytes = frame.encode();
  queue_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void ServeConnection::tick(Time now) {
  for (auto& [transfer, serve] : serves_) {
    if (now - serve.sent_at < context_.limits.starved_every || serve.sign_in_queue == drains_) continue;
    queue_frame(FrameType::kStarved, transfer, Code::kOk);
    serve.sign_in_queue = drains_;
    serve.sent_at = now;
  }
  pump();
}

// --- sending

void ServeConnection::pump() {
  std::uint64_t budget = kSendBytes;
  while (!broken_ && !blocked_ && !more_to_send_ && token_timer_ == 0) {
    if (!frame_.active) begin_frame();
    if (!frame_.active && queue_sent_ == queue_.size()) break;
    if (!send_some(budget)) break;
    more_to_send_ = budget == 0;
  }
  if (broken_) return;
  if (frame_.active && !frame_.begun()) take_back_frame();
  if (token_timer_ == 0) give_back_tokens();
  if (tail_held_ && !frame_.active) push_tail_soon();
  watch();
}

void ServeConnection::begin_frame() {
  const auto turn = scheduler_.next();
  if (!turn) return;
  Serve& serve = serves_.at(turn->stream);
  const std::uint64_t available = serve.valid_end() - serve.next;
  FrameHeader header;
  header.type = FrameType::kData;
  header.transfer = turn->stream;
  header.offset = serve.next;
  header.length = static_cast<std::uint32_t>(std::min(available, turn->max_bytes));
  frame_ = Frame{};
  frame_.active = true;
  frame_.transfer = turn->stream;
  frame_.header = header.encode();
  frame_.payload = serve.copy->at(serve.next);
  frame_.payload_bytes = header.length;
  serve.next += header.length;
  frame_.last_of_slice = serve.next == serve.end;
  scheduler_.set_ready(turn->stream, serve.next < serve.valid_end());
}

// Nothing of it was sent: whose turn it is will be decided again.
void ServeConnection::take_back_frame() {
  serves_.at(frame_.transfer).next -= frame_.payload_bytes;
  scheduler_.set_ready(frame_.transfer, true);
  frame_ = Frame{};
}

// The frame's stream is ending; its extent may be used for something else from now on.
void ServeConnection::detach_frame() {
  frame_.transfer = 0;
  frame_.detached.assign(reinterpret_cast<const char*>(frame_.payload), frame_.payload_bytes);
  frame_.payload = reinterpret_cast<const std::byte*>(frame_.detached.data());
}

// A frame that has begun goes first, then the short frames, then a new frame.
std::size_t ServeConnection::gather(std::array<iovec, 3>& parts) const {
  std::size_t count = 0;
  const auto add = [&](const void* data, std::uint64_t size) {
    if (size > 0) parts[count++] = {const_cast<void*>(data), size};
  };
  if (!frame_.begun()) add(queue_.data() + queue_sent_, queue_.size() - queue_sent_);
  if (!frame_.active) return count;
  const std::uint64_t header_sent = std::min<std::uint64_t>(frame_.sent, FrameHeader::kSize);
  const std::uint64_t payload_sent = frame_.sent - header_sent;
  add(frame_.header.data() + header_sent, FrameHeader::kSize - header_sent);
  add(frame_.payload + payload_sent, frame_.payload_bytes - payload_sent);
  return count;
}

// One system call. False if no more can be sent now.
bool ServeConnection::send_some(std::uint64_t& budget) {
  std::array<iovec, 3> parts;
  std::size_t count = gather(parts);
  std::uint64_t wanted = 0;
  for (std::size_t i = 0; i < count; ++i) wanted += parts[i].iov_len;
  if (!context_.limiter.unlimited()) {
    if (tokens_ == 0 && !take_tokens(wanted)) return false;
    wanted = trim({parts.data(), count}, std::min(wanted, tokens_));
  }
  // A relay sends what it has just received, in odd lengths; the kernel keeps a last piece that fills no segment until
  // more comes, which saves the wire one header for each. The end of a slice goes out at once.
  const bool more_will_come = frame_.active && !frame_.last_of_slice;
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  const ssize_t result = sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL | (more_will_come ? MSG_MORE : 0));
  if (result < 0 && !would_block(errno)) return break_off(), false;
  const auto sent = static_cast<std::uint64_t>(std::max<ssize_t>(result, 0));
  tokens_ -= std::min(tokens_, sent);
  if (sent > 0) {
    tail_held_ = more_will_come;
    sent_at_ = context_.loop.now();
  }
  budget -= std::min(budget, sent);
  account(sent);
  blocked_ = sent < wanted;
  return !blocked_;
}

void ServeConnection::account(std::uint64_t sent) {
  if (!frame_.begun()) {
    const std::uint64_t from_queue = std::min<std::uint64_t>(sent, queue_.size() - queue_sent_);
    queue_sent_ += from_queue;
    sent -= from_queue;
    if (queue_sent_ == queue_.size()) {
      queue_.clear();
      queue_sent_ = 0;
      ++drains_;
    }
  }
  if (!frame_.active || sent == 0) return;
  const std::uint64_t header_left = FrameHeader::kSize - std::min<std::uint64_t>(frame_.sent, FrameHeader::kSize);
  const std::uint64_t payload = sent - std::min(sent, header_left);
  if (!frame_.begun()) scheduler_.taken(frame_.transfer, frame_.payload_bytes);
  frame_.sent += sent;
  scheduler_.passed_on(payload);
  context_.counters.bulk_bytes_out.fetch_add(payload, std::memory_order_relaxed);
  if (frame_.sent == frame_.size()) finish_frame();
}

void ServeConnection::finish_frame() {
  const TransferId transfer = frame_.transfer;
  frame_ = Frame{};
  const auto it = serves_.find(transfer);
  if (it == serves_.end()) return;
  it->second.sent_at = context_.loop.now();
  refresh(transfer);
}

// False if they are for later: a timer will go on.
bool ServeConnection::take_tokens(std::uint64_t wanted) {
  const Time now = monotonic_now();
  const auto grant = context_.limiter.take(now, wanted);
  tokens_ = grant.bytes;
  if (grant.at <= now) return true;
  token_timer_ = context_.loop.at(grant.at, [this] {
    token_timer_ = 0;
    pump();
  });
  return false;
}

void ServeConnection::give_back_tokens() { context_.limiter.give_back(std::exchange(tokens_, 0)); }

void ServeConnection::push_tail_soon() {
  if (tail_timer_ != 0) return;
  tail_timer_ = context_.loop.at(sent_at_ + kTailDelay, [this] {
    tail_timer_ = 0;
    if (!tail_held_ || frame_.active) return;
    if (context_.loop.now() - sent_at_ < kTailDelay) return push_tail_soon();
    tail_held_ = false;
    push_held_tail(fd_.get());
  });
}

void ServeConnection::watch() {
  context_.loop.modify(fd_.get(), blocked_ || more_to_send_ ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

}  // namespace hoplite::tcp
