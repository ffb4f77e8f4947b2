// What a home keeps about the objects whose home it is: version, size, who has copies, who waits.
//
// Soft state: every fact in it is owned by a live node and can be told again. Rules, by number in the code:
//   1. The first version put wins. A second put is "exists" unless every copy of the first is gone ("lost").
//   2. A version is committed when a complete copy is known. Committed and no bytes left anywhere: lost. Not committed and
//      its writer gone: it never was.
//   3. Before 2 is decided, every node whose copy still grows is told to reset, and its answer awaited: it may just have
//      become complete.
//   4. One complete copy is primary and is kept until delete; another one may go only with the home's word.
//   5. A home that does not know whether it knows (recovery.h) parks puts, wants and deletes until it does.
//   6. Two committed versions of one id (a partition healed): the newer one wins, of two in one generation the lower one, and
//      it is reported. Only what is newer than all that was heard of the id, and is over, is taken as a put.
//   7. Deleted stays deleted: copies of buried versions that turn up later are dropped (tombstones.h). A name is free for a
//      newer version at once. A tombstone of version 0, of a minted id, stands for any: the object was deleted before its
//      home had heard of it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/limits.h"
#include "core/broadcast/planner.h"
#include "core/broadcast/relay_plan.h"
#include "core/directory/holders.h"
#include "core/directory/places.h"
#include "core/directory/recovery.h"
#include "core/directory/summary.h"
#include "core/directory/tombstones.h"
#include "core/directory/version_memory.h"
#include "protocol/messages.h"

namespace hoplite {

class Directory {
 public:
  // What the directory needs from the node it lives on.
  class Host {
   public:
    virtual ~Host() = default;
    // This node has all bytes, and they are few enough to travel with an answer to `receiver` now.
    virtual bool can_inline(const ObjectId& id, Version version, NodeRef receiver) const = 0;
    virtual Plan make_plan(const Demand& demand) const = 0;
    virtual LinkCosts link_costs() const = 0;
  };

  struct Outgoing {
    NodeRef to;
    Message message;
    bool with_bytes = false;  // InlineObject: the host appends the bytes
  };
  struct Output {
    std::vector<Outgoing> sends;
    std::vector<std::string> log;
    // For a line of its own each, or one line for all: a death may lose very many.
    struct Lost {
      ObjectId id;
      std::string name;  // that the user gave, or empty
      std::string why;
    };
    std::vector<Lost> lost;
    std::vector<Heard> heard;  // for the deputies: what was committed, and what was deleted
  };

  using Holder = DirectoryHolder;
  using Summary = DirectorySummary;

  // `tombstones` are the node's: those of this home and those of its own copies. `known`: what this node knows to have
  // existed; other nodes announce theirs.
  Directory(NodeRef self, const Limits& limits, Host& host, Tombstones& tombstones, const VersionMemory& known);

  // --- the view of the cluster
  void set_view(Time now, const std::vector<NodeRef>& alive, Output& out);
  // All is forgotten: we were given up and are somebody new.
  void reset(NodeRef self);
  // Until then, or the first other member, nothing is taken for unknown: we may be about to join a cluster.
  void hold_until(Time when) { recovery_.hold_until(when); }
  bool is_joining(Time now) const { return recovery_.holding(now); }

  // --- messages to the home. The caller has checked that the id's home is here.
  // True if `request` was accepted, now or before. Those who wait are served by `serve`, when the host has had the chance
  // to store the bytes.
  bool on_put(Time now, NodeRef from, const PutRequest& request, Output& out);
  void on_want(Time now, NodeRef from, const Want& want, Output& out);
  void on_unwant(Time now, NodeRef from, const Unwant& unwant, Output& out);
  // `left_out`: so much of it made no sense; it counts as told.
  void on_announce(Time now, NodeRef from, const Announce& announce, Output& out, std::size_t left_out = 0);
  // Whether what `from` has there is what the books say.
  Compared on_compare(NodeRef from, const Compare& compare);
  void on_withdraw(Time now, NodeRef from, const Withdraw& withdraw, Output& out);
  void on_evict(Time now, NodeRef from, const EvictRequest& request, Output& out);
  void on_delete(Time now, NodeRef from, const DeleteRequest& request, Output& out);
  void on_recover_reply(Time now, NodeRef from, const RecoverReply& reply, Output& out);
  // This node itself has a complete copy now (the home's copy of a small put).
  void add_own_copy(const ObjectId& id, Version version);
  void serve(Time now, const ObjectId& id, Output& out);

