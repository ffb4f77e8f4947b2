// One attached client process: its socket, what has not been parsed and what has not been sent.
//
// An idle connection keeps no buffers: bytes are received into a buffer that all connections share, and only the part of
// a frame that is still incomplete is kept here.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>

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
  // The start of a frame that is not complete yet: the next receive() begins with it.
  void keep(ByteView rest);

  void queue(std::uint64_t request, const ipc::Reply& reply);
  // The descriptor travels with the next bytes that are sent, so at the latest with the reply queued last. It stays the
  // caller's and must stay open until then.
  void queue_descriptor(int fd);
  std::size_t queued_bytes() const { return output_.size() - sent_; }

  enum class Flush { kDone, kBlocked, kBroken };
  Flush flush();

  // --- the server's notes
  std::string nonce;  // of the greeting
  Time handshake_deadline;
  bool welcomed = false;        // the handshake is over
  bool may_write = false;       // has the writable descriptor
  bool needs_flush = false;     // is in the server's list of connections to flush
  bool waits_for_room = false;  // EPOLLOUT is set
  std::size_t outstanding = 0;  // requests without their last reply
  bool closing = false;         // to be closed at the next flush; hears and says nothing more

 private:
  ClientKey key_;
  UniqueFd socket_;
  ucred peer_;
  std::string kept_;
  std::string output_;
  std::size_t sent_ = 0;
  std::array<int, 2> descriptors_{};  // at most the read-only and the writable one of the arena
  std::size_t descriptor_count_ = 0;
};

}  // namespace hoplite
