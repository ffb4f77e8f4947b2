// The agent's state and its handlers, by topic:
//
//   agent.cc     events and messages to handlers; timers
//   cluster.cc   membership, homes, lost connections
//   announce.cc  what this node tells the homes of what it has
//   home.cc      this node as a home: messages to the directory
//   puts.cc      clients that write
//   gets.cc      clients that read; asking the home
//   transfers.cc pulling from parents, serving children
//   relays.cc    passing small objects on
//   memory.cc    copies that come and go, eviction, waiting for room
//   targets.cc   results that come into being here, by slots
//   reduces.cc   this node as the coordinator of reduces
//   requests.cc  clients' waits, deletes, cancels and deaths
//   invariants.cc  what the parts must agree on between steps
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/random.h"
#include "core/agent/agent.h"
#include "core/agent/clients.h"
#include "core/agent/coordinator.h"
#include "core/agent/errands.h"
#include "core/agent/pulls.h"
#include "core/agent/recent.h"
#include "core/agent/records.h"
#include "core/agent/room.h"
#include "core/agent/serves.h"
#include "core/agent/slots.h"
#include "core/directory/directory.h"
#include "core/membership/membership.h"
#include "core/reduce/reduction.h"

namespace hoplite {

class Agent::Impl final : private Directory::Host, private Slots::Host, private Coordinator::Host {
 public:
  Impl(AgentOptions options, const Progress& progress, Time now);

  void step(Time now, Event& event, Effects& effects);
  Time next_wakeup() const;
  NodeRef self() const override { return membership_.self(); }
  bool has_left() const { return leaving_ == Leaving::kGone; }
  ipc::Status status() const;
  std::vector<ipc::ObjectInfo> objects() const;
  std::vector<ipc::NodeInfo> nodes() const;
  std::vector<Directory::Summary> directory() const { return directory_.summary(); }
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
  void on(const timer::Leave& t);
  void settle();
  bool is_settled() const;
  void tidy(const ObjectId& id);
  void deliver(NodeRef from, const Message& message, std::uint64_t payload_bytes);
  void drain_local();
  template <typename E> void emit(E effect) { effects_->emplace_back(std::move(effect)); }

  // --- messages, one handler each; which file has it is said above
  void on(NodeRef from, const Ping& m);
  void on(NodeRef from, const Ack& m);
  void on(NodeRef from, const PingRequest& m);
  void on(NodeRef from, const News& m);
  void on(NodeRef from, const Sync& m);
  void on(NodeRef from, const PutRequest& m);
  void on(NodeRef from, const PutReply& m);
  void on(NodeRef from, const Want& m);
  void on(NodeRef from, const Assign& m);
  void on(NodeRef from, const InlineObject& m);
  void on(NodeRef from, const PassOn& m);
  void on(NodeRef from, const Found& m);
  void on(NodeRef from, const Waiting& m);
  void on(NodeRef from, const WantFailed& m);
  void on(NodeRef from, const Unwant& m);
  void on(NodeRef from, const Announce& m);
  void on(NodeRef from, const Withdraw& m);
  void on(NodeRef from, const EvictRequest& m);
  void on(NodeRef from, const EvictReply& m);
  void on(NodeRef from, const DeleteRequest& m);
  void on(NodeRef from, const DeleteReply& m);
  void on(NodeRef from, const Drop& m);
  void on(NodeRef from, const SetPrimary& m);
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
  void send(NodeRef to, Message message, effect::Payload payload, Extent extent);
  bool is_detoured(NodeId node) const;
  void apply(Membership::Output& out);
  void update_view(const std::vector<Membership::Change>& changes, bool all);
  void move_home(Record& record, NodeRef home);
  void ask_again(Record& record);
  NodeRef home(const ObjectId& id) const override;

  // --- announce.cc
  bool fact_of(const Record& record, Fact& fact) const;
  void announce(const Record& record, std::uint32_t rate_kib = 0);
  class Announcing;
  void announce(const std::set<ObjectId>& ids, NodeRef to);
  void announce_tombstones(NodeRef newcomer);
  std::set<ObjectId> ids_of_home(NodeId node) const;
  void resync_at(NodeId peer, Time when);
  void end_detour(NodeId peer);
  void resync(NodeRef peer);
  void refresh_next_home();
  void remember(const ObjectId& id, Version version, const std::string& why = {});

  // --- home.cc
  bool is_home(NodeRef asker, const ObjectId& id);
  void flush(Directory::Output& out) override;
  bool can_inline(const ObjectId& id, Version version) const override;
  Plan make_plan(const Demand& demand) const override;
  void store_home_copy(const PutRequest& put);

