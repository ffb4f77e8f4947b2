#include "node/client_server.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "auth/auth.h"
#include "shm/fd_passing.h"

namespace hoplite {
namespace {

constexpr std::size_t kReceiveBytes = 256 * kKiB;  // more than a unix socket holds by default: one recv() empties it
constexpr int kAcceptsPerBatch = 64;  // so that a flood of connections does not starve those that are there
constexpr std::uint32_t kMaxClientNumber = (1U << 31) - 1;  // what fits the ids that clients mint

bool wants_reply(const ipc::Request& message) {
  return !(std::holds_alternative<ipc::Advance>(message) || std::holds_alternative<ipc::Abort>(message) ||
           std::holds_alternative<ipc::Cancel>(message) || std::holds_alternative<ipc::Release>(message));
}

// The replies of a streaming read that more replies follow.
bool is_last(const ipc::Reply& message) {
  return !(std::holds_alternative<ipc::Opened>(message) || std::holds_alternative<ipc::Grown>(message) ||
           std::holds_alternative<ipc::Reset>(message));
}

std::string describe(const ucred& peer) {
  return "client (pid " + std::to_string(peer.pid) + ", uid " + std::to_string(peer.uid) + ")";
}

}  // namespace

ClientServer::ClientServer(Loop& loop, ClientHandler& handler, Log& log, std::unique_ptr<UnixListener> listener,
                           ClientServerOptions options)
    : loop_(loop),
      handler_(handler),
      log_(log),
      listener_(std::move(listener)),
      options_(std::move(options)),
      max_frame_bytes_(options_.welcome.inline_bytes + options_.limits.max_fields_bytes),
      scratch_(ipc::ClientFrameHeader::kSize + max_frame_bytes_ + kReceiveBytes),
      leases_(loop_, *this, options_.limits) {
  loop_.add(listener_->fd(), EPOLLIN, [this](std::uint32_t) { on_connection(); });
}

ClientServer::~ClientServer() {
  if (listener_) loop_.remove(listener_->fd());
  for (const auto& [key, connection] : connections_) loop_.remove(connection->fd());
  loop_.cancel(handshake_timer_);
  loop_.cancel(accept_timer_);
  loop_.cancel(resume_timer_);
}

// --- connections come

void ClientServer::on_connection() {
  for (int i = 0; i < kAcceptsPerBatch; ++i) {
    UniqueFd socket(::accept4(listener_->fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.get() < 0) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) pause_accepting();
      return;
    }
    // Strangers that only knock must not keep others out: the oldest goes.
    if (handshakes_.size() >= options_.limits.max_handshakes)
      offend(*connections_.at(*handshakes_.begin()), "had not answered the greeting when others connected");
    if (auto peer = peer_of(socket.get())) greet(std::move(socket), *peer);
  }
}

void ClientServer::greet(UniqueFd socket, const ucred& peer) {
  const ClientKey key = ++last_key_;
  auto owned = std::make_unique<ClientConnection>(key, std::move(socket), peer);
  ClientConnection& connection = *owned;
  connections_.emplace(key, std::move(owned));
  connection.nonce = make_nonce();
  queue(connection, 0, ipc::Greeting{kClientProtocolVersion, peer.uid != ::geteuid(), connection.nonce});
  connection.events = EPOLLIN;
  loop_.add(connection.fd(), EPOLLIN, [this, key](std::uint32_t events) { on_event(key, events); });

  handshakes_.insert(key);
  connection.handshake_deadline = loop_.now() + options_.limits.handshake;
  if (handshake_timer_ == 0)
    handshake_timer_ = loop_.at(connection.handshake_deadline, [this] { end_late_handshakes(); });
}

void ClientServer::end_late_handshakes() {
  handshake_timer_ = 0;
  while (!handshakes_.empty()) {
    ClientConnection& oldest = *connections_.at(*handshakes_.begin());
    if (oldest.handshake_deadline > loop_.now()) {
      handshake_timer_ = loop_.at(oldest.handshake_deadline, [this] { end_late_handshakes(); });
      return;
    }
    offend(oldest, "did not answer the greeting");
  }
}

// Out of descriptors: the listener would report itself ready for ever.
void ClientServer::pause_accepting() {
  log_.warn("cannot accept clients: out of file descriptors or memory; will try again soon");
  loop_.modify(listener_->fd(), 0);
  accept_timer_ = loop_.at(loop_.now() + options_.limits.accept_pause, [this] {
    accept_timer_ = 0;
    if (listener_) loop_.modify(listener_->fd(), EPOLLIN);
  });
}

// --- bytes come

