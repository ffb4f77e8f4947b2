// Real sockets and threads, on loopback.
#include <thread>

#include "tests/dataplane/fabric.h"
#include "transport/transport.h"

namespace hoplite {
namespace {

class TcpNode final : public FabricNode, private TransportHandler {
 public:
  TcpNode(Loop& loop, const TcpOptions& options, std::function<void(DataPlaneEvent)> on_event)
      : on_event_(std::move(on_event)), transport_(std::move(make_tcp_transport(loop, *this, options)).value()) {}

  dataplane::DataPlane& plane() override { return transport_->data_plane(); }
  Address address() const override { return transport_->listen_address(); }
  std::uint64_t bytes_sent() const override { return transport_->stats().bulk_bytes_out; }

 private:
  void on_message(NodeRef, Message, ByteView) override {}
  void on_peer_lost(NodeRef, Loss) override {}
  void on_not_reached(const Address&, const std::string&) override {}
  void on_data_plane(DataPlaneEvent event) override { on_event_(std::move(event)); }

  std::function<void(DataPlaneEvent)> on_event_;
  std::unique_ptr<Transport> transport_;
};

class TcpFabric final : public Fabric {
 public:
  std::unique_ptr<FabricNode> make_node(NodeRef self, const NodeOptions& options, ByteSpan arena,
                                        std::function<void(DataPlaneEvent)> on_event) override {
    TcpOptions tcp;
    tcp.self = self;
    tcp.listen = {"127.0.0.1", 0};
    tcp.io_threads = options.lanes;
    tcp.max_rate = options.slow ? 20'000'000 : 0;
    tcp.limits = options.limits;
    tcp.arena = arena.data();
    tcp.arena_bytes = arena.size();
    return std::make_unique<TcpNode>(loop_, tcp, std::move(on_event));
  }
  Time now() const override { return monotonic_now(); }
  void run_some() override { loop_.run_once(monotonic_now() + Duration::ms(5)); }
  void run_lanes() override { std::this_thread::yield(); }

 private:
  Loop loop_;
};

}  // namespace

FabricKind tcp_fabric() {
  return {"Tcp", [] { return std::make_unique<TcpFabric>(); }};
}

}  // namespace hoplite
