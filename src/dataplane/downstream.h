// This node's end of a link to a child: hears what the child wants, and sends it straight from memory.
//
// Frames of all its streams are chosen one at a time by the scheduler, as late as the link lets us. A frame that is half sent
// when its stream ends is completed from the link's private copy of its rest: the child's other streams keep the link, and
// the memory is free at once, whatever the child does. Every accepted pull ends with exactly one call of Host::serve_ended.
// Lives on one lane.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include "base/limits.h"
#include "dataplane/buffer.h"
#include "dataplane/link.h"
#include "dataplane/stream_scheduler.h"
#include "dataplane/uplink.h"
#include "protocol/data_plane.h"

namespace hoplite::dataplane {

class Downstream final : private LinkUser {
 public:
  class Host {
   public:
    virtual Time now() const = 0;
    virtual Uplink& uplink() = 0;
    virtual void pull_asked(NodeRef child, ChannelId channel, const PullRequest& pull) = 0;
    virtual void serve_began(Downstream& at, TransferId transfer, ServeId serve, Buffer& buffer) = 0;
    virtual void serve_prioritized(ServeId serve, Priority priority) = 0;
    // Nothing of this end touches the buffer for it any more.
    virtual void serve_ended(Downstream& at, TransferId transfer, ServeId serve, Buffer& buffer) = 0;
    // As in Upstream::Host.
    virtual void link_broken() = 0;

   protected:
    ~Host() = default;
  };

  // `limits` outlives it. `turn_bytes`: of a stream that is alone on the link.
  Downstream(Host& host, NodeRef child, ChannelId channel, const Limits& limits, std::uint64_t turn_bytes,
             const MakeLink& make);

  NodeRef child() const { return child_; }
  bool broken() const { return link_ == nullptr; }
  bool has_serves() const { return !serves_.empty(); }

  // False: the child does not want it any more, or it is not there to be served.
  bool accept(ServeId serve, const BufferPtr& buffer, const PullRequest& pull);
  void refuse(TransferId transfer, Code code);
  void stop(TransferId transfer, Code code);
  // The buffer of that transfer has more valid bytes, or is sealed. Sends nothing: call `pump` afterwards.
  void refresh(TransferId transfer);
  // Sends what can be sent now.
  void pump();
  // Gives a sign of life in streams that have had nothing to send.
  void tick();
  void break_off();

 private:
  struct Asked {  // what the child has said of it since
    std::uint64_t limit = kNoLimit;
    std::optional<Priority> priority;
  };
  struct Serve {
    ServeId id = 0;
    BufferPtr buffer;
    std::uint32_t slice = 0;
    Priority priority = Priority::kNormal;
    std::uint64_t next = 0;          // first byte that is in no frame yet
    std::uint64_t end = 0;           // of the slice
    std::uint64_t limit = kNoLimit;  // the child takes no more for now
    Time sent_at{};                  // the last frame of this stream
    bool sign_queued = false;        // a sign of life that the child has not taken yet

    // How far it can be sent: all of it once the buffer is sealed, whatever that was cut into.
    std::uint64_t ready_until() const;
  };

  bool on_frame(const FrameHeader& frame, ByteView body) override;
  bool on_data(const FrameHeader&) override { return false; }
  std::byte* data_place() override { return nullptr; }
  void on_data_bytes(std::uint64_t) override {}
  void on_writable() override;
  void on_broken() override { break_off(); }

  bool handle_pull(const FrameHeader& frame, ByteView body);
  bool handle_cancel(TransferId transfer);
  bool handle_limit(TransferId transfer, std::uint64_t limit);
  bool handle_priority(TransferId transfer, std::uint64_t priority);
  bool send_next();
  void frame_sent();
  void end(TransferId transfer, FrameType how, Code code);
  void say(FrameType type, TransferId transfer, Code code = Code::kOk);

  Host& host_;
  const NodeRef child_;
  const ChannelId channel_;
  const Limits& limits_;
  std::unordered_map<TransferId, Asked> asked_;  // neither accepted nor refused yet
  std::unordered_map<TransferId, Serve> serves_;
  StreamScheduler scheduler_;
  bool sending_ = false;       // a data frame is under way
  TransferId sending_of_ = 0;  // whose; 0 once its stream has ended
  std::unique_ptr<Link> link_;
  std::unique_ptr<Link> dead_link_;  // it may be what calls us
};

}  // namespace hoplite::dataplane
