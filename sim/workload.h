// Random clients: one small operation at a time.
#pragma once

#include "sim/clients.h"
#include "sim/draw.h"

namespace hoplite::sim {

class Workload {
 public:
  Workload(World& world, Clients& clients, Ledger& ledger, Judge& judge, const RunPlan& plan, Random& random);

  // Does something, if anybody is there to do it.
  void operate();
  // Nobody writes any more: half-written objects are sealed or given up, at random.
  void finish_writing();

 private:
  template <typename Container>
  auto one_of(Container& container) {
    return std::next(container.begin(), static_cast<std::ptrdiff_t>(random_.below(container.size())));
  }
  ClientKey some_client();
  ObjectId some_id(ClientKey client);  // named, minted before, or known from a put
  std::uint64_t some_size();
  std::int64_t some_timeout();
  ipc::Get some_get(double follow);  // of an object to be named; it follows with this chance

  void put(ClientKey client);
  void create(ClientKey client);
  void go_on_writing();
  void seal_one();
  void get(ClientKey client);
  void broadcast(ClientKey client);  // everybody gets one object
  void wait(ClientKey client);
  void remove(ClientKey client);
  void reduce(ClientKey client);      // of sources of its own, some put before, some later, some never
  void put_source(ClientKey client);  // one of those
  void cancel();
  void release();
  void outlive();
  void look();

  World& world_;
  Clients& clients_;
  Ledger& ledger_;
  Judge& judge_;
  const RunPlan& plan_;
  Random& random_;
  std::vector<ObjectId> names_;
  std::vector<std::pair<ObjectId, std::uint64_t>> sources_;  // of reduces: to be put, with this size
  std::vector<PutNumber> reduces_;                           // whose results another may take
  std::vector<ObjectId> minted_;                             // promised by a client, perhaps never put
};

}  // namespace hoplite::sim
