// All bulk connections and combinations of one I/O thread, and what is going on there. Everything here runs on that thread.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "transport/tcp/bulk_host.h"
#include "transport/tcp/combiner.h"
#include "transport/tcp/pull_connection.h"
#include "transport/tcp/serve_connection.h"

namespace hoplite::tcp {

class Worker : private BulkHost {
 public:
  struct Environment {  // all of it outlives the Worker; the functions are thread-safe
    Loop& loop;
    std::uint32_t index;
    bool busy_poll;
    const Limits& limits;
    RateLimiter& limiter;
    RateMeters& meters;
    Counters& counters;
    std::function<void(BulkEvents)> deliver;                             // to the loop thread
    std::function<void(std::uint32_t thread, CopyPtr copy)> wake_other;  // Worker::wake on another thread
  };

  Worker(Environment environment, Identity identity);
  ~Worker() override;

  void adopt(UniqueFd fd, NodeRef child, ChannelId channel);
  void start_pull(NodeRef parent, const Address& address, const CopyPtr& copy, const PullRequest& pull,
                  Duration patience);
  void cancel_pull(TransferId transfer);
  void accept_pull(ChannelId channel, ServeId serve, const CopyPtr& copy, const PullRequest& pull);
  void refuse_pull(ChannelId channel, TransferId transfer, Code code);
  void stop_serve(ServeId serve, Code code);
  void start_combine(Combination::Work work);
  void stop_combine(CopyKey out, std::uint32_t slice);
  // Another thread has moved a watermark of the copy, or sealed it.
  void wake(Copy& copy);
  void disconnect(NodeId node);
  // Closes everything; from now on we are `identity`.
  void rename(Identity identity);

 private:
  struct ServePlace {
    ServeConnection* connection = nullptr;
    TransferId transfer = 0;
    bool operator==(const ServePlace&) const = default;
  };

  void connection_broken() override { any_broken_ = true; }
  void emit(BulkEvent event) override { events_.push_back(std::move(event)); }
  void copy_advanced(Copy& copy) override;
  void pull_ended(TransferId transfer) override;
  void serve_began(ServeConnection& connection, TransferId transfer, ServeId serve, Copy& copy) override;
  void serve_ended(ServeConnection& connection, TransferId transfer, ServeId serve, Copy& copy) override;

  BulkContext context();
  void go_on_with(const Copy& copy);
  void after_batch();
  void set_tick();
  void tick();
  void close_idle();

  Environment env_;
  Identity identity_;
  const Duration tick_every_;
  Time last_tick_;
  Loop::TimerId tick_timer_ = 0;
  Loop::TimerId idle_timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

  std::unordered_map<NodeRef, std::unique_ptr<PullConnection>> parents_;
  std::vector<std::unique_ptr<PullConnection>> replaced_;  // broken, not yet destroyed
  bool any_broken_ = false;
  std::unordered_map<ChannelId, std::unique_ptr<ServeConnection>> children_;
  std::unordered_map<TransferId, PullConnection*> pulls_;
  std::unordered_map<ServeId, ServePlace> serves_;
  std::unordered_map<CopyKey, std::vector<ServePlace>> followers_;
  std::vector<ServePlace> following_;  // scratch of go_on_with
  Combiner combiner_;
  BulkEvents events_;
};

}  // namespace hoplite::tcp
