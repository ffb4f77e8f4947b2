#include "client/handshake.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "auth/auth.h"
#include "base/paths.h"
#include "shm/fd_passing.h"

namespace hoplite::client {
namespace {

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

Error stuck(const std::string& path) {
  return {Code::kTimedOut, "the daemon at " + path + " accepts connections but does not respond"};
}

Error connect_error(const std::string& path, int error) {
  switch (error) {
    case ENOENT:
    case ECONNREFUSED: return {Code::kUnavailable, "no daemon at " + path + ": start one with `hoplite start`"};
    case EACCES:
    case EPERM:
      return {Code::kNotAuthorised,
              "no permission to use the daemon's socket " + path + ": it belongs to another user"};
    case EAGAIN: return stuck(path);
    default: return {Code::kUnavailable, "cannot connect to " + path + ": " + std::strerror(error)};
  }
}

Result<UniqueFd> connect_socket(const std::string& path, const Deadline& deadline) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return Error{Code::kInvalidArgument, "the socket path " + path + " is longer than the system allows"};
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0)
    return Error{Code::kUnavailable, std::string("cannot create a socket: ") + std::strerror(errno)};
  if (!deadline.never()) {
    // On a unix socket this also bounds connect(), which waits while the daemon's backlog is full.
    const std::int64_t left_us = deadline.left_ns() / 1000 + 1;
    const timeval limit{.tv_sec = left_us / 1'000'000, .tv_usec = left_us % 1'000'000};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  }
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return connect_error(path, errno);
  return socket;
}

// The default socket may be in /tmp, where anybody could have made the folder first.
Result<void> check_owner(const UniqueFd& socket, const std::string& path) {
  const auto peer = peer_of(socket.get());
  if (!peer || peer->uid == getuid() || peer->uid == 0) return {};
  return Error{Code::kNotAuthorised, "the daemon at the default socket " + path + " runs as another user (" +
                                         std::to_string(peer->uid) + "): to use it anyway, specify its socket"};
}

// The handshake's frames are awaited one by one; the caller's thread is the only one there is.
Result<ipc::Frame> await_frame(const UniqueFd& socket, const std::string& path, FrameReader& frames,
                               const Deadline& deadline) {
  while (true) {
    const auto frame = frames.next();
    if (!frame) return Error{Code::kInternal, "what listens at " + path + " is not a Hoplite daemon"};
    if (frame->complete) return frame;
    const std::int64_t left_ns = deadline.left_ns();
    if (left_ns == 0) return stuck(path);
    constexpr std::int64_t kLongestPollMs = 60'000;
    pollfd wanted{.fd = socket.get(), .events = POLLIN, .revents = 0};
    const std::int64_t left_ms = left_ns == kNoTimeout ? kLongestPollMs : left_ns / 1'000'000 + 1;
    ::poll(&wanted, 1, static_cast<int>(std::min(left_ms, kLongestPollMs)));
    if (!frames.receive(socket.get()))
      return Error{Code::kUnavailable, "the daemon at " + path + " closed the connection during the handshake"};
  }
}

Error version_mismatch(const std::string& path, unsigned theirs) {
  return {Code::kVersionMismatch, "the daemon at " + path + " speaks client protocol " + std::to_string(theirs) +
                                      ", this program " + std::to_string(kClientProtocolVersion) +
                                      ": use the same release of both"};
}

Result<ipc::Greeting> parse_greeting(ByteView body, const std::string& path) {
  // Another version may have other fields, but the type and the version stay in front for ever.
  std::uint16_t version = 0;
  if (body.size() < 1 + sizeof version || body[0] != std::byte{0})
    return Error{Code::kInternal, "what listens at " + path + " is not a Hoplite daemon"};
  std::memcpy(&version, body.data() + 1, sizeof version);
  if (version != kClientProtocolVersion) return version_mismatch(path, version);
  auto reply = ipc::decode_reply(body);
  if (!reply) return Error{Code::kInternal, "malformed greeting from the daemon at " + path};
  return std::get<ipc::Greeting>(*std::move(reply));
}

Result<void> send_hello(const UniqueFd& socket, const std::string& path, const ipc::Hello& hello) {
  std::string out;
  ipc::encode_request(0, hello, 0, out);
  // A hello is far smaller than a socket's buffer: it is sent whole, or the daemon is gone.
  if (::send(socket.get(), out.data(), out.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(out.size())) return {};
  return Error{Code::kUnavailable, "the daemon at " + path + " closed the connection during the handshake"};
}

Result<ipc::Welcome> parse_welcome(ByteView body, const std::string& path) {
  auto reply = ipc::decode_reply(body);
  if (!reply) return Error{Code::kInternal, "malformed welcome from the daemon at " + path};
  if (const auto* failed = std::get_if<ipc::Failed>(&*reply)) return Error{failed->code, failed->message};
  auto* welcome = std::get_if<ipc::Welcome>(&*reply);
  if (welcome == nullptr) return Error{Code::kInternal, "the daemon at " + path + " broke the handshake"};
  return std::move(*welcome);
}

}  // namespace

Result<Attachment> attach(UniqueFd socket, const std::string& path, const std::string& token,
                          const Deadline& deadline) {
  Attachment attachment;
  const auto first = await_frame(socket, path, attachment.frames, deadline);
  if (!first) return first.error();
  const auto greeting = parse_greeting(first->body, path);
  if (!greeting) return greeting.error();
  ipc::Hello hello;
  if (greeting->proof_wanted) {
    if (token.empty())
      return Error{Code::kNotAuthorised, "the daemon at " + path + " requires the cluster token: set HOPLITE_TOKEN"};
    hello.proof = client_proof(token, greeting->nonce);
  }
  if (auto sent = send_hello(socket, path, hello); !sent) return sent.error();

  const auto second = await_frame(socket, path, attachment.frames, deadline);
  if (!second) return second.error();
  auto welcome = parse_welcome(second->body, path);
  if (!welcome) return welcome.error();
  const UniqueFd arena = attachment.frames.take_descriptor();
  attachment.lease = attachment.frames.take_descriptor();
  if (!attachment.lease)
    return Error{Code::kUnavailable, "cannot use the store of the daemon at " + path + ": " + no_descriptors()};
  auto mapping = ClientMapping::create(arena.get(), welcome->arena_bytes);
  if (!mapping)
    return Error{mapping.code(), "cannot map the store of the daemon at " + path + ": " + mapping.error().message};
  attachment.socket_path = path;
  attachment.socket = std::move(socket);
  attachment.welcome = *std::move(welcome);
  attachment.mapping = *std::move(mapping);
  return attachment;
}

Result<Attachment> attach(const ConnectOptions& options) {
  const std::string named = options.socket.empty() ? from_environment("HOPLITE_SOCKET") : options.socket;
  std::string path = named.empty() ? default_socket_path() : named;
  const Deadline deadline = Deadline::after(options.timeout);
  auto socket = connect_socket(path, deadline);
  if (!socket && named.empty() && socket.code() == Code::kUnavailable) {
    const std::vector<std::string> others = other_default_sockets();
    if (others.size() == 1) socket = connect_socket(path = others.front(), deadline);
    else if (!others.empty()) return Error{socket.code(), "no daemon at " + path + choose_among(others)};
  }
  if (!socket) return socket.error();
  if (named.empty())
    if (auto owner = check_owner(*socket, path); !owner) return owner.error();
  const std::string token = options.token.empty() ? from_environment("HOPLITE_TOKEN") : options.token;
  return attach(*std::move(socket), path, token, deadline);
}

}  // namespace hoplite::client
