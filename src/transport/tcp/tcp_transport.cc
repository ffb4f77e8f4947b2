// Transport over TCP: wires the listening socket, the control connections and the lanes of the data plane together.
#include <utility>

#include "transport/tcp/acceptor.h"
#include "transport/tcp/control_plane.h"
#include "transport/tcp/tcp_lanes.h"
#include "transport/transport.h"

namespace hoplite {
namespace tcp {
namespace {

class TcpTransport final : public Transport {
 public:
  TcpTransport(Loop& loop, TransportHandler& handler, const TcpOptions& options, UniqueFd listener)
      : options_(options),
        listen_address_(local_address(listener.get())),
        identity_{options.self, options.advertise.empty() ? listen_address_ : options.advertise, options.token},
        limiter_(options.max_rate),
        log_(options_.limits.sockets, options.log),
        control_({loop, handler, identity_, options_.limits, limiter_, log_, counters_}),
        lanes_({loop, handler, options_, limiter_, meters_, log_, counters_}, identity_),
        acceptor_(loop, std::move(listener), identity_, options_.limits.sockets, log_, counters_,
                  [this](UniqueFd fd, const Hello& peer) { adopt(std::move(fd), peer); }) {
    loop.after_batch([this, alive = std::weak_ptr(alive_)] {
      if (!alive.expired()) control_.flush();
    });
  }

  Address listen_address() const override { return listen_address_; }

  void rename(NodeRef self) override {
    identity_.node = self;
    acceptor_.drop_pending();
    control_.disconnect_all();
    lanes_.rename(identity_);
  }

  void send(NodeRef to, const Address& address, const Message& message, ByteView payload) override {
    control_.send(to, address, message, payload);
  }
  void send_to_address(const Address& address, const Message& message) override {
    control_.send_to_address(address, message);
  }
  void disconnect(NodeId node) override {
    control_.disconnect(node);
    lanes_.data_plane().disconnect(node);
    meters_.forget(node);
  }

  dataplane::DataPlane& data_plane() override { return lanes_.data_plane(); }

  TransportStats stats() const override {
    return {counters_.bulk_bytes_in, counters_.bulk_bytes_out, counters_.connections, counters_.rejected};
  }
  std::vector<PeerRate> rates() const override { return meters_.rates(); }

 private:
  void adopt(UniqueFd fd, const Hello& peer) {
    if (peer.role == Role::kControl) {
      control_.adopt(std::move(fd), peer);
    } else {
      lanes_.adopt(std::move(fd), peer.node);
    }
  }

  const TcpOptions options_;
  const Address listen_address_;
  Identity identity_;
  RateLimiter limiter_;
  RateMeters meters_;
  StrangerLog log_;
  Counters counters_;
  ControlPlane control_;
  TcpLanes lanes_;
  Acceptor acceptor_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace
}  // namespace tcp

Result<std::unique_ptr<Transport>> make_tcp_transport(Loop& loop, TransportHandler& handler,
                                                      const TcpOptions& options) {
  if (options.io_threads < 1 || options.io_threads > dataplane::kMaxLanes) {
    return Error{Code::kInvalidArgument, "the number of I/O threads must be 1 to " +
                                             std::to_string(dataplane::kMaxLanes) + ", not " +
                                             std::to_string(options.io_threads)};
  }
  auto listener = tcp::listen_on(options.listen, options.limits.sockets.backlog);
  if (!listener) return listener.error();
  return std::unique_ptr<Transport>(
      std::make_unique<tcp::TcpTransport>(loop, handler, options, std::move(listener).value()));
}

}  // namespace hoplite
