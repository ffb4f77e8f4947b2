// The loop thread's view of bulk transfers: which copies are open, and which pull, serve or combination runs on which I/O
// thread.
//
// Counts the users of each copy, so that it is closed only when no thread touches it. Loop thread only.
#pragma once

#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "transport/loop.h"
#include "transport/tcp/io_thread.h"
#include "transport/tcp/stranger_log.h"
#include "transport/transport.h"

namespace hoplite::tcp {

class BulkPlane {
 public:
  struct Environment {  // all of it outlives the BulkPlane
    Loop& loop;
    TransportHandler& handler;
    const TcpOptions& options;
    RateLimiter& limiter;
    RateMeters& meters;
    StrangerLog& log;
    Counters& counters;
  };

  BulkPlane(const Environment& environment, const Identity& identity);
  ~BulkPlane();
  BulkPlane(const BulkPlane&) = delete;
  BulkPlane& operator=(const BulkPlane&) = delete;

  // A connection that a child dialled.
  void adopt(UniqueFd fd, NodeRef child);
  void rename(const Identity& identity);
  void disconnect(NodeId node);

  // As documented in Transport.
  void open_copy(const effect::OpenCopy& open);
  void grow_copy(CopyKey copy, std::uint64_t bytes);
  void seal_copy(CopyKey copy, std::uint32_t slice);
  void combine(const effect::Combine& order);
  void follow_copy(CopyKey copy);
  void close_copy(CopyKey copy);
  ValidBytes valid(CopyKey copy, std::uint32_t slice) const;
  void start_pull(NodeRef parent, const Address& address, CopyKey copy, const PullRequest& pull, Duration patience);
  void cancel_pull(TransferId transfer);
  void accept_pull(ChannelId channel, ServeId serve, CopyKey copy, const PullRequest& pull);
  void refuse_pull(ChannelId channel, TransferId transfer, Code code);
  void stop_serve(ServeId serve, Code code);

 private:
  struct OpenCopy {
    CopyPtr shared;
    bool closing = false;
    std::uint32_t users = 0;    // pulls, serves and combinations that have not ended
    std::uint32_t readers = 0;  // of them, combinations that it is an input of
  };
  struct User {  // a pull or a serve
    std::uint32_t thread = 0;
    CopyKey copy = 0;
  };

  struct Combining {
    std::uint32_t thread = 0;
    std::vector<CopyKey> inputs;
  };
  using Combines = std::map<std::pair<CopyKey, std::uint32_t>, Combining>;  // by what is made: copy and slice

  OpenCopy& find(CopyKey copy);
  Combination::Work work_of(const effect::Combine& order);
  void wake_threads(Copy& copy);
  std::uint32_t least_busy_thread() const;
  std::uint32_t thread_of(ChannelId channel) const;
  static bool takes_no_time(const Combination::Work& work);
  void combine_here(Combination::Work work);
  void release(CopyKey copy);
  void post(std::function<void()> work);

  void handle(const bulk_event::PullAsked& event);
  void handle(const bulk_event::PullAccepted& event);
  void handle(const bulk_event::PullSilent& event);
  void handle(const bulk_event::PullEnded& event);
  void handle(const bulk_event::ServeEnded& event);
  void handle(const bulk_event::CombineEnded& event);
  void handle(const bulk_event::CopyGrown& event);
  void handle(const bulk_event::Refused& event);

  Environment env_;
  std::unordered_map<CopyKey, OpenCopy> copies_;
  std::unordered_map<TransferId, User> pulls_;
  std::unordered_map<ServeId, User> serves_;
  Combines combines_;
  std::vector<std::uint32_t> load_;  // users of each thread
  ChannelId channels_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::vector<std::unique_ptr<IoThread>> threads_;
};

}  // namespace hoplite::tcp