void ClientServer::on_event(ClientKey client, std::uint32_t events) {
  const auto found = connections_.find(client);
  if (found == connections_.end()) return;
  ClientConnection& connection = *found->second;
  // Its process is gone, perhaps. What it asked before counts.
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) connection.deafen();
  if ((events & ~EPOLLIN) != 0) mark(connection);
  if ((events & ~EPOLLOUT) != 0 && !connection.paused) on_readable(connection);
}

void ClientServer::on_readable(ClientConnection& connection) {
  if (connection.closing) return;
  if (is_full(connection)) {
    connection.paused = true;
    return mark(connection);
  }
  auto received = connection.receive(scratch_);
  if (!received) return close(connection.key());
  handle_frames(connection, *received);
}

void ClientServer::handle_frames(ClientConnection& connection, ByteView in) {
  while (!connection.closing && !is_full(connection)) {
    auto frame = ipc::next_frame(in, max_frame_bytes_);
    if (!frame) return offend(connection, "sent " + frame.error().message);
    if (!frame->complete) break;
    on_frame(connection, *frame);
  }
  connection.paused = is_full(connection);
  if (connection.paused) mark(connection);
  connection.keep(in);
}

// --- a client that does not read

bool ClientServer::is_full(const ClientConnection& connection) const {
  return connection.queued_bytes() > options_.limits.max_unread_bytes;
}

// It has read enough to be told more, and to be heard.
void ClientServer::catch_up(ClientConnection& connection) {
  for (const auto& [request, grown] : std::exchange(connection.growth, {})) queue(connection, request, grown);
  if (!connection.paused) return;
  to_resume_.push_back(connection.key());
  // In the next batch, so that one who reads as fast as we answer does not keep the others waiting.
  if (resume_timer_ == 0) resume_timer_ = loop_.at(loop_.now(), [this] { resume_all(); });
}

void ClientServer::resume_all() {
  resume_timer_ = 0;
  for (const ClientKey client : std::exchange(to_resume_, {})) {
    const auto found = connections_.find(client);
    if (found == connections_.end() || !std::exchange(found->second->paused, false)) continue;
    ClientConnection& connection = *found->second;
    const std::string kept = connection.take_kept();
    handle_frames(connection, as_bytes(kept));
    mark(connection);
  }
}

void ClientServer::on_frame(ClientConnection& connection, const ipc::Frame& frame) {
  auto decoded = ipc::decode_request(frame.body);
  if (!decoded) return offend(connection, "sent a " + decoded.error().message);
  const auto* hello = std::get_if<ipc::Hello>(&decoded->message);
  if ((hello != nullptr) == connection.welcomed) return offend(connection, "sent a request out of turn");
  if (hello != nullptr) return on_hello(connection, frame.request, *hello);
  on_request(connection, frame.request, *decoded);
}

void ClientServer::on_hello(ClientConnection& connection, std::uint64_t request, const ipc::Hello& hello) {
  if (auto allowed = may_attach(connection, hello); !allowed)
    return fail_handshake(connection, request, allowed.error());
  auto lease = leases_.begin(connection.key(), connection.peer().pid);
  if (!lease) return fail_handshake(connection, request, lease.error());

  connection.welcomed = true;
  connection.nonce = {};
  handshakes_.erase(connection.key());
  connection.queue_descriptor(options_.read_only_arena);
  connection.queue_descriptor(*std::move(lease));
  options_.welcome.client = ++last_number_;
  queue(connection, request, options_.welcome);
}

Result<void> ClientServer::may_attach(const ClientConnection& connection, const ipc::Hello& hello) const {
  if (hello.version != kClientProtocolVersion)
    return Error{Code::kVersionMismatch, "the daemon speaks version " + std::to_string(kClientProtocolVersion) +
                                             " of the client protocol, this client version " +
                                             std::to_string(hello.version)};
  const uid_t their_uid = connection.peer().uid;
  if (their_uid != ::geteuid()) {
    if (options_.token.empty())
      return Error{Code::kNotAuthorised, "the daemon runs as user " + std::to_string(::geteuid()) +
                                             " and the client as " + std::to_string(their_uid) +
                                             ": both need the same cluster token"};
    if (!equal_in_constant_time(hello.proof, client_proof(options_.token, connection.nonce)))
      return Error{Code::kNotAuthorised, "the client has a different cluster token than the daemon"};
  }
  if (leases_.size() >= options_.limits.max_clients)
    return Error{Code::kUnavailable,
                 "the daemon has " + std::to_string(leases_.size()) + " clients, which is the limit"};
  if (last_number_ == kMaxClientNumber)
    return Error{Code::kUnavailable, "the daemon has used up its client numbers: restart it"};
  return {};
}

