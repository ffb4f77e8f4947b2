// All links and combinations of one thread. Everything here runs on that thread: an I/O thread of the daemon, or the one
// thread of a simulation.
//
// After each batch of calls the owner calls `settle`, and `on_time` when `next_wakeup` has come.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/limits.h"
#include "dataplane/combiner.h"
#include "dataplane/downlink.h"
#include "dataplane/downstream.h"
#include "dataplane/upstream.h"

namespace hoplite::dataplane {

// What a lane reports to the loop thread, in order. Those of event:: go on to the agent as they are.
struct CombineEnded {  // the lane does not touch the buffers for it any more, neither what it made nor its inputs
  CopyKey out = 0;
  std::uint32_t slice = 0;
  bool complete = false;  // else it was stopped
};
struct BufferGrown {
  BufferPtr buffer;
};
struct CloseAsked {  // by the loop thread itself, of a copy that nothing uses
  CopyKey copy = 0;
};
using LaneEvent = std::variant<event::PullAsked, event::PullAccepted, event::PullSilent, event::PullEnded,
                               event::ServePrioritized, event::ServeEnded, CombineEnded, BufferGrown, CloseAsked>;
using LaneEvents = std::vector<LaneEvent>;

class Lane final : private Upstream::Host, private Downstream::Host, private Combiner::Host {
 public:
  struct Options {
    std::uint32_t index = 0;
    const Limits& limits;          // outlives the lane
    std::uint64_t turn_bytes = 0;  // of a stream that is alone on its link
  };
  class Host {
   public:
    virtual Time now() const = 0;
    // To DataPlane::take on the loop thread, in order.
    virtual void deliver(LaneEvents events) = 0;
    // Lane::wake on another lane.
    virtual void wake(std::uint32_t lane, BufferPtr buffer) = 0;

   protected:
    ~Host() = default;
  };

  Lane(const Options& options, Host& host, LinkDialler& dialler);
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // A link that a child dialled.
  void adopt(NodeRef child, ChannelId channel, const MakeLink& make);
  void start_pull(const effect::StartPull& start, const BufferPtr& buffer);
  void cancel_pull(TransferId transfer);
  void prioritize_pull(TransferId transfer, Priority priority);
  void accept_pull(const effect::AcceptPull& accept, const BufferPtr& buffer);
  void refuse_pull(const effect::RefusePull& refuse);
  void stop_serve(ServeId serve, Code code);
  void start_combine(Combination::Work work) { combiner_.start(std::move(work)); }
  void stop_combine(CopyKey out, std::uint32_t slice) { combiner_.stop(out, slice); }
  // Another thread has added valid bytes to the buffer, or sealed it.
  void wake(Buffer& buffer);
  // Closes all links to and from this node, or to and from everybody.
  void disconnect(NodeId node);
  void disconnect_all();

  void settle();
  Time next_wakeup() const;
  void on_time();

  // Something is being moved or combined.
  bool busy() const { return !pulls_.empty() || !serves_.empty() || combiner_.busy(); }
  bool is_pulling(TransferId transfer) const { return pulls_.contains(transfer); }
  bool is_serving(ServeId serve) const { return serves_.contains(serve); }

 private:
  struct ServePlace {
    Downstream* at = nullptr;
    TransferId transfer = 0;
    bool operator==(const ServePlace&) const = default;
  };

  Time now() const override { return host_.now(); }
  Uplink& uplink() override { return uplink_; }
  void link_broken() override { any_broken_ = true; }
  void buffer_advanced(Buffer& buffer) override;
  void pull_received(TransferId transfer, std::uint64_t bytes) override;
  void pull_accepted(TransferId transfer) override { events_.emplace_back(event::PullAccepted{transfer}); }
  void pull_silent(TransferId transfer) override { events_.emplace_back(event::PullSilent{transfer}); }
  void pull_ended(TransferId transfer, PullEnd how, const ValidBytes& valid) override;
  void pull_asked(NodeRef child, ChannelId channel, const PullRequest& pull) override;
  void serve_began(Downstream& at, TransferId transfer, ServeId serve, Buffer& buffer) override;
  void serve_prioritized(ServeId serve, Priority priority) override;
  void serve_ended(Downstream& at, TransferId transfer, ServeId serve, Buffer& buffer) override;
  void combine_ended(CopyKey out, std::uint32_t slice, bool complete) override;

  void go_on_with(const Buffer& buffer);
  void change_pulls();
  void tick();
  void close_idle();

  const Options options_;
  Host& host_;
  LinkDialler& dialler_;
  const Duration tick_every_;
  Time tick_at_ = Time::never();
  Time idle_check_at_ = Time::never();

  std::unordered_map<NodeRef, std::unique_ptr<Upstream>> parents_;
  std::vector<std::unique_ptr<Upstream>> replaced_;  // broken, not yet destroyed
  bool any_broken_ = false;
  std::unordered_map<ChannelId, std::unique_ptr<Downstream>> children_;
  std::unordered_map<TransferId, Upstream*> pulls_;
  std::unordered_map<ServeId, ServePlace> serves_;
  std::unordered_map<CopyKey, std::vector<ServePlace>> followers_;
  std::vector<ServePlace> following_;  // scratch of go_on_with
  Combiner combiner_;
  Downlink downlink_;
  Uplink uplink_;
  Downlink::Changes changes_;  // scratch
  LaneEvents events_;
};

}  // namespace hoplite::dataplane
