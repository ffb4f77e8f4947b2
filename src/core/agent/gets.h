// Clients' gets of objects that are not complete here yet: they wait, or follow a copy that grows.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/agent/clients.h"
#include "core/agent/copies.h"
#include "core/agent/records.h"

namespace hoplite {

class Gets {
 public:
  struct Get {
    RequestKey key;
    bool wait_if_lost = false;
    bool follow = false;
    Priority priority = Priority::kNormal;
    CopyKey shown = 0;  // the growing copy that the client follows
  };

  Gets(Copies& copies, Clients& clients, Records& records) : copies_(copies), clients_(clients), records_(records) {}

  void add(const ObjectId& id, const Get& get);
  bool contains(const ObjectId& id) const { return gets_.contains(id); }
  void stop(const ObjectId& id, const RequestKey& key);

  // Those of this client. False: there are none.
  bool prioritize(const ObjectId& id, ClientKey client, Priority priority);
  // kLow if there are none.
  Priority highest(const ObjectId& id) const;

  // Answers a get with a view of a complete copy.
  void answer(const RequestKey& key, Copy& copy);
  // Answers what the current copy allows: all gets if it is complete, those that follow if it grows.
  void fulfil(const ObjectId& id);
  // The current copy has grown, or
  void grown(const ObjectId& id);
  // will not become the object.
  void reset(const ObjectId& id);
  void fail(const ObjectId& id, Code code, const std::string& why) { fail(id, code, why, false); }
  // Those that wait for a lost object to be put again go on.
  void fail_lost(const ObjectId& id, const std::string& why) { fail(id, Code::kLost, why, true); }

  void check_invariants() const;

 private:
  void show(Get& get, Copy& copy);
  void fail(const ObjectId& id, Code code, const std::string& why, bool some_wait_on);

  Copies& copies_;
  Clients& clients_;
  Records& records_;
  std::map<ObjectId, std::vector<Get>> gets_;
};

}  // namespace hoplite