  // --- reduces whose target's home is here
  // Whether all there is to know of it is known here; if not, it is asked for.
  bool knows(Time now, const ObjectId& id, Output& out);
  // The id is taken, though nobody has bytes yet. kExists, kDeleted, or kUnavailable: it is not known yet; ask again.
  Code reserve(Time now, const ObjectId& id, Output& out);
  // The reduce that has reserved the id makes this version now: what there is of another one is reset.
  void expect(const ObjectId& id, Version version, Output& out);
  void release(Time now, const ObjectId& id, Output& out);
  // What grows there is final from now on: it can be lost, never reset.
  void commit(const ObjectId& id, Version version, Output& out);
  // Nobody will produce it: whoever waits is told why.
  void fail_waiters(const ObjectId& id, Code code, const std::string& why, Output& out);
  // Somebody produced it, or will.
  bool is_taken(const ObjectId& id) const;
  // The newest version of the id that was deleted or lost, 0 if there is none: what comes now has to be newer.
  Version newest_gone(const ObjectId& id) const;
  // In words, or "" if it is not lost, or nothing more is known.
  std::string why_lost(const ObjectId& id) const;

  void tick(Time now, Output& out);
  Time next_wakeup() const;

  // --- for displays and invariants
  std::vector<Summary> summary() const;
  std::size_t size() const { return entries_.size(); }
  // Calls with all ids and versions that are committed.
  template <typename Function> void each_committed(Function function) const {
    for (const auto& [id, entry] : entries_)
      if (entry.committed) function(id, entry.version);
  }
  std::size_t parked() const { return parked_.size(); }
  // How often a full announcement has told what a word of its own should have told before. Without faults: never.
  std::uint64_t repairs() const { return repairs_; }
  void check_invariants() const;

 private:
  struct Waiter {
    NodeRef ref;
    Want want;
    // Of one that cannot reach a holder: those who were ordered to fetch for it, the last one until then.
    std::vector<NodeId> ferries = {};
    Time ferry_until = {};
  };
  struct Entry {
    Version version = 0;     // 0 = nobody has put it
    bool described = false;  // size and meta are known, not only that there is such a version
    std::uint64_t size = 0;
    std::string meta;
    std::uint32_t slices = 0;  // fixed by the first assignment; 0 = not yet
    bool reserved = false;     // by a reduce that is under way
    Version expected = 0;      // what it makes
    bool committed = false;
    bool lost = false;
    std::string lost_why;  // in words, if there is more to say than that its holders died
    Time lost_until;
    Holders holders;
    std::map<std::pair<NodeId, WantMode>, Waiter> waiters;
    std::unique_ptr<ParentPlanner> plan;  // once somebody pulls
    RelayPlan relays;                     // for answers with bytes
  };
  using Entries = std::map<ObjectId, Entry>;

  bool park_unless_settled(Time now, NodeRef from, const ObjectId& id, const Message& message, Output& out);
  void replay_parked(Time now, Output& out);
  void after_settling(Time now, Output& out);

