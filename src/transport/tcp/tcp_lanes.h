// The I/O threads, as the lanes of a data plane. Loop thread only.
#pragma once

#include <memory>
#include <vector>

#include "dataplane/data_plane.h"
#include "transport/tcp/io_thread.h"
#include "transport/tcp/stranger_log.h"
#include "transport/transport.h"

namespace hoplite::tcp {

class TcpLanes final : private dataplane::DataPlane::Host {
 public:
  struct Environment {  // all of it outlives this
    Loop& loop;
    TransportHandler& handler;
    const TcpOptions& options;
    RateLimiter& limiter;
    RateMeters& meters;
    StrangerLog& log;
    Counters& counters;
  };

  TcpLanes(const Environment& environment, const Identity& identity);
  ~TcpLanes();
  TcpLanes(const TcpLanes&) = delete;
  TcpLanes& operator=(const TcpLanes&) = delete;

  dataplane::DataPlane& data_plane() { return plane_; }
  // A connection that a child dialled.
  void adopt(UniqueFd fd, NodeRef child);
  // Closes every link; from now on we are `identity`.
  void rename(const Identity& identity);

 private:
  void run(std::uint32_t lane, std::function<void(dataplane::Lane&)> command) override;
  void deliver(dataplane::LaneEvents events) override;
  void on_event(DataPlaneEvent event) override { env_.handler.on_data_plane(std::move(event)); }

  Environment env_;
  dataplane::DataPlane plane_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::vector<std::unique_ptr<IoThread>> threads_;
};

}  // namespace hoplite::tcp
