// This node as the coordinator of reduces: it accepts them for targets whose home is here, and stays with them to the end.
//
// What a reduce needs is decided by Reduction (core/reduce). Here it meets the directory, in which its target is reserved,
// and the homes of its sources, which are watched through the host.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/random.h"
#include "core/agent/outbox.h"
#include "core/agent/recent.h"
#include "core/agent/records.h"
#include "core/agent/timers.h"
#include "core/agent/versions.h"
#include "core/directory/directory.h"
#include "core/reduce/reduction.h"

namespace hoplite {

class Coordinator {
 public:
  // What it needs from the node that it is on.
  class Host {
   public:
    virtual ~Host() = default;
    virtual void flush(Directory::Output& homes) = 0;
    virtual LinkCosts link_costs() const = 0;
    // Sources up to this size are welcome here, if the first `count` count.
    virtual std::uint64_t welcome_bytes(std::uint32_t count) const = 0;
    // `on_arrival` or `on_missing` for this target, until it is unwatched. May be at once.
    virtual void watch(const ObjectId& source, const ObjectId& target, std::uint64_t welcome_bytes) = 0;
    virtual void unwatch(const ObjectId& source, const ObjectId& target) = 0;
    // The target is lost, and others are told why. Version 0: nobody has made any.
    virtual void remember_lost(const ObjectId& target, Version version, const std::string& why) = 0;
  };
  struct Parts {
    const Limits& limits;
    Timers& timers;
    Directory& directory;
    const Records& records;
    Random& random;
    const Versions& versions;
    Outbox& out;
  };
  Coordinator(Parts parts, Host& host);

  // --- requests. The caller has checked that the target's home is here.
  void on_request(NodeRef from, const ReduceRequest& m);
  void on_add_sources(NodeRef from, const AddSources& m);
  void on_query(NodeRef from, const ReduceQuery& m);
  // nullptr, unless a reduce into it has ended here, not too long ago.
  const ReduceReport* ended(const ObjectId& target) const;
  void cancel(const ObjectId& target, Code code, const std::string& why);

  // --- what happens to running reduces
  void on_update(NodeRef from, const SlotUpdate& m);
  void on_arrival(const ObjectId& target, const Reduction::Arrival& arrival);
  void on_missing(const ObjectId& target, const ObjectId& source, Code code, const std::string& why);
  void on_death(NodeRef node);
  void ask_again(NodeRef node);  // messages to it may have been lost
  void on_timer(const timer::ReduceDue& t);
  void on_timer(const timer::ReduceDeadline& t);
  // Homes have moved: readers ask elsewhere now.
  void give_up_moved();
  // We were given up: for the others, what we coordinated is lost.
  void forget_all();

  bool is_running() const;  // any
  void check_invariants() const;

 private:
  // Who asked, and its number for the request: it may ask again.
  using Asked = std::pair<NodeId, std::uint64_t>;
  struct Running {
    Reduction reduction;
    Asked asked;
    Version version = 0;                           // of the target, whose
    std::map<std::uint64_t, std::uint64_t> bytes;  // there are at each root
    std::set<Asked> added;                         // requests for more sources that were granted
    bool committed = false;
    std::optional<Timers::Handle> timer;
    std::optional<Timers::Handle> deadline;

    ReduceReport report() const;
    void note_progress(const SlotUpdate& update);
  };
  struct Ended {
    ReduceReport report;
    Version version = 0;
    Asked asked;
  };

  Code admit(const ReduceRequest& m, std::string& why);
  void tell(const ObjectId& target, const std::function<void(Reduction&, Reduction::Output&)>& what);
  void tell_all(const std::function<void(Reduction&, Reduction::Output&)>& what);
  void carry_on(const ObjectId& target, Reduction::Output& out);
  void finish(const ObjectId& target);
  Running take(const ObjectId& target);
  void unwatch_all(const ReduceReport& report);

  const Limits& limits_;
  Timers& timers_;
  Directory& directory_;
  const Records& records_;
  Random& random_;
  const Versions& versions_;
  Outbox& out_;
  Host& host_;
  std::map<ObjectId, Running> running_;
  Recent<Ended> ended_;  // what became of reduces, for those who ask
};

// What makes no sense, or is more than this node's limits allow.
std::optional<Error> check_reduce(const ReduceSpec& spec, const Limits& limits);

}  // namespace hoplite
