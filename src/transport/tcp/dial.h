// One outgoing connection in the making: connect, then the handshake.
//
// Lives on one loop's thread. Destroying it gives up without a word.
#pragma once

#include <functional>
#include <optional>

#include "base/limits.h"
#include "transport/loop.h"
#include "transport/tcp/handshake.h"
#include "transport/tcp/socket.h"

namespace hoplite::tcp {

class Dial {
 public:
  struct Options {
    const SocketLimits& limits;
    Address address;
    Role role = Role::kControl;
    NodeRef whom;                           // nil = whoever listens there
    std::function<bool(NodeRef)> on_claim;  // see Handshake::on_claim; may be empty
  };
  struct Outcome {
    UniqueFd fd;  // valid unless there is a failure
    NodeRef peer;
    std::optional<HandshakeFailure> failure;
  };

  // `done` is called once, from the loop, never from here; it may destroy the Dial.
  Dial(Loop& loop, const Identity& self, Options options, std::function<void(Outcome)> done);
  ~Dial();
  Dial(const Dial&) = delete;
  Dial& operator=(const Dial&) = delete;

 private:
  void on_connected();
  void on_readable();
  void expire();
  void finish(std::optional<HandshakeFailure> failure);
  void set_timer(Duration timeout);

  Loop& loop_;
  Handshake handshake_;
  const Duration greeting_;  // how long the handshake may take
  std::function<void(Outcome)> done_;
  UniqueFd fd_;
  int connect_error_ = 0;
  bool connected_ = false;
  Loop::TimerId timer_ = 0;
};

}  // namespace hoplite::tcp
