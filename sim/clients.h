// Simulated client processes: they ask, write into the arena, hold views, and keep the ledger.
#pragma once

#include <vector>

#include "base/random.h"
#include "sim/failovers.h"
#include "sim/judge.h"
#include "sim/ledger.h"
#include "sim/world.h"

namespace hoplite::sim {

class Clients final : public WorldObserver {
 public:
  Clients(World& world, Ledger& ledger, Judge& judge)
      : world_(world), ledger_(ledger), judge_(judge), failovers_(world, ledger) {
    world_.observe(this);
  }

  // --- a client's life
  ClientKey attach(NodeIndex node);
  void kill(ClientKey client);
  // Its connection ends, while its process keeps what it viewed and wrote: it gives views back one by one, writes on, and
  // lets go of all in the end.
  void disconnect(ClientKey client);
  bool any_disconnected() const { return !disconnected_.empty(); }
  void end_one(Random& random);
  void end_disconnected();
  void write_on(const Writing& kept, std::uint8_t fill);
  // Ids that the client mints itself; its node is their home.
  ObjectId new_id(ClientKey client);

  // --- requests; `client` must be attached
  RequestNumber put(ClientKey client, ObjectId id, std::uint64_t size, std::int64_t timeout_ns);
  RequestNumber create(ClientKey client, ObjectId id, std::uint64_t size, std::int64_t timeout_ns);
  RequestNumber get(ClientKey client, const ipc::Get& get);
  RequestNumber wait(ClientKey client, std::vector<ObjectId> ids, std::uint32_t count, std::int64_t timeout_ns);
  RequestNumber remove(ClientKey client, ObjectId id, std::int64_t timeout_ns);
  RequestNumber reduce(ClientKey client, const ReduceSpec& spec, std::uint64_t size);  // `size` is the target's
  RequestNumber report(ClientKey client, ObjectId target);
  void cancel(RequestNumber request);
  // Of what `create` has opened: false if it is not there (yet, or any more).
  bool write(RequestNumber create, std::uint64_t up_to);
  RequestNumber seal(RequestNumber create, std::int64_t timeout_ns);  // 0 if it is not there
  bool abort(RequestNumber create);
  void release(HeldNumber held);
  void release_all();

  const Failovers& failovers() const { return failovers_; }
  std::vector<ClientKey> attached_to(NodeIndex node) const;
  ClientKey on(NodeIndex node);  // the first of those; a new one where nobody is

  void on_reply(ClientKey client, std::uint64_t request, const ipc::Reply& reply) override;
  void on_transfer(const Transfer& transfer) override;
  void on_step(NodeIndex node) override;
  void on_leave(NodeIndex node) override { judge_.copies_go(node); }
  void on_death(NodeIndex node) override;
  void on_break(NodeIndex a, NodeIndex b) override { failovers_.connections_break(a, b); }
  void on_rename(NodeIndex node, NodeRef before) override { judge_.renamed(node, before); }

 private:
  struct Answer;
  RequestNumber note(Ask kind, ClientKey client, ObjectId id, std::int64_t timeout_ns);
  PutNumber note_put(ClientKey client, ObjectId id, std::uint64_t size);
  void name_put(PutNumber put, ObjectId id);
  void end_requests(ClientKey client);
  void orphan(ClientKey client);

  World& world_;
  Ledger& ledger_;
  Judge& judge_;
  Failovers failovers_;
  std::vector<ClientKey> attached_;
  std::vector<ClientKey> disconnected_;  // whose processes live on
  std::map<ClientKey, std::uint32_t> minted_;
};

}  // namespace hoplite::sim
