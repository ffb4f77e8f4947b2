// The agent's parts, and the handlers that connect them, by topic:
//
//   agent.cc     events and messages to handlers; timers
//   cluster.cc   membership, homes, lost connections
//   memories.cc  what must not be forgotten: deletes while members are away, and what existed at homes that die
//   home.cc      this node as a home: messages to the directory
//   writing.cc   clients that write
//   reading.cc   clients that read; what homes answer
//   transfers.cc pulling from parents, serving children
//   memory.cc    copies that come and go, eviction, waiting for room
//   targets.cc   results that come into being here, by slots
//   reduces.cc   this node as the coordinator of reduces
//   requests.cc  clients' waits, deletes, cancels and deaths
//   invariants.cc  what the parts must agree on between steps
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "core/agent/agent.h"
#include "core/agent/announcer.h"
#include "core/agent/clients.h"
#include "core/agent/coordinator.h"
#include "core/agent/copies.h"
#include "core/agent/deputies.h"
#include "core/agent/errands.h"
#include "core/agent/ferries.h"
#include "core/agent/fetches.h"
#include "core/agent/gets.h"
#include "core/agent/notices.h"
#include "core/agent/outbox.h"
#include "core/agent/pulls.h"
#include "core/agent/puts.h"
#include "core/agent/recent.h"
#include "core/agent/records.h"
#include "core/agent/relays.h"
#include "core/agent/room.h"
#include "core/agent/serves.h"
#include "core/agent/slots.h"
#include "core/agent/versions.h"
#include "core/directory/absences.h"
#include "core/directory/directory.h"
#include "core/membership/membership.h"
#include "core/reduce/reduction.h"

namespace hoplite {

class Agent::Impl final : private Directory::Host, private Slots::Host, private Coordinator::Host {
 public:
  Impl(AgentOptions options, const Progress& progress, Time now);

  void step(Time now, Event& event, Effects& effects);
  Time next_wakeup() const;
  NodeRef self() const { return membership_.self(); }
  bool has_left() const { return leaving_ == Leaving::kGone; }
  ipc::Status status() const;
  std::vector<ClientHolding> holdings() const { return clients_.holdings(); }
  std::vector<ipc::ObjectInfo> objects(std::size_t at_most) const;
  ipc::ObjectInfo describe(const Copy& copy) const;
  std::vector<ipc::NodeInfo> nodes() const;
  std::vector<Directory::Summary> directory() const { return directory_.summary(); }
  std::uint64_t members() const { return membership_.alive_count(); }
  bool is_joining() const { return directory_.is_joining(out_.now()); }
  std::uint64_t repairs() const { return directory_.repairs(); }
  const ExtentAllocator& allocator() const { return table_.allocator(); }
  void check_invariants() const;

 private:
  // --- agent.cc
  void on(const event::Tick&);
  void on(const event::Received& e);
  void on(const event::PeerLost& e);
  void on(const event::PullAsked& e);
  void on(const event::PullAccepted& e);
  void on(const event::PullSilent& e);
  void on(const event::PullEnded& e);
  void on(const event::ServePrioritized& e);
  void on(const event::ServeEnded& e);
  void on(const event::CopyClosed& e);
  void on(const event::Combined& e) { slots_.on_combined(e); }
  void on(const event::CopyGrown& e);
  void on(event::ClientAsked& e);
  void on(const event::ClientGone& e);
  void on(const event::LeaseEnded& e);
  void on(const event::MayBeFirst&);
  void on(const event::Leave&);
  bool is_moving_bytes() const;
  void say_goodbye();
  void on(const timer::RequestDeadline& t);
  void on(const timer::Want& t);
  void on(const timer::Notify& t);
  void on(const timer::Claim& t);
  void on(const timer::Errand& t);
  void on(const timer::Room& t);
  void on(const timer::Resync& t);
  void on(const timer::SlotReport& t) { slots_.on_timer(t); }
  void on(const timer::SlotFeed& t) { slots_.on_timer(t); }
  void on(const timer::SlotRoom& t) { slots_.on_timer(t); }
  void on(const timer::ReduceDue& t) { coordinator_.on_timer(t); }
  void on(const timer::ReduceDeadline& t) { coordinator_.on_timer(t); }
  void on(const timer::Parked& t);
  void on(const timer::Refresh& t);
  void on(const timer::Ferry&) { ferries_.on_timer(); }
  void on(const timer::Leave& t);
  void on(const timer::Hearsay&) { deputies_.on_timer(); }
  void settle();
  bool is_settled() const;
  void tidy(const ObjectId& id);
  bool is_unused(const Record& record) const;
  void deliver(NodeRef from, const Message& message, std::uint64_t payload_bytes);

