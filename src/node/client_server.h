// The daemon's side of the client protocol (protocol/client_messages.h): accepts processes on the unix socket, does the
// handshake, and turns frames into requests and replies into frames.
//
// Lives on the loop thread. Every complete frame of one recv() is handled at once; replies are collected and sent by
// `flush`, one send() for each client, which the owner calls after each batch. Nothing that a client does can take more
// than its limits allow: bytes that make no sense, and replies that are not read, end its connection.
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
  // It may not be named again; replies to it are ignored.
  virtual void on_client_gone(ClientKey client) = 0;
};

struct ClientServerOptions {
  ipc::Welcome welcome;      // but for the client's number
  std::string token;         // the cluster token; needed only from other users' processes
  int read_only_arena = -1;  // descriptors that clients get; they stay the owner's
  int writable_arena = -1;
  ClientLimits limits;
};

class ClientServer {
 public:
  ClientServer(Loop& loop, ClientHandler& handler, Log& log, std::unique_ptr<UnixListener> listener,
               ClientServerOptions options);
  ~ClientServer();
  ClientServer(const ClientServer&) = delete;
  ClientServer& operator=(const ClientServer&) = delete;

  // Queued until flush(). Nothing happens if the client is gone.
  void reply(ClientKey client, std::uint64_t request, const ipc::Reply& message);
  void flush();

  // Those that have been welcomed, and those that are about to be closed.
  std::size_t clients() const { return connections_.size() - handshakes_.size(); }

  // Stops listening, removes the socket file and tells every client why under request number 0. What is queued still
  // goes out with flush(); requests that come now fail with kUnavailable.
  void stop(const std::string& reason);
  bool all_sent() const;

 private:
  void on_connection();
  void greet(UniqueFd socket, const ucred& peer);
  void on_event(ClientKey client, std::uint32_t events);
  void on_readable(ClientConnection& connection);
  void on_frame(ClientConnection& connection, const ipc::Frame& frame);
  void on_hello(ClientConnection& connection, std::uint64_t request, const ipc::Hello& hello);
  void on_request(ClientConnection& connection, std::uint64_t request, ipc::DecodedRequest& decoded);
  void end_late_handshakes();

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

  std::set<ClientKey> handshakes_;     // under way, so by age
  Loop::TimerId handshake_timer_ = 0;  // set while a handshake is under way
  Loop::TimerId accept_timer_ = 0;     // set while accept() fails for want of descriptors
  std::set<pid_t> offenders_;
  std::string stopping_;  // why, once stop() was called
};

}  // namespace hoplite
