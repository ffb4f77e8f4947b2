// The parent's end of a bulk connection: hears what a child wants, and sends it straight from the arena.
//
// Frames of all its streams are chosen one at a time by the scheduler, as late as the socket lets us. A frame that is
// half sent when its stream ends is completed from a private copy of its rest (at most max_frame_bytes): the child and
// its other streams keep the connection, and the extent is free at once, whatever the child does. Every accepted pull
// ends with exactly one ServeEnded. Lives on one I/O thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "transport/tcp/bulk_host.h"
#include "transport/tcp/socket.h"
#include "transport/tcp/stream_scheduler.h"

struct iovec;

namespace hoplite::tcp {

class ServeConnection {
 public:
  ServeConnection(const BulkContext& context, UniqueFd fd, NodeRef child, ChannelId channel);
  ~ServeConnection();
  ServeConnection(const ServeConnection&) = delete;
  ServeConnection& operator=(const ServeConnection&) = delete;

  NodeRef child() const { return child_; }
  // No use any more; all its serves have ended.
  bool broken() const { return broken_; }
  bool has_serves() const { return !serves_.empty(); }

  void accept(ServeId serve, const CopyPtr& copy, const PullRequest& pull);
  void refuse(TransferId transfer, Code code);
  void stop(TransferId transfer, Code code);
  // The copy of that transfer has more bytes, or is sealed. Sends nothing: call `pump` afterwards.
  void refresh(TransferId transfer);
  // Sends what can be sent now.
  void pump();
  // Gives a sign of life in streams that have had nothing to send.
  void tick(Time now);
  void break_off();

 private:
  struct Serve {
    ServeId id = 0;
    CopyPtr copy;
    std::uint32_t slice = 0;
    std::uint64_t next = 0;           // first byte that is in no frame yet
    std::uint64_t end = 0;            // of the slice
    Time sent_at{};                   // the last frame of this stream
    std::uint64_t sign_in_queue = 0;  // `drains_` when a sign of life was queued

    // How far the bytes of this stream are valid: all of them once the copy is sealed, whatever it was cut into.
    std::uint64_t valid_end() const { return copy->sealed() ? end : copy->watermark(slice); }
  };

  // The data frame that is being sent.
  struct Frame {
    bool active = false;
    TransferId transfer = 0;  // 0 once its stream has ended
    std::array<std::byte, FrameHeader::kSize> header{};
    const std::byte* payload = nullptr;
    std::uint64_t payload_bytes = 0;
    std::uint64_t sent = 0;  // of header and payload
    bool last_of_slice = false;
    std::string detached;  // the payload's rest, if its stream has ended

    std::uint64_t size() const { return FrameHeader::kSize + payload_bytes; }
    bool begun() const { return active && sent > 0; }
  };

  void on_event(std::uint32_t events);
  void receive();
  bool handle_frames();
  bool handle_pull(const FrameHeader& frame, const std::string& body);
  void handle_cancel(TransferId transfer);

  void begin_frame();
  void take_back_frame();
  void detach_frame();
  void finish_frame();
  bool send_some(std::uint64_t& budget);
  std::size_t gather(std::array<iovec, 3>& parts) const;
  void account(std::uint64_t sent);
  bool take_tokens(std::uint64_t wanted);
  void give_back_tokens();
  void push_tail_soon();
  void watch();

  void end(TransferId transfer, FrameType how, Code code);
  void queue_frame(FrameType type, TransferId transfer, Code code);

  BulkContext context_;
  UniqueFd fd_;
  const NodeRef child_;
  const ChannelId channel_;
  ConnectionCount counted_;
  bool broken_ = false;

  std::string input_;                     // the front of a frame from the child
  std::unordered_set<TransferId> asked_;  // neither accepted nor refused yet
  std::unordered_map<TransferId, Serve> serves_;
  StreamScheduler scheduler_;

  std::string queue_;  // frames without payload; they go between data frames
  std::size_t queue_sent_ = 0;
  std::uint64_t drains_ = 1;  // how often the queue has been emptied
  Frame frame_;
  bool blocked_ = false;           // the socket takes no more
  bool more_to_send_ = false;      // the socket would, but others have their turn
  bool tail_held_ = false;         // the kernel waits for more to fill a segment
  Time sent_at_;                   // the last bytes
  std::uint64_t tokens_ = 0;       // bytes that the rate limiter granted
  Loop::TimerId token_timer_ = 0;  // when they may be used
  Loop::TimerId tail_timer_ = 0;
};

}  // namespace hoplite::tcp