  // --- messages, one handler each; which file has it is said above
  void on(NodeRef from, const Ping& m);
  void on(NodeRef from, const Ack& m);
  void on(NodeRef from, const PingRequest& m);
  void on(NodeRef from, const Unreached& m);
  void on(NodeRef from, const FetchFor& m);
  void on(NodeRef from, const News& m);
  void on(NodeRef from, const Sync& m);
  void on(NodeRef from, const PutRequest& m);
  void on(NodeRef from, const PutReply& m);
  void on(NodeRef from, const Want& m);
  void on(NodeRef from, const Assign& m);
  void on(NodeRef from, const InlineObject& m);
  void on(NodeRef from, const PassOn& m) {
    if (from == records_.home(m.id)) relays_.pass_on(m);
  }
  void on(NodeRef from, const Found& m);
  void on(NodeRef from, const Waiting& m);
  void on(NodeRef from, const WantFailed& m);
  void on(NodeRef from, const Unwant& m);
  void on(NodeRef from, const Announce& m);
  void on(NodeRef from, const Compare& m);
  void on(NodeRef from, const Compared& m);
  void on(NodeRef from, const Withdraw& m);
  void on(NodeRef from, const EvictRequest& m);
  void on(NodeRef from, const EvictReply& m);
  void on(NodeRef from, const DeleteRequest& m);
  void on(NodeRef from, const DeleteReply& m);
  void on(NodeRef from, const Drop& m);
  void on(NodeRef from, const SetPrimary& m);
  void on(NodeRef from, const Departures& m);
  void on(NodeRef from, const Forgotten& m);
  void on(NodeRef from, const Hearsay& m);
  void on(NodeRef from, const RecoverQuery& m);
  void on(NodeRef from, const RecoverReply& m);
  void on(NodeRef from, const NotHome& m);
  void on(NodeRef from, const Relay& m);
  void on(NodeRef from, const Resync& m);
  void on(NodeRef from, const ReduceRequest& m);
  void on(NodeRef from, const AddSources& m);
  void on(NodeRef from, const ReduceReply& m);
  void on(NodeRef from, const ReduceQuery& m);
  void on(NodeRef from, const ReduceAnswer& m);
  void on(NodeRef from, const SlotOrder& m) { slots_.on_order(from, m); }
  void on(NodeRef from, const SlotUpdate& m) { coordinator_.on_update(from, m); }
  void on(NodeRef from, const SlotEnd& m) { slots_.on_end(from, m); }

  // --- cluster.cc
  void apply(Membership::Output& out);
  void update_view(const std::vector<Membership::Change>& changes, bool all);
  void ask_again(const ObjectId& id);
  void ask_everything_again(NodeRef home);
  void resync_at(NodeId peer, Time when);
  void resync(NodeRef peer);

  // --- memories.cc
  void note_absences(const std::vector<Membership::Change>& changes);
  void tell_departures(const std::vector<Membership::Change>& changes);
  void expire_absences();
  void choose_deputies(const std::vector<NodeRef>& before);
  void tell_deputy_anew(NodeRef deputy);
  void give_up_deputyships();
  Side our_side() const;

  // --- home.cc
  bool is_home(NodeRef asker, const ObjectId& id);
  void flush(Directory::Output& out) override;
  void log_lost(const std::vector<Directory::Output::Lost>& lost);
  bool can_inline(const ObjectId& id, Version version, NodeRef receiver) const override;
  Plan make_plan(const Demand& demand) const override;
  void store_home_copy(const PutRequest& put);

  // --- writing.cc
  void on_client(const RequestKey& key, ipc::Put& m);
  void on_client(const RequestKey& key, ipc::Create& m);
  void on_client(const RequestKey& key, ipc::Advance& m);
  void on_client(const RequestKey& key, ipc::Seal& m);
  void on_client(const RequestKey& key, ipc::Abort& m);
  bool refuse_put(const RequestKey& key, const ObjectId& id, const std::string& meta);
  Code put_refused(const ObjectId& id) const;
  ObjectId id_or_fresh(const ObjectId& id);
  Copy* add_put_copy(const ObjectId& id, std::uint64_t size, std::string meta, Alignment alignment);
  bool create_now(const Room::Create& create, std::uint64_t size);
  void begin_put(Copy& copy, ClientKey client);
  void give_up_writing(const Copy& copy);
  void commit_put(Record& record);
  void fail_put(Record& record, Code code, const std::string& why);
  void give_up_put(Record& record);
  void put_newer(Record& record, Version newer_than);

  // --- reading.cc
  void on_client(const RequestKey& key, ipc::Get& m);
  void on_client(const RequestKey& key, ipc::Prioritize& m);
  void on_client(const RequestKey& key, ipc::Release& m);
  void stop_get(const RequestKey& key, const ObjectId& id, Code code, const std::string& who);
  std::string waiting_for(const Record& record) const;
  std::string unjoined() const;
  bool is_unwanted(const Record& record) const;
  bool is_wanted_here(const ObjectId& id) const { return gets_.contains(id) || ferries_.contains(id); }
  void abandon(Record& record);
  void ensure_fetch(const Record& record);
  void stop_fetch(const Record& record);
  void refuse_parked(const ObjectId& id);
  Want want_of(const Record& record) const;
  void fail_wanted(const Record& record, const WantFailed& m);
  bool begin_fetch(Record& record, const Assign& m);
  void wait_for_room(const Record& record, std::uint64_t bytes);
  void pull_as_assigned(const Record& record, const Assign& m);
  void no_room_for(const Record& record, NodeRef home, const InlineObject& m);

