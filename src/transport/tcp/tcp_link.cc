#include "transport/tcp/tcp_link.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

namespace hoplite::tcp {
namespace {

constexpr std::uint64_t kReceiveBytes = kMiB;  // per event of the loop: then other connections have their turn
constexpr int kReceiveCalls = 64;              // likewise, of frames that carry little
constexpr std::uint64_t kDiscardBytes = 64 * kKiB;
constexpr std::uint64_t kSendBytes = kMiB;  // per batch of the loop: then other connections have their turn
// A flowing stream fills the segment within this time at 12 Mbit/s; a slower one does not mind small segments.
constexpr Duration kTailDelay = Duration::ms(1);

// Nobody reads it; all connections of a thread share it.
thread_local std::array<std::byte, kDiscardBytes> discard_sink;

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

TcpLink::TcpLink(const LinkContext& context, NodeRef parent, const Address& address, dataplane::LinkUser& user)
    : context_(context), user_(user), meter_(context.shared.meters.of(parent.id)) {
  dial_ =
      std::make_unique<Dial>(context_.loop, context_.identity,
                             Dial::Options{context_.shared.options.limits.sockets, address, Role::kBulk, parent, {}},
                             [this, address](Dial::Outcome outcome) { on_dialled(address, std::move(outcome)); });
}

TcpLink::TcpLink(const LinkContext& context, UniqueFd fd, dataplane::LinkUser& user) : context_(context), user_(user) {
  establish(std::move(fd));
}

TcpLink::~TcpLink() { close(); }

void TcpLink::on_dialled(const Address& address, Dial::Outcome outcome) {
  dial_.reset();
  if (outcome.failure) {
    if (outcome.failure->tell_operator) {
      ++context_.shared.counters.rejected;
      context_.shared.strangers.refused(address.host, outcome.failure->why);
    }
    return break_off();
  }
  establish(std::move(outcome.fd));
  flush();
}

void TcpLink::establish(UniqueFd fd) {
  fd_ = std::move(fd);
  counted_ = std::make_unique<ConnectionCount>(context_.shared.counters);
  tune_bulk(fd_.get());
  context_.loop.add(fd_.get(), EPOLLIN, [this](std::uint32_t events) { on_event(events); });
}

void TcpLink::break_off() {
  if (std::exchange(broken_, true)) return;
  close();
  user_.on_broken();
}

void TcpLink::close() {
  dial_.reset();
  counted_.reset();
  context_.loop.cancel(std::exchange(token_timer_, 0));
  context_.loop.cancel(std::exchange(tail_timer_, 0));
  if (fd_) {
    context_.loop.remove(fd_.get());
    fd_.reset();
  }
  give_back_tokens();
}

void TcpLink::on_event(std::uint32_t events) {
  if (events & EPOLLOUT) {
    blocked_ = more_to_send_ = false;
    go_on();
  }
  if (!broken_ && (events & (EPOLLIN | EPOLLHUP | EPOLLERR))) receive();
}

// --- receiving

void TcpLink::receive() {
  received_ = 0;
  for (int i = 0; i < kReceiveCalls && received_ < kReceiveBytes; ++i)
    if (!receive_some()) return;
}

// One system call: the rest of the frame's payload or body, where it belongs, and the next frame's header behind it. False if
// there is no more to be had now.
bool TcpLink::receive_some() {
  std::array<iovec, 2> parts{};
  std::size_t count = 0;
  std::uint64_t content_wanted = 0;
  std::byte* const place = payload_left_ > 0 ? user_.data_place() : nullptr;
  if (payload_left_ > 0) {
    content_wanted = place != nullptr ? payload_left_ : std::min(payload_left_, kDiscardBytes);
    parts[count++] = {place != nullptr ? place : discard_sink.data(), content_wanted};
  } else if (body_bytes_ < body_.size()) {
    content_wanted = body_.size() - body_bytes_;
    parts[count++] = {body_.data() + body_bytes_, content_wanted};
  }
  std::uint64_t wanted = content_wanted;
  if (content_wanted == payload_left_ + body_.size() - body_bytes_) {
    parts[count++] = {header_.data() + header_bytes_, header_.size() - header_bytes_};
    wanted += header_.size() - header_bytes_;
  }
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  const ssize_t result = recvmsg(fd_.get(), &message, MSG_DONTWAIT);
  if (result < 0 && would_block(errno)) return false;
  if (result <= 0) return break_off(), false;
  const auto got = static_cast<std::uint64_t>(result);
  const std::uint64_t content = std::min(got, content_wanted);
  bool sane = true;
  if (content > 0 && payload_left_ > 0) take_payload(content);
  else if (content > 0) sane = (body_bytes_ += content) < body_.size() || take_body();
  header_bytes_ += got - content;
  if (sane && !broken_ && header_bytes_ == header_.size()) sane = take_header();
  if (!sane) break_off();
  return !broken_ && got == wanted;
}

void TcpLink::take_payload(std::uint64_t bytes) {
  payload_left_ -= bytes;
  received_ += bytes;
  context_.shared.counters.bulk_bytes_in.fetch_add(bytes, std::memory_order_relaxed);
  if (meter_) meter_->record(context_.loop.now(), bytes);
  user_.on_data_bytes(bytes);
}

bool TcpLink::take_header() {
  header_bytes_ = 0;
  if (!FrameHeader::decode(header_.data(), frame_)) return false;
  if (frame_.type == FrameType::kData) {
    if (!user_.on_data(frame_)) return false;
    payload_left_ = frame_.length;
    return true;
  }
  if (frame_.length == 0) return user_.on_frame(frame_, {});
  if (frame_.type != FrameType::kPull || frame_.length > PullRequest::kMaxEncoded) return false;
  body_.resize(frame_.length);
  body_bytes_ = 0;
  return true;
}

bool TcpLink::take_body() {
  const std::string body = std::exchange(body_, {});
  body_bytes_ = 0;
  return user_.on_frame(frame_, as_bytes(body));
}

// --- sending

void TcpLink::send(const FrameHeader& frame, ByteView body) {
  FrameHeader header = frame;
  header.length = static_cast<std::uint32_t>(body.size());
  const auto bytes = header.encode();
  queue_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  queue_.append(reinterpret_cast<const char*>(body.data()), body.size());
}

bool TcpLink::can_send() const { return !broken_ && fd_ && !blocked_ && !more_to_send_ && token_timer_ == 0; }

void TcpLink::flush() {
  while (can_send() && !data_.active && queued_bytes() > 0) send_some();
  watch();
}

TcpLink::Sent TcpLink::send_data(const FrameHeader& frame, const std::byte* payload, bool more) {
  user_waits_ = true;
  if (data_.active || !can_send()) return Sent::kNothing;
  data_ = DataFrame{};
  data_.active = true;
  data_.header = frame.encode();
  data_.payload = payload;
  data_.payload_bytes = frame.length;
  data_.more = more;
  while (data_.active && can_send() && send_some()) continue;
  if (broken_) return Sent::kNothing;
  const Sent sent = !data_.active ? Sent::kAll : data_.begun() ? Sent::kPart : Sent::kNothing;
  if (sent == Sent::kAll) user_waits_ = false;
  if (sent == Sent::kNothing) data_ = DataFrame{};  // whose turn it is will be decided again
  watch();
  return sent;
}

void TcpLink::detach() {
  if (!data_.active || !data_.detached.empty()) return;
  data_.detached.assign(reinterpret_cast<const char*>(data_.payload), data_.payload_bytes);
  data_.payload = reinterpret_cast<const std::byte*>(data_.detached.data());
}

// The socket takes more again, or it is our turn: what has begun first.
void TcpLink::go_on() {
  while (data_.active && can_send() && send_some()) continue;
  if (broken_) return;
  if (!data_.active && std::exchange(user_waits_, false)) user_.on_writable();
  else if (!data_.active) flush();
  if (!broken_) watch();
}

// A frame that has begun goes first, then the short frames, then a new frame.
std::size_t TcpLink::gather(std::array<iovec, 3>& parts) const {
  std::size_t count = 0;
  const auto add = [&](const void* data, std::uint64_t size) {
    if (size > 0) parts[count++] = {const_cast<void*>(data), size};
  };
  if (!data_.begun()) add(queue_.data() + queue_sent_, queued_bytes());
  if (!data_.active) return count;
  const std::uint64_t header_sent = std::min<std::uint64_t>(data_.sent, FrameHeader::kSize);
  const std::uint64_t payload_sent = data_.sent - header_sent;
  add(data_.header.data() + header_sent, FrameHeader::kSize - header_sent);
  add(data_.payload + payload_sent, data_.payload_bytes - payload_sent);
  return count;
}

// One system call. False if no more can be sent now.
bool TcpLink::send_some() {
  if (std::exchange(budget_of_, context_.loop.now()) != context_.loop.now()) budget_ = kSendBytes;
  std::array<iovec, 3> parts;
  const std::size_t count = gather(parts);
  std::uint64_t wanted = 0;
  for (std::size_t i = 0; i < count; ++i) wanted += parts[i].iov_len;
  if (!context_.shared.limiter.unlimited()) {
    if (tokens_ == 0 && !take_tokens(wanted)) return false;
    wanted = trim({parts.data(), count}, std::min(wanted, tokens_));
  }
  // A relay sends what it has just received, in odd lengths; the kernel keeps a last piece that fills no segment until
  // more comes, which saves the wire one header for each. The end of a slice goes out at once.
  const bool more_will_come = data_.active && data_.more;
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
  budget_ -= std::min(budget_, sent);
  account(sent);
  blocked_ = sent < wanted;
  more_to_send_ = !blocked_ && budget_ == 0;
  return !blocked_;
}

void TcpLink::account(std::uint64_t sent) {
  if (!data_.begun()) {
    const std::uint64_t from_queue = std::min(sent, queued_bytes());
    queue_sent_ += from_queue;
    sent -= from_queue;
    if (queued_bytes() == 0) {
      queue_.clear();
      queue_sent_ = 0;
    }
  }
  if (!data_.active || sent == 0) return;
  const std::uint64_t header_left = FrameHeader::kSize - std::min<std::uint64_t>(data_.sent, FrameHeader::kSize);
  context_.shared.counters.bulk_bytes_out.fetch_add(sent - std::min(sent, header_left), std::memory_order_relaxed);
  data_.sent += sent;
  if (data_.sent == data_.size()) data_ = DataFrame{};
}

// False if they are for later: a timer will go on.
bool TcpLink::take_tokens(std::uint64_t wanted) {
  const Time now = monotonic_now();
  const auto grant = context_.shared.limiter.take(now, wanted);
  tokens_ = grant.bytes;
  if (grant.at <= now) return true;
  token_timer_ = context_.loop.at(grant.at, [this] {
    token_timer_ = 0;
    go_on();
  });
  return false;
}

void TcpLink::give_back_tokens() { context_.shared.limiter.give_back(std::exchange(tokens_, 0)); }

void TcpLink::push_tail_soon() {
  if (tail_timer_ != 0) return;
  tail_timer_ = context_.loop.at(sent_at_ + kTailDelay, [this] {
    tail_timer_ = 0;
    if (!tail_held_ || data_.active) return;
    if (context_.loop.now() - sent_at_ < kTailDelay) return push_tail_soon();
    tail_held_ = false;
    push_held_tail(fd_.get());
  });
}

void TcpLink::watch() {
  if (broken_ || !fd_) return;
  if (token_timer_ == 0) give_back_tokens();
  if (tail_held_ && !data_.active) push_tail_soon();
  context_.loop.modify(fd_.get(), blocked_ || more_to_send_ ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

}  // namespace hoplite::tcp
