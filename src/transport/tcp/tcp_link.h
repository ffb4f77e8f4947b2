// A bulk connection as the data plane sees it (dataplane/link.h): frames over TCP.
//
// Received payload goes straight where the user says, with the next frame's header in the same system call; sent payload comes
// straight from memory. A frame that is half sent when its payload is needed for something else is completed from a private
// copy. Lives on one loop's thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "dataplane/link.h"
#include "transport/loop.h"
#include "transport/tcp/dial.h"
#include "transport/tcp/shared.h"

struct iovec;

namespace hoplite::tcp {

struct LinkContext {  // all of it outlives the links
  Loop& loop;
  const Identity& identity;
  Shared& shared;
};

class TcpLink final : public dataplane::Link {
 public:
  // Dials.
  TcpLink(const LinkContext& context, NodeRef parent, const Address& address, dataplane::LinkUser& user);
  // An accepted connection.
  TcpLink(const LinkContext& context, UniqueFd fd, dataplane::LinkUser& user);
  ~TcpLink() override;

  void send(const FrameHeader& frame, ByteView body) override;
  void flush() override;
  std::uint64_t queued_bytes() const override { return queue_.size() - queue_sent_; }
  Sent send_data(const FrameHeader& frame, const std::byte* payload, bool more) override;
  void detach() override;

 private:
  // The data frame that is being sent.
  struct DataFrame {
    bool active = false;
    std::array<std::byte, FrameHeader::kSize> header{};
    const std::byte* payload = nullptr;
    std::uint64_t payload_bytes = 0;
    std::uint64_t sent = 0;  // of header and payload
    bool more = false;       // follows at once
    std::string detached;    // the payload, if its memory is used for something else now

    std::uint64_t size() const { return FrameHeader::kSize + payload_bytes; }
    bool begun() const { return active && sent > 0; }
  };

  void on_dialled(const Address& address, Dial::Outcome outcome);
  void establish(UniqueFd fd);
  void on_event(std::uint32_t events);
  void break_off();
  void close();

  void receive();
  bool receive_some();
  void take_payload(std::uint64_t bytes);
  bool take_header();
  bool take_body();

  bool can_send() const;
  void go_on();
  bool send_some();
  std::size_t gather(std::array<iovec, 3>& parts) const;
  void account(std::uint64_t sent);
  bool take_tokens(std::uint64_t wanted);
  void give_back_tokens();
  void push_tail_soon();
  void watch();

  LinkContext context_;
  dataplane::LinkUser& user_;
  std::shared_ptr<RateMeter> meter_;  // of the parent; null at the parent itself
  std::unique_ptr<Dial> dial_;        // until it is established
  UniqueFd fd_;
  std::unique_ptr<ConnectionCount> counted_;
  bool broken_ = false;

  // --- receiving
  std::array<std::byte, FrameHeader::kSize> header_{};
  std::size_t header_bytes_ = 0;
  FrameHeader frame_;               // whose payload or body is being received
  std::uint64_t payload_left_ = 0;  // of kData
  std::string body_;
  std::size_t body_bytes_ = 0;
  std::uint64_t received_ = 0;  // payload, in this event of the loop

  // --- sending
  std::string queue_;  // frames without payload; they go between data frames
  std::size_t queue_sent_ = 0;
  DataFrame data_;
  bool user_waits_ = false;        // it was told to wait for on_writable
  bool blocked_ = false;           // the socket takes no more
  bool more_to_send_ = false;      // the socket would, but others have their turn
  std::uint64_t budget_ = 0;       // bytes that may be sent in this batch of the loop
  Time budget_of_;                 // which one that is
  bool tail_held_ = false;         // the kernel waits for more to fill a segment
  Time sent_at_;                   // the last bytes
  std::uint64_t tokens_ = 0;       // bytes that the rate limiter granted
  Loop::TimerId token_timer_ = 0;  // when they may be used
  Loop::TimerId tail_timer_ = 0;
};

}  // namespace hoplite::tcp
