// What clients have under way on this node: requests that are not answered yet, views that they hold, and objects that they
// write.
//
// Requests end with the client's connection, views and the memory of objects being written with its lease, which ends later:
// the process may live on, and with it pointers into the arena. So nobody else gets that memory before.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/agent/outbox.h"
#include "core/agent/timers.h"
#include "core/objects/object_table.h"
#include "hoplite/error.h"

namespace hoplite {

struct RequestKey {
  ClientKey client = 0;
  std::uint64_t request = 0;  // the client's number for it
  auto operator<=>(const RequestKey&) const = default;
};

class Clients {
 public:
  enum class Kind : std::uint8_t { kGet, kPut, kCreate, kWait, kErrand };
  struct Pending {
    Kind kind = Kind::kGet;
    ObjectId id;
    std::uint64_t errand = 0;  // kErrand: its key
    std::optional<Timers::Handle> deadline;
  };

  Clients(Timers& timers, Outbox& out) : timers_(timers), out_(out) {}

  // --- requests
  // Under a number that the client does not use already.
  void begin(const RequestKey& key, Kind kind, const ObjectId& id, Time deadline, std::uint64_t errand = 0);
  // nullptr: it has been answered.
  const Pending* find(const RequestKey& key) const;
  // The final reply, and one that others follow.
  void answer(const RequestKey& key, ipc::Reply reply);
  void fail(const RequestKey& key, Code code, std::string why);
  void say(const RequestKey& key, ipc::Reply reply);
  // It has asked for something, and is still there to hear the answer.
  bool is_attached(ClientKey client) const;
  std::vector<RequestKey> pending() const;                  // of all clients, in order
  std::vector<RequestKey> pending(ClientKey client) const;  // in order
  std::size_t pending_count() const;

  // --- views. A client may hold several of one copy.
  void hold_view(ClientKey client, CopyUse view);
  // One view; of a client without a connection also what it wrote.
  void release(ClientKey client, CopyKey copy);

  // --- objects being written
  void begin_writing(ClientKey client, CopyUse written);
  // nullptr if this client does not write it.
  Copy* written_by(ClientKey client, CopyKey copy) const;
  // The home has refused it: the client is told when it is done.
  void refuse_writing(ClientKey client, CopyKey copy, Code code);
  // The client is done with it, one way or the other. kOk unless it was refused.
  Code end_writing(ClientKey client, CopyKey copy);
  std::vector<CopyKey> writing(ClientKey client) const;

  // --- the end
  // Its connection has ended. Its requests have, too; what it holds stays.
  void detach(ClientKey client);
  // Its lease has ended: lets go of everything that it holds.
  void forget(ClientKey client);

  std::vector<ClientHolding> holdings() const;  // of those that hold anything, by client

  void check_invariants() const;

 private:
  struct Writing {
    CopyUse use;
    Code refused = Code::kOk;
  };
  struct Client {
    bool attached = true;
    ClientHolding holding;  // kept along, so that displays need not look at every view
    std::map<std::uint64_t, Pending> requests;
    std::map<CopyKey, std::vector<CopyUse>> views;
    std::map<CopyKey, Writing> writing;
  };
  static void took(Client& client, const CopyUse& use);
  static void let_go(Client& client, const CopyUse& use);

  Timers& timers_;
  Outbox& out_;
  std::map<ClientKey, Client> clients_;
};

}  // namespace hoplite
