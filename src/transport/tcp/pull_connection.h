// The child's end of a bulk connection: dials a parent, asks for slices, and receives their bytes straight into place.
//
// Invariants: (1) bytes are written only at the watermark of a pull that is on, within its slice; (2) after a pull
// ended, what still comes for it goes to a discard sink; (3) every pull ends with exactly one PullEnded. Whatever
// breaks the protocol breaks the connection, and its pulls end as lost. Lives on one I/O thread.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/address.h"
#include "transport/tcp/bulk_host.h"
#include "transport/tcp/dial.h"

namespace hoplite::tcp {

class PullConnection {
 public:
  PullConnection(const BulkContext& context, NodeRef parent, const Address& address);
  ~PullConnection();
  PullConnection(const PullConnection&) = delete;
  PullConnection& operator=(const PullConnection&) = delete;

  NodeRef parent() const { return parent_; }
  // No use any more; all its pulls have ended.
  bool broken() const { return broken_; }
  bool has_pulls() const { return !pulls_.empty(); }
  Time idle_since() const { return idle_since_; }

  void start(const CopyPtr& copy, const PullRequest& request, Duration patience);
  void cancel(TransferId transfer);
  // Reports pulls that have been silent for too long.
  void tick(Time now);
  // This thread did not run for so long: silence in that time says nothing about the parent.
  void forgive_silence(Duration lost);
  void break_off();

 private:
  struct Pull {
    CopyPtr copy;
    std::uint32_t slice = 0;
    std::uint64_t next = 0;  // the slice's watermark
    std::uint64_t end = 0;   // of the slice
    Duration patience;
    bool accepted = false;
    bool silent = false;
    Time heard_at{};
  };

  void on_dialled(Dial::Outcome outcome);
  void on_event(std::uint32_t events);
  void receive();
  bool receive_some();
  void take_payload(std::uint64_t bytes);
  bool handle_header();
  bool handle_data(const FrameHeader& frame);
  bool handle_answer(const FrameHeader& frame);
  void end(TransferId transfer, PullEnd how);
  void queue_frame(const FrameHeader& frame, const std::string& body);
  void flush();

  BulkContext context_;
  const NodeRef parent_;
  const Address address_;
  std::unique_ptr<Dial> dial_;  // until it is established
  UniqueFd fd_;
  std::unique_ptr<ConnectionCount> counted_;
  bool broken_ = false;
  Time idle_since_;
  Time heard_at_;  // anything, of any stream
  std::unordered_map<TransferId, Pull> pulls_;
  std::shared_ptr<RateMeter> meter_;

  std::string queue_;  // frames to the parent
  std::size_t sent_ = 0;

  std::array<std::byte, FrameHeader::kSize> header_{};
  std::size_t header_bytes_ = 0;
  std::uint64_t payload_left_ = 0;  // of the frame that is being received
  Pull* target_ = nullptr;          // where it goes; null = nowhere
  std::uint64_t received_ = 0;      // payload, in this event of the loop
};

}  // namespace hoplite::tcp