  // --- puts.cc
  void on_client(ClientKey client, std::uint64_t request, ipc::Put& m);
  void on_client(ClientKey client, std::uint64_t request, ipc::Create& m);
  void on_client(ClientKey client, std::uint64_t request, ipc::Advance& m);
  void on_client(ClientKey client, std::uint64_t request, ipc::Seal& m);
  void on_client(ClientKey client, std::uint64_t request, ipc::Abort& m);
  Code put_refused(const ObjectId& id) const;
  ObjectId id_or_fresh(const ObjectId& id);
  Copy* add_put_copy(const ObjectId& id, std::uint64_t size, std::string meta, Alignment alignment);
  bool create_now(const Room::Create& create, std::uint64_t size);
  void begin_put(Record& record, Copy& copy, ClientKey client);
  void send_claim(Record& record);
  void commit_put(Record& record);
  PutState end_put(Record& record);
  void fail_put(Record& record, Code code, const std::string& why);
  void give_up_put(Record& record);

  // --- gets.cc
  void on_client(ClientKey client, std::uint64_t request, ipc::Get& m);
  void on_client(ClientKey client, std::uint64_t request, ipc::Prioritize& m);
  void on_client(ClientKey client, std::uint64_t request, ipc::Release& m);
  void ensure_fetch(Record& record);
  void set_want_request(Record& record, std::uint64_t request);
  void send_want(Record& record);
  void want_later(Record& record, Duration delay);
  void stop_asking(Record& record);
  void send_view(GetRequest& get, Copy& copy);
  void open_follow(GetRequest& get, Copy& copy);
  void reset_followers(Record& record);
  void fulfil_gets(Record& record);
  void fail_gets(Record& record, Code code, bool only_those_who_mind_loss, const std::string& why);
  bool is_unwanted(const Record& record) const;
  void abandon(Record& record);
  bool begin_fetch(Record& record, const Assign& m);
  void pull_as_assigned(Record& record, const Assign& m);
  std::string waiting_for(const Record& record) const;

  // --- transfers.cc
  bool start_pull(Record& record, Copy& copy, std::uint32_t slice, NodeRef parent);
  void fetch_accepted(const Pulls::Accepted& e);
  void fetch_ended(const Pulls::Ended& e);
  void complete_fetch(Record& record, Copy& copy);
  std::uint32_t pace_kib(const Copy& copy) const;
  void consider_pull(const Serves::Asked& asked);
  Serves::Source source_of(const Record& record, const Copy& copy, std::uint32_t slice) const;
  void accept_pull(Copy& copy, const Serves::Asked& asked);
  void demand_changed(const Copy& copy, std::uint32_t slice);
  Priority demand(const Copy& copy, std::uint32_t slice) const override;
  void reprioritize(const Record& record);
  void open_in_data_plane(Copy& copy) override;
  std::uint64_t front_bytes(const Copy& copy) const;

  // --- relays.cc
  void pass_on(const PassOn& asked);
  void refuse_pass(const PassOn& asked);
  void refuse_parked(const ObjectId& id);
  std::vector<PassOn> take_parked_passes(const ObjectId& id);

  // --- targets.cc (Slots::Host)
  Time now() const override { return now_; }
  void send(NodeRef to, Message message) override { send(to, std::move(message), effect::Payload::kNone, {}); }
  Effects& effects() override { return *effects_; }
  const Address* depend_on(NodeId node) override;
  Copy* find_copy(const ObjectId& id) override;
  void become_target(Copy& out) override;
  void target_grows(Copy& out) override;
  void target_committed(Copy& out) override;
  void target_dropped(Copy& out) override;
  void can_be_pulled(const ObjectId& id) override { servable_.insert(id); }
  void drop_slots_of(NodeRef coordinator);

  // --- reduces.cc
  Reduction make_reduction(const ReduceSpec& spec) override;
  std::uint64_t welcome_bytes(std::uint32_t count) const override;
  std::size_t known_objects() const override { return records_.size(); }
  void watch(const ObjectId& source, const ObjectId& target, std::uint64_t welcome_bytes) override;
  void unwatch(const ObjectId& source, const ObjectId& target) override;
  void remember_lost(const ObjectId& target, Version version, const std::string& why) override;
  void arrived(Record& record, const Reduction::Arrival& arrival);
  void went_missing(const Record& record, Code code, const std::string& why);
  void lose_started(NodeRef coordinator);
  static std::string coordinator_gone(NodeRef coordinator);
  LinkCost typical_link() const;
  LinkCosts link_costs() const override { return same_for_all(typical_link()); }

