// The daemon: one loop thread that owns an Agent, turns sockets, timers and clients into its events and carries out the
// effects. It decides nothing itself.
//
//     auto node = Node::create(options, log);   // listens, for peers and for clients
//     (*node)->run();                           // until stop() has been called and carried out
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/limits.h"
#include "core/agent/agent.h"
#include "node/client_server.h"
#include "node/effects.h"
#include "node/joiner.h"
#include "node/log.h"
#include "node/narrator.h"
#include "shm/arena.h"
#include "transport/loop.h"
#include "transport/transport.h"

namespace hoplite {

// The transport's options, and more. Who we are, the arena and the log are the node's to fill in.
struct NodeOptions : TcpOptions {
  std::vector<Address> join;  // any members of the cluster
  std::string socket;         // for clients
  mode_t socket_mode = 0600;
  std::uint64_t memory_bytes = 0;  // of the arena
  std::string software_version;
};

class Node final : private TransportHandler, private ClientHandler, private Progress, private Joiner::Host {
 public:
  // `log` must outlive the node. Signals that are to be handled by the loop must be blocked before: threads start here.
  static Result<std::unique_ptr<Node>> create(const NodeOptions& options, Log& log);
  ~Node() override;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  Loop& loop() { return loop_; }
  // Where others reach this node.
  const Address& address() const { return address_; }

  void run();
  // On the loop thread. Tells peers and clients, sends what is queued for at most a second, and ends run(). Said again, it
  // ends run() at once.
  void stop();

 private:
  Node(const NodeOptions& options, Log& log);
  Result<void> start();
  Result<void> start_transport(NodeId id);
  void start_agent(NodeId id);
  void start_clients(NodeId id, std::unique_ptr<UnixListener> listener);

  // One event through the agent, and its effects. `payload` is valid during the call.
  void step(Event event, ByteView payload = {});
  void after_batch();
  void prefault();
  void arm_timer();
  void stop_when_left();
  void finish_stopping(Time since);

  void on_message(NodeRef from, Message message, ByteView payload) override;
  void on_peer_lost(NodeRef peer, Loss why) override;
  void on_not_reached(const Address& address, const std::string& why) override;
  void on_data_plane(DataPlaneEvent event) override;

  void knock_at(const Address& numeric, const Message& message) override;
  bool is_inside(const Address& numeric) const override;
  void may_be_first() override;

  void on_client_request(ClientKey client, std::uint64_t request, ipc::Request message, ByteView payload) override;
  void on_client_gone(ClientKey client) override;
  void on_lease_ended(ClientKey client) override;

  ValidBytes valid(CopyKey copy, std::uint32_t slice) const override;
  std::uint64_t backlog(NodeRef peer) const override;

  ipc::Status status() const;
  std::vector<ipc::Holder> holders() const;
  ipc::Objects objects() const;
  ipc::Nodes nodes() const;

  NodeOptions options_;
  Log& log_;
  Time started_;
  Address address_;

  // Each may use those before it; the transport's threads end before the arena goes.
  Loop loop_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Agent> agent_;
  std::unique_ptr<ClientServer> clients_;
  std::unique_ptr<Joiner> joiner_;
  std::unique_ptr<EffectRunner> runner_;
  std::unique_ptr<Narrator> narrator_;  // only if the log shows what it tells

  NodeRef self_;      // as the transport knows it
  Effects effects_;   // of the step under way; kept for its memory
  Extent untouched_;  // the middle of the arena that was never handed out, as the arena knows it
  bool stepping_ = false;
  bool stopping_ = false;
  Loop::TimerId timer_ = 0;
  Time timer_at_ = Time::never();
};

}  // namespace hoplite
