// Who is in the cluster: gossip with incarnations, in the manner of SWIM.
//
// Each member's latest life is a point (incarnation, alive < dead) that only grows, so views merge by taking the larger and
// converge whatever the order of messages. A verdict "dead" on one incarnation is final; a node that hears its own comes
// back as the next one.
//
// How a death is found:
//   1. a peer that we depend on (`touch`) and have not heard from for ping_every is pinged; so is one random member a
//      second, and at once every peer whose connection broke;
//   2. no answer within ping_timeout: indirect_probes others are asked to try;
//   3. no answer within indirect_timeout: dead. Somebody else at its address: dead at once.
// A refused dial is a hint, because a firewall may refuse one pair: others are asked at once, and whom they find refused, too,
// is dead without waiting for 3. With nobody to ask, the second refused dial in a row is a death. Whom others reach while we
// do not is alive, and is talked to by way of them (paths.h).
// News are passed on at once to gossip_fanout members, ride on pings for a while, and are repaired by a full exchange with
// a random member now and then. Dead addresses and seeds are tried for ever, slowly, so partitions heal.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "base/limits.h"
#include "base/random.h"
#include "core/membership/paths.h"
#include "protocol/messages.h"
#include "protocol/transfer.h"

namespace hoplite {

struct MembershipOptions {
  NodeRef self;
  Address address;
  std::vector<Address> seeds;
  std::vector<MemberNews> initial_members;  // known to be alive at the start
  Limits limits;
  std::uint64_t seed = 0;
};

class Membership {
 public:
  struct Outgoing {
    NodeRef to;
    Address address;
    Message message;
  };
  struct Change {
    NodeRef node;
    Address address;
    Life life = Life::kAlive;
    bool left = false;  // it has said so itself
  };
  // What a step wants done, in order of the lists.
  struct Output {
    std::vector<Outgoing> sends;
    std::vector<std::pair<Address, Message>> dials;
    std::vector<Change> changes;   // of others: joined, came back, died
    bool refuted = false;          // we were declared dead, and are self() as of now
    std::vector<NodeId> rerouted;  // messages to them go another way from now on; those under way may be lost
  };

  Membership(MembershipOptions options, Time now);

  // --- events. `from` is the identity that the connection proved.
  void on_ping(Time now, NodeRef from, const Ping& ping, Output& out);
  void on_ack(Time now, NodeRef from, const Ack& ack, Output& out);
  void on_ping_request(Time now, NodeRef from, const PingRequest& request, Output& out);
  void on_unreached(Time now, NodeRef from, const Unreached& answer, Output& out);
  void on_news(Time now, NodeRef from, const std::vector<MemberNews>& news, Output& out);
  void on_sync(Time now, NodeRef from, const Sync& sync, Output& out);
  void on_peer_lost(Time now, NodeRef peer, Loss why, Output& out);
  // Any message: a sign of life. Tells a sender that we hold for dead so.
  void on_heard(Time now, NodeRef from, Output& out);
  void tick(Time now, Output& out);
  void leave(Output& out);

  // We depend on this peer: watch it closely for a while.
  void touch(Time now, NodeId peer);

  Time next_wakeup() const;

  // --- what is known
  NodeRef self() const { return self_; }
  bool is_alive(NodeRef node) const;
  const Address* address_of(NodeId node) const;  // nullptr if unknown
  NodeRef latest(NodeId node) const;             // its latest known life, alive or dead; incarnation 0 if unknown
  // Live members, this node included, by id.
  std::vector<NodeRef> alive() const;
  std::size_t alive_count() const { return alive_.size() + 1; }
  std::vector<MemberNews> all() const;  // this node included
  std::uint64_t rtt_us(NodeId node) const;
  // The median of those that were measured lately; 0 = none was.
  std::uint64_t typical_rtt_us() const { return typical_rtt_us_; }
  // A live member other than ourselves and `not_this`, at random; nil if there is none.
  NodeRef random_member(NodeId not_this);
  const Paths& paths() const { return paths_; }
  // Who is to pass on what we have for a member that we cannot reach; nil: nobody can.
  NodeRef helper_for(NodeId peer);

  void check_invariants() const;

 private:
  struct Member {
    MemberNews latest;
    Time heard;  // last sign of life
  };
  struct Probe {
    bool direct = true;     // otherwise others try
    bool answered = false;  // by any sign of life; what is left to learn is how long the answer to this one takes
    std::uint64_t seq = 0;
    Time sent;
    Time due = {};                  // when it fails
    bool refused = false;           // our dial was
    std::set<NodeId> asked = {};    // others, so far
    std::set<NodeId> waiting = {};  // for these of them
  };
  struct Errand {  // a probe made for somebody else
    NodeRef asker;
    std::uint64_t asker_seq = 0;
    NodeRef target;
  };

  bool merge(Time now, const MemberNews& news, Output& out);
  void spread(const std::vector<MemberNews>& fresh, NodeId heard_from, Output& out);
  void refute(std::uint32_t incarnation, Output& out);
  void declare_dead(Time now, const Member& member, Output& out);
  bool is_probed(NodeId node) const;
  void start_probe(Time now, NodeRef node, Output& out);
  void ask_others(Time now, NodeRef node, Output& out);
  void ask_one(Time now, NodeRef node, NodeId helper, Output& out);
  void on_refused(Time now, NodeRef peer, Output& out);
  void give_up_helper(Time now, NodeId helper, Output& out);
  void no_answer_from(Time now, NodeId target, NodeId helper, Output& out);
  void refuse_errands(NodeRef target, Output& out);
  void block_path(Time now, NodeId peer, Output& out);
  void open_path(NodeId peer, Output& out);
  void ping_due_members(Time now, Output& out);
  void knock_on_closed_doors(Output& out);
  std::set<Address> open_addresses() const;  // where somebody alive listens
  void send(NodeId to, Message message, Output& out);
  std::vector<MemberNews> hot_news();
  MemberNews self_news() const { return {self_, address_, Life::kAlive}; }
  void forget_superseded(Time now);
  bool forget_one_dead();
  const Member* find(NodeId node) const;
  Member* find(NodeId node);
  void remember_alive(NodeId node, bool alive);
  void note_rtt(NodeId node, Duration rtt);

  NodeRef self_;
  Address address_;
  std::vector<Address> seeds_;
  Limits limits_;
  Random random_;
  std::vector<Member> members_;              // all others, alive and dead, by id
  std::vector<NodeId> alive_;                // others, sorted
  std::map<NodeId, std::uint32_t> hot_;      // news that still ride on pings, and how often
  std::map<std::uint64_t, Errand> errands_;  // by the seq of our own ping
  Paths paths_;
  std::map<NodeId, Time> watched_;  // touched lately, and until when: the ones a tick looks at
  std::map<NodeId, Probe> probes_;
  std::map<NodeId, std::uint64_t> rtt_us_;  // of those that have answered a probe
  std::uint64_t typical_rtt_us_ = 0;
  std::size_t rtts_since_median_ = 0;
  std::uint64_t next_seq_ = 1;
  std::size_t next_door_ = 0;
  bool leaving_ = false;  // then a verdict on us is what we asked for
  Time next_ping_, next_gossip_, next_sync_, next_knock_;
};

}  // namespace hoplite
