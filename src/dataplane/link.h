// What the data plane needs of a connection between two nodes: frames, in order, both ways.
//
// A link is dialled by the node that pulls (the child) and accepted by the node that serves (the parent). TCP and the simulator
// implement it (src/transport/tcp, sim), and for the tests a pair of queues in one process; all pass one suite
// (tests/dataplane). A link and its user live on one lane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/address.h"
#include "base/bytes.h"
#include "base/node_id.h"
#include "protocol/bulk.h"

namespace hoplite::dataplane {

// Whoever uses a link hears from it in these words. The link may be told to send from inside any of them; it is not destroyed
// there.
class LinkUser {
 public:
  // A frame without payload, whole. False: it makes no sense here.
  virtual bool on_frame(const FrameHeader& frame, ByteView body) = 0;
  // The payload of a kData frame is about to arrive. False: it makes no sense here.
  virtual bool on_data(const FrameHeader& frame) = 0;
  // Where the next byte of that payload goes; null: it is discarded.
  virtual std::byte* data_place() = 0;
  // So many bytes more of it have arrived.
  virtual void on_data_bytes(std::uint64_t count) = 0;
  // The data frame that was under way has been sent, or data can be sent again.
  virtual void on_writable() = 0;
  // The link is of no use any more, or could not be made. Once; nothing comes after it.
  virtual void on_broken() = 0;

 protected:
  ~LinkUser() = default;
};

class Link {
 public:
  virtual ~Link() = default;  // closes it; the user hears nothing

  // A frame without payload: kept until it can be sent, behind a data frame that has begun. `body` is copied. Call `flush`
  // when there is no more to add.
  virtual void send(const FrameHeader& frame, ByteView body = {}) = 0;
  virtual void flush() = 0;
  // Bytes of such frames that the peer has not taken.
  virtual std::uint64_t queued_bytes() const = 0;

  enum class Sent : std::uint8_t {
    kNothing,  // not now: on_writable() when it is worth trying again. What is to be sent is decided anew then
    kPart,     // the link sends the rest by itself, then on_writable(). Until then nothing else can be sent
    kAll,
  };
  // A kData frame. Its payload is read until it has been sent, or until `detach`. `more` follows at once, as far as is known:
  // the link may wait for it to fill a packet.
  virtual Sent send_data(const FrameHeader& frame, const std::byte* payload, bool more) = 0;
  // The payload of the frame under way is about to be used for something else: the link copies what it has not sent.
  virtual void detach() = 0;
};

using MakeLink = std::function<std::unique_ptr<Link>(LinkUser& user)>;

// Makes links to parents.
class LinkDialler {
 public:
  // Frames can be sent at once; they wait until the link is there.
  virtual std::unique_ptr<Link> dial(NodeRef parent, const Address& address, LinkUser& user) = 0;

 protected:
  ~LinkDialler() = default;
};

}  // namespace hoplite::dataplane