void ClientServer::on_request(ClientConnection& connection, std::uint64_t request, ipc::DecodedRequest& decoded) {
  if (wants_reply(decoded.message)) {
    if (!stopping_.empty()) return queue(connection, request, ipc::Failed{Code::kUnavailable, stopping_});
    if (connection.outstanding >= options_.limits.max_outstanding)
      return queue(connection, request,
                   ipc::Failed{Code::kUnavailable, "this client has " + std::to_string(connection.outstanding) +
                                                       " requests outstanding, which is the limit"});
    ++connection.outstanding;
  }
  if (const auto* create = std::get_if<ipc::Create>(&decoded.message); create != nullptr && create->wants_descriptor)
    connection.wants_writable = true;
  handler_.on_client_request(connection.key(), request, std::move(decoded.message), decoded.payload);
}

// --- what is not accepted

void ClientServer::fail_handshake(ClientConnection& connection, std::uint64_t request, const Error& error) {
  log_once(connection.peer().pid, "refused a " + describe(connection.peer()) + ": " + error.message);
  queue(connection, request, ipc::Failed{error.code, error.message});
  close_soon(connection);
}

void ClientServer::offend(ClientConnection& connection, const std::string& what) {
  log_once(connection.peer().pid, "disconnected a " + describe(connection.peer()) + " that " + what);
  close_soon(connection);
}

void ClientServer::close_soon(ClientConnection& connection) {
  connection.closing = true;
  handshakes_.erase(connection.key());
  mark(connection);
}

void ClientServer::log_once(pid_t pid, const std::string& text) {
  if (offenders_.size() >= options_.limits.max_remembered_offenders) offenders_.clear();
  if (offenders_.insert(pid).second) log_.warn(text);
}

// --- replies go

void ClientServer::reply(ClientKey client, std::uint64_t request, const ipc::Reply& message) {
  const auto found = connections_.find(client);
  if (found == connections_.end() || found->second->closing) return;
  ClientConnection& connection = *found->second;
  if (is_last(message) && connection.outstanding > 0) --connection.outstanding;
  if (std::holds_alternative<ipc::Created>(message) && std::exchange(connection.wants_writable, false))
    connection.queue_descriptor(options_.writable_arena);
  if (const auto* grown = std::get_if<ipc::Grown>(&message); grown != nullptr && is_full(connection)) {
    connection.growth[request] = *grown;
    return;
  }
  connection.growth.erase(request);  // what comes now says more
  queue(connection, request, message);
}

void ClientServer::queue(ClientConnection& connection, std::uint64_t request, const ipc::Reply& message) {
  connection.queue(request, message);
  mark(connection);
}

void ClientServer::mark(ClientConnection& connection) {
  if (std::exchange(connection.needs_flush, true)) return;
  to_flush_.push_back(connection.key());
}

void ClientServer::flush() {
  // Closing a connection is an event whose effects may be replies to others.
  for (std::size_t i = 0; i < to_flush_.size(); ++i) flush_one(to_flush_[i]);
  to_flush_.clear();
}

void ClientServer::flush_one(ClientKey client) {
  const auto found = connections_.find(client);
  if (found == connections_.end()) return;
  ClientConnection& connection = *found->second;
  connection.needs_flush = false;
  const auto result = connection.flush();
  if (connection.closing) return close(client);
  if (result == ClientConnection::Flush::kBroken) connection.deafen();
  if (connection.queued_bytes() <= options_.limits.max_unread_bytes / 2) catch_up(connection);
  const bool blocked = connection.queued_bytes() > 0;
  const std::uint32_t events = (connection.paused ? 0U : EPOLLIN) | (blocked ? EPOLLOUT : 0U);
  if (std::exchange(connection.events, events) != events) loop_.modify(connection.fd(), events);
}

void ClientServer::close(ClientKey client) {
  auto closed = connections_.extract(client);
  loop_.remove(closed.mapped()->fd());
  handshakes_.erase(client);
  if (!closed.mapped()->welcomed) return;
  handler_.on_client_gone(client);
  closed.mapped().reset();  // with the client's end of its lease, if that was never sent
  leases_.disconnected(client);
}

void ClientServer::on_given_back(ClientKey client, std::vector<CopyKey> copies) {
  handler_.on_client_request(client, 0, ipc::Release{std::move(copies)}, {});
}

// --- the end

void ClientServer::stop(const std::string& reason) {
  if (!stopping_.empty()) return;
  stopping_ = reason;
  loop_.remove(listener_->fd());
  listener_.reset();
  for (const auto& [key, connection] : connections_) queue(*connection, 0, ipc::Failed{Code::kUnavailable, stopping_});
}

bool ClientServer::all_sent() const {
  return std::all_of(connections_.begin(), connections_.end(),
                     [](const auto& entry) { return entry.second->queued_bytes() == 0; });
}

}  // namespace hoplite
