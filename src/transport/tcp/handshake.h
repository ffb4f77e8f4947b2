// Who is at the other end: the first bytes of every connection between nodes.
//
//   dialler                                  acceptor
//     Hello {role, who, whom, nonce}   ->
//                                      <-    Hello {who, nonce}
//     Proof                            ->
//                                      <-    Proof            from here on the connection is the role's
//
// A proof is an HMAC under the cluster token over both Hellos, so it is good for this connection and this direction
// only; nothing secret is on the wire. The dialler proves first: whoever merely knocks is shown nothing to guess tokens
// with. Either side may answer with Refused {code, sentence} instead. The 12 bytes in front of each message and the
// form of Refused never change, so that nodes of different versions can tell each other so.
//
// Not thread-safe. It reads exactly its own bytes, so the descriptor can be handed on as it is.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "base/address.h"
#include "base/node_id.h"
#include "hoplite/error.h"
#include "protocol/codec.h"
#include "protocol/transfer.h"

namespace hoplite::tcp {

enum class Role : std::uint8_t { kControl, kBulk };
constexpr Role last_enumerator(Role) { return Role::kBulk; }

struct Identity {
  NodeRef node;
  Address address;    // where others reach us
  std::string token;  // empty = none
};

struct Hello {
  Role role = Role::kControl;
  NodeRef node;
  Address address;
  NodeRef whom;  // of the dialler: the node it looks for; nil = whoever listens there
  std::string nonce;
  template <typename A> void fields(A& a) { a(role, node, address, whom, nonce); }
};

struct HandshakeFailure {
  Loss loss = Loss::kClosed;
  bool tell_operator = false;  // a stranger, a wrong token, another version
  std::string why;
};

class Handshake {
 public:
  static constexpr std::size_t kMaxMessageBytes = 1024;  // all that is kept of a stranger's input

  enum class State { kGoing, kDone, kFailed };

  static Handshake dialler(const Identity& self, Role role, NodeRef whom);
  static Handshake acceptor(const Identity& self);

  // Call when the descriptor is readable, and once at the start by the dialler.
  State advance(int fd);

  // For diallers: called with what the other side claims to be, before our proof. False ends the handshake, and the
  // other side has not taken us for a peer.
  void on_claim(std::function<bool(NodeRef)> go_on) { go_on_ = std::move(go_on); }

  // The other side; proved if kDone.
  const Hello& peer() const { return peer_; }
  const HandshakeFailure& failure() const { return failure_; }

 private:
  enum class Step { kStart, kAwaitHello, kAwaitProof, kDone, kFailed };
  enum class Type : std::uint8_t { kHello, kProof, kRefused };

  Handshake(const Identity& self, bool dialling, Role role, NodeRef whom);

  bool read_message(int fd);
  bool check_prefix(int fd);
  void handle_message(int fd);
  void handle_hello(int fd, const std::string& body);
  void handle_proof(int fd, const std::string& body);
  void handle_refused(const std::string& body);
  void send_message(int fd, Type type, const std::string& body);
  void refuse(int fd, Code code, const std::string& why_for_us, const std::string& why_for_them);
  void fail(Loss loss, bool tell_operator, std::string why);
  std::string proof_of(bool dialler) const;

  NodeRef self_;
  std::string token_;
  bool dialling_;
  NodeRef whom_;  // of the dialler
  std::function<bool(NodeRef)> go_on_;
  Step step_ = Step::kStart;
  std::string our_hello_;    // as sent
  std::string their_hello_;  // as received
  Hello peer_;
  std::string in_;      // the message that is being read
  std::size_t wanted_;  // how long it is, as far as known
  HandshakeFailure failure_;
};

}  // namespace hoplite::tcp
