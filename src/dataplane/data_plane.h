// The loop thread's view of the data plane: carries out commands, counts the users of each copy so that it is closed only when
// no lane touches it, and reports events. Loop thread only.
//
// Contract: copy keys, transfer numbers and serve numbers are used once; every other sentence of protocol/data_plane.h. What
// breaks it is a bug of the caller, and CHECKed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dataplane/lane.h"

namespace hoplite::dataplane {

class DataPlane {
 public:
  struct Options {
    std::byte* arena = nullptr;  // extents are offsets into it; null: there is no memory, only counting
    std::uint64_t arena_bytes = 0;
    std::uint32_t lanes = 1;
  };
  class Host {
   public:
    // Runs the command on that lane, in order.
    virtual void run(std::uint32_t lane, std::function<void(Lane&)> command) = 0;
    // Calls `take` on the loop thread, later.
    virtual void deliver(LaneEvents events) = 0;
    // Never from inside a command.
    virtual void on_event(DataPlaneEvent event) = 0;

   protected:
    ~Host() = default;
  };

  DataPlane(const Options& options, Host& host);
  DataPlane(const DataPlane&) = delete;
  DataPlane& operator=(const DataPlane&) = delete;

  void execute(const effect::OpenCopy& open);
  void execute(const effect::GrowCopy& grow);
  void execute(const effect::SealCopy& seal);
  void execute(const effect::Combine& combine);
  void execute(const effect::FollowCopy& follow);
  void execute(const effect::CloseCopy& close);
  void execute(const effect::StartPull& start);
  void execute(const effect::CancelPull& cancel);
  void execute(const effect::PrioritizePull& prioritize);
  void execute(const effect::AcceptPull& accept);
  void execute(const effect::RefusePull& refuse);

  // Nothing of a copy that is not open.
  ValidBytes valid(CopyKey copy, std::uint32_t slice) const;
  // Closes all links to and from this node, or to and from everybody. Pulls and serves on them end as usual.
  void disconnect(NodeId node);
  void disconnect_all();
  // A link that a child dialled: its number, and the lane that is to adopt it.
  std::pair<ChannelId, std::uint32_t> new_channel();
  // What lanes have delivered.
  void take(const LaneEvents& events);

  // For tests and the simulator.
  std::size_t open_copies() const { return copies_.size(); }
  std::size_t active_pulls() const { return pulls_.size(); }
  std::size_t active_serves() const { return serves_.size(); }
  // Null if it is not open.
  const Buffer* find_buffer(CopyKey copy) const;
  // The slice that a pull fills; null if it has ended.
  const Buffer* buffer_of_pull(TransferId transfer) const;

 private:
  struct OpenCopy {
    BufferPtr buffer;
    bool closing = false;
    std::uint32_t users = 0;                 // pulls, serves and combinations that have not ended
    std::uint32_t readers = 0;               // of them, combinations that it is an input of
    std::vector<std::uint32_t> pulled = {};  // slices
  };
  struct User {  // a pull or a serve
    std::uint32_t lane = 0;
    CopyKey copy = 0;
    std::uint32_t slice = 0;
  };
  struct Combining {
    std::uint32_t lane = 0;
    std::vector<CopyKey> inputs;
  };
  using Combines = std::map<std::pair<CopyKey, std::uint32_t>, Combining>;  // by what is made: copy and slice

  OpenCopy& find(CopyKey copy);
  void check_layout(const effect::OpenCopy& open) const;
  Combination::Work work_of(const effect::Combine& order);
  static bool takes_no_time(const Combination::Work& work);
  void combine_here(Combination::Work work);
  void advanced(Buffer& buffer);
  void stop_users(CopyKey copy);
  std::uint32_t least_busy_lane() const;
  std::uint32_t lane_of(ChannelId channel) const { return static_cast<std::uint32_t>(channel % options_.lanes); }
  void let_go(const User& user);
  void release(CopyKey copy);

  template <typename E> void handle(const E& event) { host_.on_event(event); }
  void handle(const event::PullEnded& event);
  void handle(const event::ServeEnded& event);
  void handle(const event::ServePrioritized& event);
  void handle(const CombineEnded& event);
  void handle(const BufferGrown& event);
  void handle(const CloseAsked& event) { release(event.copy); }

  const Options options_;
  Host& host_;
  std::unordered_map<CopyKey, OpenCopy> copies_;
  std::unordered_map<TransferId, User> pulls_;
  std::unordered_map<ServeId, User> serves_;
  Combines combines_;
  std::vector<std::uint32_t> load_;  // users of each lane
  ChannelId channels_ = 0;
};

}  // namespace hoplite::dataplane
