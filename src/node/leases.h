// What outlives the connection of a client: a pair of sockets whose one end the client's process has, and with it every
// child that it forks. While any copy of that end is open, somebody may see what the client viewed and wrote.
//
// The daemon never sends on it. When the connection has ended, the process gives back views through it, a list of CopyKeys in
// each packet. What makes no sense in one is ignored: a process can only give away what is its own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "base/limits.h"
#include "base/unique_fd.h"
#include "hoplite/error.h"
#include "protocol/transfer.h"
#include "transport/loop.h"

namespace hoplite {

class Leases {
 public:
  class Handler {
   public:
    virtual ~Handler() = default;
    virtual void on_given_back(ClientKey client, std::vector<CopyKey> copies) = 0;
    // Its connection has ended, and nobody has its lease any more. It is forgotten.
    virtual void on_lease_ended(ClientKey client) = 0;
  };

  Leases(Loop& loop, Handler& handler, const ClientLimits& limits) : loop_(loop), handler_(handler), limits_(limits) {}
  ~Leases();
  Leases(const Leases&) = delete;
  Leases& operator=(const Leases&) = delete;

  // The client's end, for the client alone: as long as it is open anywhere, the lease lasts.
  Result<UniqueFd> begin(ClientKey client, pid_t pid);
  // The client's connection has ended.
  void disconnected(ClientKey client);

  std::size_t size() const { return leases_.size(); }
  struct Tenant {
    pid_t pid = 0;
    bool attached = true;
  };
  // Of a client that has a lease.
  Tenant tenant(ClientKey client) const { return leases_.at(client).tenant; }

 private:
  struct Lease {
    UniqueFd socket;
    Tenant tenant;
    bool ended = false;
  };
  void on_event(ClientKey client, std::uint32_t events);
  // True if nothing more is there.
  bool read_packets(ClientKey client, int socket);
  void forget(ClientKey client);

  Loop& loop_;
  Handler& handler_;
  const ClientLimits& limits_;
  std::unordered_map<ClientKey, Lease> leases_;
};

}  // namespace hoplite