  // --- invariants.cc
  void check_record(const Record& r) const;

  // --- memory.cc
  void retire(Record& record);
  void hand_out_room();
  bool take_room(const Room::Waiter& waiter);
  void evict_for(std::uint64_t bytes);
  void wait_for_room(Record& record, std::uint64_t size);
  std::string room_numbers(std::uint64_t needed) const override;

  // --- requests.cc
  void on_client(ClientKey client, std::uint64_t request, ipc::Cancel& m);
  void on_client(ClientKey client, std::uint64_t request, ipc::Wait& m);
  void on_client(ClientKey client, std::uint64_t request, ipc::Remove& m);
  void on_client(ClientKey client, std::uint64_t request, ipc::Reduce& m);
  void on_client(ClientKey client, std::uint64_t request, ipc::AddSources& m);
  void on_client(ClientKey client, std::uint64_t request, ipc::GetReduce& m);
  template <typename T> void on_client(ClientKey client, std::uint64_t request, T& unexpected);
  void reply(ClientKey client, std::uint64_t request, ipc::Reply message);
  void fail(ClientKey client, std::uint64_t request, Code code, std::string why);
  void begin_request(const RequestKey& key, Clients::Kind kind, const ObjectId& id, std::int64_t timeout_ns,
                     std::uint64_t errand = 0);
  bool too_many_objects(ClientKey client, std::uint64_t request, std::size_t more);
  void stop_request(const RequestKey& key, Code code);
  void stop_get(const RequestKey& key, Record& record, Code code, const std::string& who);
  void became_ready(Record& record, const Found* found = nullptr);
  void end_wait(RequestKey key);
  void send_notify(Record& record);
  void ask_home(const RequestKey& asked, const ObjectId& id, std::int64_t timeout_ns, Message message);
  void send_errand(std::uint64_t key);
  void end_errand(std::uint64_t key, ipc::Reply answer);
  Time deadline_of(std::int64_t timeout_ns) const;

  Record& record(const ObjectId& id);
  Record* find(const ObjectId& id);
  const Record* find(const ObjectId& id) const;
  Copy* current_copy(const Record& record);
  const Copy* current_copy(const Record& record) const;

  AgentOptions options_;
  const Limits& limits_;
  const Progress& progress_;
  Random random_;
  Membership membership_;
  VersionMemory tombstones_;  // of copies that this node had, and of deletes it decided as a home
  VersionMemory known_;       // committed versions that this node has seen, or heard of from their homes
  Directory directory_;
  ObjectTable table_;
  Timers timers_;
  Clients clients_;
  Errands errands_;
  Room room_;
  Pulls pulls_;
  Serves serves_;
  Slots slots_;
  Coordinator coordinator_;

  // During a step only.
  Time now_;
  Effects* effects_ = nullptr;
  std::uint64_t payload_bytes_ = 0;  // of the event being handled

  std::vector<NodeRef> alive_;                    // sorted
  std::unordered_map<ObjectId, Record> records_;  // never iterated: the order would differ from run to run
  std::map<NodeId, std::set<ObjectId>> by_home_;  // the ids of all records
  // What `settle` has to look at: records that may be unwanted or unused, and ids that may be served now.
  std::set<ObjectId> touched_;
  std::set<ObjectId> servable_;
  std::map<ObjectId, std::vector<PassOn>> parked_passes_;  // of objects that are still on their way here
  std::map<RequestKey, WaitState> waits_;
  std::optional<Timers::Handle> room_timer_;
  std::deque<Message> local_;           // from this node to itself
  std::map<NodeId, Time> unreachable_;  // alive, but not directly: relay to them until then
  std::set<NodeRef> introduced_;        // know who we are
  std::map<NodeId, std::optional<Timers::Handle>> resyncs_;
  std::optional<Timers::Handle> refresh_timer_;
  NodeId refreshed_last_;
  std::set<std::uint64_t> open_requests_;  // numbers of the wants and puts that are not answered
  std::uint64_t rate_estimate_;            // bytes/s that a sender is taken to have, from what fetches achieved

  Recent<NodeRef> started_;  // reduces that were asked for here, and who coordinates them

  enum class Leaving : std::uint8_t { kNo, kDraining, kGone } leaving_ = Leaving::kNo;
  std::optional<Timers::Handle> leave_timer_;

  std::uint64_t next_request_ = 1;
  std::uint64_t next_id_ = 1;
};

}  // namespace hoplite
