// One attached client process: its socket, what has not been parsed and what has not been sent.
//
// An idle connection keeps no buffers: bytes are received into a buffer that all connections share, and only the part of
// a frame that is still incomplete is kept here.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "base/unique_fd.h"
#include "hoplite/error.h"
#include "protocol/client_messages.h"
#include "protocol/transfer.h"

namespace hoplite {

class ClientConnection {
 public:
  ClientConnection(ClientKey key, UniqueFd socket, const ucred& peer);

  ClientKey key() const { return key_; }
  int fd() const { return socket_.get(); }
  const ucred& peer() const { return peer_; }

  // One recv() into `scratch`, behind what was kept. The result points into `scratch`, which must have room for the
  // longest frame. kUnavailable: the client closed the connection, or it broke.
  Result<ByteView> receive(ByteSpan scratch);
  // What was not handled, the start of a frame that is not complete yet or more: the next receive() begins with it.
  void keep(ByteView rest);
  std::string take_kept() { return std::exchange(kept_, {}); }

  void queue(std::uint64_t request, const ipc::Reply& reply);
  // The descriptor travels with the next bytes that are sent, so at the latest with the reply queued last. It stays the
  // caller's and must stay open until then; asked for again meanwhile, it travels once.
  void queue_descriptor(int fd);
  // The same for one that is closed here once it has been sent.
  void queue_descriptor(UniqueFd fd);
  std::size_t queued_bytes() const { return output_.size() - sent_; }
  // Nobody hears replies any more; what is queued is gone. Requests that were sent before still arrive.
  void deafen();
  bool deaf() const { return deaf_; }

  enum class Flush { kDone, kBlocked, kBroken };
  Flush flush();

  // --- the server's notes
  std::string nonce;  // of the greeting
  Time handshake_deadline;
  bool welcomed = false;                       // the handshake is over
  bool wants_writable = false;                 // the next Created carries the writable descriptor
  bool needs_flush = false;                    // is in the server's list of connections to flush
  std::uint32_t events = 0;                    // that the loop waits for
  bool paused = false;                         // no requests are read until it has read replies
  std::size_t outstanding = 0;                 // requests without their last reply
  std::map<std::uint64_t, ipc::Grown> growth;  // for it to hear when it has read more, by request: the latest is enough
  bool closing = false;                        // to be closed at the next flush; hears and says nothing more

 private:
  ClientKey key_;
  UniqueFd socket_;
  ucred peer_;
  std::string kept_;
  std::string output_;
  std::size_t sent_ = 0;
  bool deaf_ = false;
  std::vector<int> descriptors_;  // to be sent: the read-only and the writable one of the arena, and the client's lease
  std::vector<UniqueFd> own_descriptors_;  // of those, the ones that nobody else closes
};

}  // namespace hoplite
