// Transport over TCP: wires the listening socket, the control connections and the I/O threads, which are the lanes of a data
// plane, together.
#include <utility>

#include "transport/tcp/acceptor.h"
#include "transport/tcp/control_plane.h"
#include "transport/tcp/io_thread.h"
#include "transport/transport.h"

namespace hoplite {
namespace tcp {
namespace {

using dataplane::Lane;
using dataplane::LaneEvents;

class TcpTransport final : public Transport, private dataplane::DataPlane::Host, private IoThread::Host {
 public:
  TcpTransport(Loop& loop, TransportHandler& handler, const TcpOptions& options, UniqueFd listener)
      : shared_(loop, handler, options),
        listen_address_(local_address(listener.get())),
        identity_{options.self, options.advertise.empty() ? listen_address_ : options.advertise, options.token},
        plane_({options.arena, options.arena_bytes, options.io_threads}, *this),
        control_(shared_, identity_),
        acceptor_(shared_, std::move(listener), identity_,
                  [this](UniqueFd fd, const Hello& peer) { adopt(std::move(fd), peer); }) {
    for (std::uint32_t i = 0; i < options.io_threads; ++i)
      threads_.push_back(std::make_unique<IoThread>(shared_, static_cast<IoThread::Host&>(*this), i, identity_));
    for (auto& thread : threads_) thread->start();
    loop.after_batch([this, alive = std::weak_ptr(alive_)] {
      if (!alive.expired()) control_.flush();
    });
  }
  // All threads stop before any of them is destroyed: they wake each other.
  ~TcpTransport() override {
    for (auto& thread : threads_) thread->stop();
  }
  TcpTransport(const TcpTransport&) = delete;
  TcpTransport& operator=(const TcpTransport&) = delete;

  Address listen_address() const override { return listen_address_; }

  void rename(NodeRef self) override {
    identity_.node = self;
    acceptor_.drop_pending();
    control_.disconnect_all();
    plane_.disconnect_all();
    for (auto& thread : threads_) thread->rename(identity_);
  }

  void send(NodeRef to, const Address& address, const Message& message, ByteView payload) override {
    control_.send(to, address, message, payload);
  }
  void send_to_address(const Address& address, const Message& message) override {
    control_.send_to_address(address, message);
  }
  std::uint64_t backlog(NodeRef to) const override { return control_.backlog(to); }
  void disconnect(NodeId node) override {
    control_.disconnect(node);
    plane_.disconnect(node);
    shared_.meters.forget(node);
  }

  dataplane::DataPlane& data_plane() override { return plane_; }

  TransportStats stats() const override {
    const Counters& counters = shared_.counters;
    return {counters.bulk_bytes_in, counters.bulk_bytes_out, counters.connections, counters.rejected};
  }
  PeerRates rates() const override { return shared_.meters.rates(); }

 private:
  void adopt(UniqueFd fd, const Hello& peer) {
    if (peer.role == Role::kControl) return control_.adopt(std::move(fd), peer);
    const auto [channel, lane] = plane_.new_channel();
    threads_[lane]->adopt(std::move(fd), peer.node, channel);
  }

  void run(std::uint32_t lane, std::function<void(Lane&)> command) override { threads_[lane]->run(std::move(command)); }
  void deliver(LaneEvents events) override {
    shared_.loop.post([this, alive = std::weak_ptr(alive_), events = std::move(events)] {
      if (!alive.expired()) plane_.take(events);
    });
  }
  void on_event(DataPlaneEvent event) override { shared_.handler.on_data_plane(std::move(event)); }

  Shared shared_;
  const Address listen_address_;
  Identity identity_;
  dataplane::DataPlane plane_;
  ControlPlane control_;
  Acceptor acceptor_;
  std::vector<std::unique_ptr<IoThread>> threads_;
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
