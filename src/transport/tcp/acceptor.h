// The listening socket: takes connections, does the handshake, hands on those that proved themselves.
//
// Strangers cost little and leave nothing: each pending connection keeps at most Handshake::kMaxMessageBytes, for a time that
// is limited, as their number is: of more, the oldest goes. Loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "transport/loop.h"
#include "transport/tcp/handshake.h"
#include "transport/tcp/shared.h"
#include "transport/tcp/socket.h"

namespace hoplite::tcp {

class Acceptor {
 public:
  using Accepted = std::function<void(UniqueFd fd, const Hello& peer)>;

  // `shared` and `identity` outlive it.
  Acceptor(Shared& shared, UniqueFd listener, const Identity& identity, Accepted accepted);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // Ends every handshake under way; new ones use the identity as it is now.
  void drop_pending();

 private:
  struct Pending {
    UniqueFd fd;
    Handshake handshake;
    Time deadline;
  };

  void on_acceptable();
  void shed_one();
  void begin(UniqueFd fd);
  void on_readable(std::uint64_t number);
  void reject(std::uint64_t number, const std::string& why, bool tell_operator);
  void expire();
  void set_timer();

  Shared& shared_;
  Loop& loop_;
  UniqueFd listener_;
  UniqueFd reserve_;  // given up for a moment to accept and close a connection when there are no descriptors left
  const Identity& identity_;
  Accepted accepted_;
  std::map<std::uint64_t, Pending> pending_;  // by arrival
  std::uint64_t last_number_ = 0;
  Loop::TimerId timer_ = 0;
};

}  // namespace hoplite::tcp
