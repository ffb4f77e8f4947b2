#include "transport/tcp/handshake.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "auth/auth.h"
#include "base/printable.h"
#include "protocol/messages.h"

namespace hoplite::tcp {
namespace {

constexpr std::uint32_t kMagic = 0x544C5048;  // "HPLT"
constexpr const char* kDiallerLabel = "hoplite node dialler";
constexpr const char* kAcceptorLabel = "hoplite node acceptor";

// In front of every message, in this and all other versions.
struct Prefix {
  static constexpr std::size_t kSize = 12;

  std::uint32_t magic = kMagic;
  std::uint16_t version = kWireVersion;
  std::uint8_t type = 0;
  std::uint8_t unused = 0;
  std::uint32_t length = 0;  // of the body
  template <typename A> void fields(A& a) { a(magic, version, type, unused, length); }
};

struct Refused {
  Code code = Code::kInternal;
  std::string sentence;
  template <typename A> void fields(A& a) { a(code, sentence); }
};

template <typename T>
std::string encode(T message) {
  std::string out;
  Writer writer(out);
  message.fields(writer);
  return out;
}

template <typename T>
bool decode(std::string_view in, T& out) {
  Reader reader(as_bytes(in));
  out.fields(reader);
  return reader.ok() && reader.rest().empty();
}

Prefix prefix_of(std::string_view message) {
  Prefix prefix;
  decode(message.substr(0, Prefix::kSize), prefix);
  return prefix;
}

// Of what a stranger says: it ends up in the log.
constexpr std::size_t kMaxQuoted = 200;

}  // namespace

Handshake Handshake::dialler(const Identity& self, Role role, NodeRef whom) { return {self, true, role, whom}; }
Handshake Handshake::acceptor(const Identity& self) { return {self, false, Role::kControl, {}}; }

Handshake::Handshake(const Identity& self, bool dialling, Role role, NodeRef whom)
    : self_(self.node),
      token_(self.token),
      dialling_(dialling),
      whom_(whom),
      our_hello_(encode(Hello{role, self.node, self.address, whom, make_nonce()})),
      wanted_(Prefix::kSize) {}

Handshake::State Handshake::advance(int fd) {
  if (step_ == Step::kStart) {
    step_ = Step::kAwaitHello;
    if (dialling_) send_message(fd, Type::kHello, our_hello_);
  }
  while (step_ != Step::kDone && step_ != Step::kFailed && read_message(fd)) handle_message(fd);
  if (step_ == Step::kFailed) return State::kFailed;
  return step_ == Step::kDone ? State::kDone : State::kGoing;
}

// True when `in_` holds a whole message. Never reads beyond it.
bool Handshake::read_message(int fd) {
  for (;;) {
    std::array<char, kMaxMessageBytes> buffer;
    const ssize_t got = recv(fd, buffer.data(), wanted_ - in_.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (got <= 0) {
      fail(Loss::kClosed, false, "the connection was closed during the handshake");
      return false;
    }
    in_.append(buffer.data(), static_cast<std::size_t>(got));
    if (in_.size() < wanted_) continue;
    if (in_.size() > Prefix::kSize) return true;
    if (!check_prefix(fd)) return false;
    wanted_ = Prefix::kSize + prefix_of(in_).length;
    if (wanted_ == Prefix::kSize) return true;
  }
}

bool Handshake::check_prefix(int fd) {
  const Prefix prefix = prefix_of(in_);
  if (prefix.magic != kMagic || prefix.length > kMaxMessageBytes - Prefix::kSize) {
    fail(Loss::kRejected, true, "it does not speak the Hoplite protocol");
    return false;
  }
  // A refusal can be read in any version: it is how a mismatch is told.
  if (prefix.version != kWireVersion && prefix.type != static_cast<std::uint8_t>(Type::kRefused)) {
    const std::string ours = std::to_string(kWireVersion);
    const std::string theirs = std::to_string(prefix.version);
    refuse(fd, Code::kVersionMismatch,
           "it speaks version " + theirs + " of the protocol, this node speaks version " + ours,
           "this node speaks version " + ours + " of the protocol, you speak version " + theirs);
    return false;
  }
  return true;
}

void Handshake::handle_message(int fd) {
  const auto type = static_cast<Type>(prefix_of(in_).type);
  const std::string body = in_.substr(Prefix::kSize);
  in_.clear();
  wanted_ = Prefix::kSize;
  if (type == Type::kRefused) {
    handle_refused(body);
  } else if (type == Type::kHello && step_ == Step::kAwaitHello) {
    handle_hello(fd, body);
  } else if (type == Type::kProof && step_ == Step::kAwaitProof) {
    handle_proof(fd, body);
  } else {
    fail(Loss::kRejected, true, "it violated the handshake");
  }
}

void Handshake::handle_hello(int fd, const std::string& body) {
  Hello hello;
  if (!decode(body, hello) || hello.nonce.size() != kNonceBytes || hello.node.id.is_nil())
    return fail(Loss::kRejected, true, "its greeting is malformed");
  // Seeds may include our own address.
  if (hello.node.id == self_.id) return fail(Loss::kReplaced, false, "it is this node itself");
  peer_ = hello;
  their_hello_ = body;
  step_ = Step::kAwaitProof;
  if (!dialling_) return send_message(fd, Type::kHello, our_hello_);
  if (go_on_ && !go_on_(hello.node)) return fail(Loss::kClosed, false, "there is another connection to that node");
  send_message(fd, Type::kProof, proof_of(true));
}

void Handshake::handle_proof(int fd, const std::string& body) {
  if (!equal_in_constant_time(body, proof_of(!dialling_)))
    return refuse(fd, Code::kNotAuthorised, "it has a different cluster token",
                  "wrong cluster token: both nodes must be started with the same one");
  step_ = Step::kDone;
  if (!dialling_) send_message(fd, Type::kProof, proof_of(false));
  const NodeRef whom = dialling_ ? whom_ : peer_.whom;
  const NodeRef found = dialling_ ? peer_.node : self_;
  if (whom != NodeRef{} && whom != found)
    fail(Loss::kReplaced, false, "expected node " + whom.to_string() + ", found " + found.to_string());
}

void Handshake::handle_refused(const std::string& body) {
  Refused refused;
  if (!decode(body, refused)) return fail(Loss::kRejected, true, "its refusal is malformed");
  fail(Loss::kRejected, true, "it refused: " + printable(refused.sentence.substr(0, kMaxQuoted)));
}

void Handshake::send_message(int fd, Type type, const std::string& body) {
  Prefix prefix;
  prefix.type = static_cast<std::uint8_t>(type);
  prefix.length = static_cast<std::uint32_t>(body.size());
  const std::string message = encode(prefix) + body;
  // All that either side sends in a handshake fits an empty socket buffer many times over.
  const ssize_t sent = send(fd, message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(message.size()))
    fail(Loss::kClosed, false, "the connection was closed during the handshake");
}

void Handshake::refuse(int fd, Code code, const std::string& why_for_us, const std::string& why_for_them) {
  send_message(fd, Type::kRefused, encode(Refused{code, why_for_them}));
  // Unread input would turn our close into a reset, which may overtake the refusal.
  std::array<char, kMaxMessageBytes> unread;
  [[maybe_unused]] const ssize_t got = recv(fd, unread.data(), unread.size(), MSG_DONTWAIT);
  fail(Loss::kRejected, true, why_for_us);
}

void Handshake::fail(Loss loss, bool tell_operator, std::string why) {
  step_ = Step::kFailed;
  failure_ = {loss, tell_operator, std::move(why)};
}

std::string Handshake::proof_of(bool dialler) const {
  const std::string& diallers = dialling_ ? our_hello_ : their_hello_;
  const std::string& acceptors = dialling_ ? their_hello_ : our_hello_;
  return proof(token_, dialler ? kDiallerLabel : kAcceptorLabel, {diallers, acceptors});
}

}  // namespace hoplite::tcp