  void begin_full(NodeRef from, const Announce& announce);
  bool knows(NodeRef from, const Fact& fact) const;
  void take_fact(Time now, NodeRef from, const Fact& fact, Output& out);
  bool take_version(const ObjectId& id, Entry& entry, NodeRef from, const Fact& fact, Output& out);
  void withdraw_unconfirmed(Time now, NodeRef from, std::uint64_t open_requests, Output& out);
  void take_tombstone(Time now, const Tombstone& stone, Output& out);
  void hold(const ObjectId& id, Entry& entry, const Holder& holder);
  void unhold(const ObjectId& id, Entry& entry, NodeId node);
  void resolve(Time now, const ObjectId& id, Entry& entry, Output& out);
  void ensure_primary(const ObjectId& id, Entry& entry, Output& out);
  void declare_lost(Time now, const ObjectId& id, Entry& entry, Output& out);
  void forget_version(Entry& entry);
  void take_known(const ObjectId& id, Entry& entry) const;
  static void set_committed(const ObjectId& id, Entry& entry, Output& out);
  static void describe(Entry& entry, std::uint64_t size, const std::string& meta);
  void serve_waiters(Time now, const ObjectId& id, Entry& entry, Output& out);
  bool serve_one(Time now, const ObjectId& id, Entry& entry, const Waiter& waiter, Output& out);
  void order_ferry(Time now, const ObjectId& id, const Entry& entry, Waiter& waiter, Output& out);
  NodeRef choose_ferry(const Entry& entry, const Waiter& waiter) const;
  void ferry_failed(Time now, const ObjectId& id, Entry& entry, NodeId ferry, Output& out);
  void send_bytes(Time now, const ObjectId& id, Entry& entry, const Waiter& waiter, Output& out);
  void take_back(const ObjectId& id, Entry& entry, NodeId relay);
  bool assign(Time now, const ObjectId& id, Entry& entry, const Waiter& waiter, Output& out);
  void answer_notify(const ObjectId& id, Entry& entry, const Waiter& waiter, Output& out);
  void bury(const ObjectId& id, Version version, Time until, Output& out);
  bool is_deleted(const ObjectId& id) const;
  bool refuse_deleted(NodeRef from, const PutRequest& request, Output& out) const;
  bool answer_again(NodeRef from, const DeleteRequest& request, Output& out);
  void dropped(Time now, const ObjectId& id, NodeRef holder, Version version, Output& out);
  void end_delete(Time now, const ObjectId& id, Output& out);
  void answer_delete(Time now, const ObjectId& id, NodeRef asker, std::uint64_t request, bool existed, Output& out);
  void node_died(Time now, NodeRef node, Output& out);
  void drop_foreign_entries(const std::vector<NodeRef>& joined);
  void tell_waiters(Time now, Output& out);
  void tell_to_wait(const ObjectId& id, const Entry& entry, const Waiter& waiter, Output& out) const;
  // Parked requests of one kind replace each other. A fetch and a notification are two kinds.
  static std::size_t kind_of(const Message& message);
  void erase_if_empty(const ObjectId& id);
  void note_interest(const ObjectId& id, const Entry& entry, NodeId node);
  static bool has_source(const Entry& entry);
  static bool is_striped(const Entry& entry);
  static bool is_empty(const Entry& entry);
  void check_entry(const ObjectId& id, const Entry& entry) const;

  NodeRef self_;
  Limits limits_;
  Host& host_;
  Recovery recovery_;
  std::vector<NodeRef> alive_;
  Entries entries_;
  std::map<NodeId, PlacedIds> by_node_;  // entries in which a node holds or waits
  Tombstones& tombstones_;
  const VersionMemory& known_;
  // Waiters who have not heard that they have to wait. Most never need to: what they want is about to be put.
  struct Untold {
    Time when;
    ObjectId id;
    std::pair<NodeId, WantMode> waiter;
    std::uint64_t request = 0;
  };
  std::deque<Untold> untold_;
  std::uint64_t assignments_ = 0;               // so far
  std::deque<std::pair<Time, ObjectId>> lost_;  // lost entries expire like tombstones
  // Deletes that wait for the holders' word. The name may be put, and deleted again, meanwhile.
  struct Deleting {
    std::map<NodeRef, Version> holders;                  // and what they are to drop
    std::set<std::pair<NodeRef, std::uint64_t>> askers;  // and the numbers of their requests
  };
  std::map<ObjectId, Deleting> deleting_;
  // Deletes that were answered lately: one that comes again is not to delete what was put since.
  struct Answered {
    Time until;
    std::pair<NodeId, std::uint64_t> request;
  };
  std::map<std::pair<NodeId, std::uint64_t>, bool> answered_;  // and whether there was anything
  std::deque<Answered> answered_order_;
  struct Parked {
    NodeRef from;
    Message message;
  };
  // Entries that a node held before the full announcement that it is in the middle of.
  std::map<NodeId, std::set<ObjectId>> unconfirmed_;
  std::uint64_t repairs_ = 0;
  // The latest of each kind of request, for each asker and id.
  std::map<std::tuple<NodeId, ObjectId, std::size_t>, Parked> parked_;
};

}  // namespace hoplite
