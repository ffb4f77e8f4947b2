// A thread with a loop and a lane of the data plane on it, over TCP.
#pragma once

#include <functional>
#include <thread>

#include "dataplane/lane.h"
#include "transport/loop.h"
#include "transport/tcp/tcp_link.h"

namespace hoplite::tcp {

class IoThread final : private dataplane::Lane::Host, private dataplane::LinkDialler {
 public:
  class Host {
   public:
    // Calls `command` on that thread. Thread-safe.
    virtual void run(std::uint32_t lane, std::function<void(dataplane::Lane&)> command) = 0;
    // To DataPlane::take on the loop thread. Thread-safe.
    virtual void deliver(dataplane::LaneEvents events) = 0;

   protected:
    ~Host() = default;
  };

  // Runs from `start` on, until it is stopped or destroyed. `shared` and `host` outlive it.
  IoThread(Shared& shared, Host& host, std::uint32_t index, const Identity& identity);
  ~IoThread() { stop(); }
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  void start();
  void stop();

  // These run on the thread, in order. Thread-safe; after `stop` they do nothing.
  void run(std::function<void(dataplane::Lane&)> command);
  // A connection that a child dialled.
  void adopt(UniqueFd fd, NodeRef child, ChannelId channel);
  // From now on we are `identity`.
  void rename(const Identity& identity);

 private:
  Time now() const override { return loop_.now(); }
  void deliver(dataplane::LaneEvents events) override { host_.deliver(std::move(events)); }
  void wake(std::uint32_t lane, dataplane::BufferPtr buffer) override;
  std::unique_ptr<dataplane::Link> dial(NodeRef parent, const Address& address, dataplane::LinkUser& user) override;
  void after_batch();
  void arm_timer();

  Shared& shared_;
  Host& host_;
  Loop loop_;
  Identity identity_;
  dataplane::Lane lane_;
  Loop::TimerId timer_ = 0;
  Time timer_at_ = Time::never();
  std::thread thread_;
};

}  // namespace hoplite::tcp