  // --- transfers.cc
  bool start_pull(Copy& copy, std::uint32_t slice, NodeRef parent);
  void fetch_accepted(const Pulls::Accepted& e);
  void fetch_ended(const Pulls::Ended& e);
  void complete_fetch(const Record& record, Copy& copy);
  std::uint32_t pace_kib(const Copy& copy) const;
  void consider_pull(const Serves::Asked& asked);
  Serves::Source source_of(const Copy& copy, std::uint32_t slice) const;
  void accept_pull(Copy& copy, const Serves::Asked& asked);
  void demand_changed(const Copy& copy, std::uint32_t slice);
  Priority demand(const Copy& copy, std::uint32_t slice) const override;
  void reprioritize(const Record& record);

  // --- targets.cc (Slots::Host)
  bool may_become_target(const ObjectId& id) override;
  void become_target(Copy& out) override;
  void target_grows(Copy& out) override;
  void target_committed(Copy& out) override;
  void target_dropped(Copy& out) override;
  void drop_slots_of(NodeRef coordinator);

  // --- reduces.cc
  std::uint64_t welcome_bytes(std::uint32_t count) const override;
  void watch(const ObjectId& source, const ObjectId& target, std::uint64_t welcome_bytes) override;
  void unwatch(const ObjectId& source, const ObjectId& target) override;
  void remember_lost(const ObjectId& target, Version version, const std::string& why) override {
    announcer_.remember(target, version != 0 ? version : kNeverMade, why);
  }
  void arrived(const Reduction::Arrival& arrival);
  void lose_started(NodeRef coordinator);
  static std::string coordinator_gone(NodeRef coordinator);
  LinkCost typical_link() const;
  LinkCosts link_costs() const override { return same_for_all(typical_link()); }

  // --- invariants.cc
  void check_record(const Record& r) const;

  // --- memory.cc
  void retire(Record& record);
  void ask_after_withdrawal(const ObjectId& id);
  void hand_out_room();
  bool take_room(const Room::Waiter& waiter);
  void evict_for(std::uint64_t bytes);

  // --- requests.cc
  void on_client(const RequestKey& key, ipc::Cancel& m);
  void on_client(const RequestKey& key, ipc::Wait& m);
  void on_client(const RequestKey& key, ipc::Remove& m);
  void on_client(const RequestKey& key, ipc::Reduce& m);
  void on_client(const RequestKey& key, ipc::AddSources& m);
  void on_client(const RequestKey& key, ipc::GetReduce& m);
  template <typename T> void on_client(const RequestKey& key, T& unexpected);
  void begin_request(const RequestKey& key, Clients::Kind kind, const ObjectId& id, std::int64_t timeout_ns,
                     std::uint64_t errand = 0);
  bool too_many_objects(const RequestKey& key, std::size_t more);
  void stop_request(const RequestKey& key, Code code);
  void became_ready(const Record& record, const Found* found = nullptr);
  void ask_home(const RequestKey& asked, const ObjectId& id, std::int64_t timeout_ns, Message message);
  void send_errand(std::uint64_t key);
  void end_errand(std::uint64_t key, ipc::Reply answer);
  Time deadline_of(std::int64_t timeout_ns) const;

  AgentOptions options_;
  const Limits& limits_;
  Random random_;
  Membership membership_;
  Outbox out_;
  Versions versions_;
  Tombstones tombstones_;
  Absences absences_;
  VersionMemory known_;
  Directory directory_;
  ObjectTable table_;
  Records records_;
  Copies copies_;
  Timers timers_;
  Clients clients_;
  Errands errands_;
  Deputies deputies_;
  Room room_;
  Puts puts_;
  Gets gets_;
  Fetches fetches_;
  Notices notices_;
  Ferries ferries_;
  Announcer announcer_;
  Relays relays_;
  Pulls pulls_;
  Serves serves_;
  Slots slots_;
  Coordinator coordinator_;

  std::uint64_t payload_bytes_ = 0;  // of the event being handled
  std::uint64_t rate_estimate_;      // bytes/s that a sender is taken to have, from what fetches achieved
  Recent<NodeRef> started_;          // reduces that were asked for here, and who coordinates them
  std::uint64_t next_id_ = 1;

  std::optional<Timers::Handle> room_timer_;
  std::map<NodeId, std::optional<Timers::Handle>> resyncs_;
  std::optional<Timers::Handle> refresh_timer_;
  NodeId refreshed_last_;
  std::set<ObjectId> evictions_;  // that homes were asked for

  enum class Leaving : std::uint8_t { kNo, kDraining, kGone } leaving_ = Leaving::kNo;
  std::optional<Timers::Handle> leave_timer_;
};

}  // namespace hoplite
