// The daemon's side of the client protocol (protocol/client_messages.h): accepts processes on the unix socket, does the
// handshake, and turns frames into requests and replies into frames.
//
// Lives on the loop thread. Every complete frame of one recv() is handled at once; replies are collected and sent by
// `flush`, one send() for each client, which the owner calls after each batch. Nothing that a client does can take more
// than its limits allow. Bytes that make no sense end its connection; while replies pile up that it does not read, no
// further request of it is read.
//
// What a client holds outlives its connection (node/leases.h).
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/time.h"
#include "node/client_connection.h"
#include "node/leases.h"
#include "node/log.h"
#include "node/unix_listener.h"
#include "protocol/client_messages.h"
#include "transport/loop.h"

namespace hoplite {

class ClientHandler {
 public:
  virtual ~ClientHandler() = default;
  // Any request but Hello. `payload` is valid during the call.
  virtual void on_client_request(ClientKey client, std::uint64_t request, ipc::Request message, ByteView payload) = 0;
  // Its connection has ended; replies to it are ignored. Release is the only request that may still come.
  virtual void on_client_gone(ClientKey client) = 0;
  // After that: it may not be named again.
  virtual void on_lease_ended(ClientKey client) = 0;
};

struct ClientServerOptions {
  ipc::Welcome welcome;      // but for the client's number
  std::string token;         // the cluster token; needed only from other users' processes
  int read_only_arena = -1;  // descriptors that clients get; they stay the owner's
  int writable_arena = -1;
  ClientLimits limits;
};

class ClientServer final : private Leases::Handler {
 public:
  ClientServer(Loop& loop, ClientHandler& handler, Log& log, std::unique_ptr<UnixListener> listener,
               ClientServerOptions options);
  ~ClientServer() override;
  ClientServer(const ClientServer&) = delete;
  ClientServer& operator=(const ClientServer&) = delete;

  // Queued until flush(). Nothing happens if the client is gone.
  void reply(ClientKey client, std::uint64_t request, const ipc::Reply& message);
  void flush();

  // Those that have been welcomed, and those that are about to be closed.
  std::size_t clients() const { return connections_.size() - handshakes_.size(); }

  // The process of a client that is here, or whose lease is.
  Leases::Tenant process_of(ClientKey client) const { return leases_.tenant(client); }

  // Stops listening, removes the socket file and tells every client why under request number 0. What is queued still
  // goes out with flush(); requests that come now fail with kUnavailable.
  void stop(const std::string& reason);
  bool all_sent() const;

 private:
  void on_connection();
  void greet(UniqueFd socket, const ucred& peer);
  void on_event(ClientKey client, std::uint32_t events);
  void on_readable(ClientConnection& connection);
  void handle_frames(ClientConnection& connection, ByteView in);
  bool is_full(const ClientConnection& connection) const;
  void catch_up(ClientConnection& connection);
  void resume_all();
  void on_frame(ClientConnection& connection, const ipc::Frame& frame);
  void on_hello(ClientConnection& connection, std::uint64_t request, const ipc::Hello& hello);
  void on_request(ClientConnection& connection, std::uint64_t request, ipc::DecodedRequest& decoded);
  void end_late_handshakes();

  void on_given_back(ClientKey client, std::vector<CopyKey> copies) override;
  void on_lease_ended(ClientKey client) override { handler_.on_lease_ended(client); }

  Result<void> may_attach(const ClientConnection& connection, const ipc::Hello& hello) const;
  void fail_handshake(ClientConnection& connection, std::uint64_t request, const Error& error);
  void offend(ClientConnection& connection, const std::string& what);
  void close_soon(ClientConnection& connection);
  void log_once(pid_t pid, const std::string& text);
  void queue(ClientConnection& connection, std::uint64_t request, const ipc::Reply& message);
  void flush_one(ClientKey client);
  void close(ClientKey client);
  void pause_accepting();
  void mark(ClientConnection& connection);

  Loop& loop_;
  ClientHandler& handler_;
  Log& log_;
  std::unique_ptr<UnixListener> listener_;
  ClientServerOptions options_;
  std::uint64_t max_frame_bytes_;
  std::vector<std::byte> scratch_;

  std::unordered_map<ClientKey, std::unique_ptr<ClientConnection>> connections_;
  ClientKey last_key_ = 0;
  std::uint32_t last_number_ = 0;  // of a welcomed client: part of the ids it mints
  std::vector<ClientKey> to_flush_;
  std::vector<ClientKey> to_resume_;
  Leases leases_;

  std::set<ClientKey> handshakes_;     // under way, so by age
  Loop::TimerId handshake_timer_ = 0;  // set while a handshake is under way
  Loop::TimerId resume_timer_ = 0;     // set while somebody is to be resumed
  Loop::TimerId accept_timer_ = 0;     // set while accept() fails for want of descriptors
  std::set<pid_t> offenders_;
  std::string stopping_;  // why, once stop() was called
};

}  // namespace hoplite
