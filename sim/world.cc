#include "sim/world.h"

#include <time.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "base/type_name.h"
#include "sim/members.h"

namespace hoplite::sim {
namespace {

// Of this thread, on a core: what others do on a busy machine does not count.
double thread_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);  // tidy: guards against runs that never end
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Checking everything that an agent believes costs more than its step: one step in so many.
constexpr std::uint64_t kCheckEvery = 4;

}  // namespace

class World::PlaneProgress final : public Progress {
 public:
  PlaneProgress(const World& world, NodeIndex node) : world_(world), node_(node) {}
  ValidBytes valid(CopyKey copy, std::uint32_t slice) const override {
    return world_.nodes_[node_].plane->data().valid(copy, slice);
  }
  std::uint64_t backlog(NodeRef peer) const override { return world_.network_.backlog(node_, peer); }

 private:
  const World& world_;
  NodeIndex node_;
};

// A failed CHECK ends the run it happened in, with its seed.
struct CheckFailed {
  std::string what;
};

World::World(const WorldOptions& options)
    : options_(options),
      random_(options.seed),
      trace_(options.trace),
      hosts_(random_),
      network_(queue_, hosts_, random_, *this, options.network),
      links_(queue_, hosts_, random_, *this, options.links) {
  set_check_handler([](const std::string& what) { throw CheckFailed{what}; });
}

World::~World() = default;

NodeIndex World::add_node(NodeSpec spec) {
  const NodeIndex node = hosts_.add(spec.address, spec.link);
  network_.add_node();
  links_.add_node();
  nodes_.emplace_back();
  nodes_.back().spec = std::move(spec);
  nodes_.back().progress = std::make_unique<PlaneProgress>(*this, node);
  return node;
}

bool World::run_until(Time when) {
  try {
    while (!violation_ && queue_.next_time() <= when) {
      queue_.run_next();
      if (queue_.executed() > options_.max_events) violate("time-moves-on", "too many events: a livelock");
    }
  } catch (const CheckFailed& failed) {
    violate("checks-hold", failed.what);
  }
  if (!violation_ && when > now()) queue_.advance_to(when);
  return !violation_;
}

void World::violate(const std::string& invariant, const std::string& text) {
  if (violation_) return;
  violation_ = Violation{invariant, text, now()};
  trace_.say(now(), "", "VIOLATION of " + invariant + ": " + text);
}

std::uint64_t World::repairs() const {
  std::uint64_t total = repairs_of_the_dead_;
  for (const NodeIndex node : running_nodes()) total += nodes_[node].agent->repairs();
  return total;
}

// --- nodes

std::vector<NodeIndex> World::running_nodes() const {
  std::vector<NodeIndex> found;
  for (NodeIndex node = 0; node < nodes_.size(); ++node)
    if (running(node)) found.push_back(node);
  return found;
}

void World::start(NodeIndex node) {
  const bool was_powered = hosts_[node].powered;
  power_on(node);
  make_agent(node, {});
  const NodeSpec& spec = nodes_[node].spec;
  if (!spec.seeds.empty() && spec.seeds.front() == spec.address) step(node, event::MayBeFirst{}, {});
  if (was_powered) return;
  network_.paths_changed();
  links_.paths_changed();
}

void World::start_acquainted() {
  std::vector<MemberNews> all;
  for (NodeIndex node = 0; node < nodes_.size(); ++node) {
    power_on(node);
    all.push_back({hosts_[node].ref, hosts_[node].address, Life::kAlive});
  }
  for (NodeIndex node = 0; node < nodes_.size(); ++node) make_agent(node, all);
}

void World::power_on(NodeIndex node) {
  Host& host = hosts_[node];
  CHECK(!host.running);
  host.powered = true;
  host.running = true;
  host.paused = false;
  ++host.start;
  host.ref = {NodeId{random_.next() | 1}, 0};
  trace_.names().add_node(host.ref.id, node, host.start);
  trace_.tell(now(), node, "starts");
}

void World::make_agent(NodeIndex node, std::vector<MemberNews> known) {
  Node& self = nodes_[node];
  if (options_.carry_bytes) self.arena.assign(self.spec.capacity, std::byte{0});
  const ByteSpan memory = options_.carry_bytes ? ByteSpan(self.arena) : ByteSpan();
  self.plane =
      std::make_unique<Plane>(Plane::Environment{queue_, hosts_, random_, links_, *this, options_.limits}, node,
                              Plane::Options{memory, self.spec.capacity, options_.lanes, options_.post_delay});
  AgentOptions options;
  options.self = hosts_[node].ref.id;
  options.address = hosts_[node].address;
  options.seeds = self.spec.seeds;
  options.capacity = self.spec.capacity;
  options.limits = options_.limits;
  options.seed = random_.next();
  options.initial_members = std::move(known);
  // Wall clocks differ by seconds.
  constexpr std::uint64_t kSkewMs = 4'000;
  options.wall_ms = static_cast<std::int64_t>(1'800'000'000'000 + mix64(options_.seed ^ mix64(node)) % kSkewMs);
  self.agent = std::make_unique<Agent>(std::move(options), *self.progress, now());
  hosts_[node].ref = self.agent->self();
  self.timer = Time::never();
  self.clients = 0;
  set_timer(node);
}

void World::crash(NodeIndex node, Crash how) {
  Host& host = hosts_[node];
  if (!host.running) return;
  trace_.tell(now(), node, how == Crash::kProcess ? "is killed" : "loses power");
  network_.process_died(node, how == Crash::kMachine);
  links_.process_died(node, how == Crash::kMachine);
  host.running = false;
  host.paused = false;
  host.powered = how == Crash::kProcess;
  host.inbox.clear();
  repairs_of_the_dead_ += nodes_[node].agent->repairs();
  nodes_[node].agent.reset();
  nodes_[node].plane.reset();
  nodes_[node].open.clear();
  if (observer_ != nullptr) observer_->on_death(node);
}

void World::leave(NodeIndex node) {
  if (!hosts_[node].running || hosts_[node].paused) return;
  trace_.tell(now(), node, "is told to stop");
  leaving_.emplace(hosts_.process(node), false);
  step(node, event::Leave{});
}

void World::note_goodbye(NodeIndex node) {
  const ProcessId process = hosts_.process(node);
  const auto it = leaving_.find(process);
  if (it == leaving_.end() || it->second || !nodes_[node].agent->has_left()) return;
  it->second = true;
  trace_.tell(now(), node, "has said goodbye");
  if (observer_ != nullptr) observer_->on_leave(node);
  queue_.after(Duration::ms(2), [this, process] {
    if (hosts_.alive(process)) crash(process.node, Crash::kProcess);
  });
}

void World::pause(NodeIndex node) {
  if (!hosts_[node].running || hosts_[node].paused) return;
  trace_.tell(now(), node, "is paused");
  hosts_[node].paused = true;
}

// Whether a daemon that goes on looks at its timers or at its sockets first is the scheduler's business.
void World::resume(NodeIndex node) {
  Host& host = hosts_[node];
  if (!host.paused) return;
  trace_.tell(now(), node, "goes on");
  host.paused = false;
  const ProcessId process = hosts_.process(node);
  if (random_.chance(0.5)) step(node, event::Tick{});
  std::deque<Task> inbox;
  inbox.swap(host.inbox);
  for (Task& task : inbox)
    if (hosts_.alive(process)) task();
  if (hosts_.alive(process)) links_.process_resumed(node);
}

void World::block(NodeIndex from, NodeIndex to) {
  trace_.tell(now(), from, "cannot reach ", node_name(to), " any more");
  hosts_.block(from, to);
}

void World::refuse(NodeIndex from, NodeIndex to) {
  trace_.tell(now(), from, "is refused by ", node_name(to), " from now on");
  hosts_.refuse(from, to);
  break_connections(from, to);
}

void World::heal() {
  if (!hosts_.any_blocked()) return;
  trace_.say(now(), "", "the network heals");
  hosts_.unblock_all();
  network_.paths_changed();
  links_.paths_changed();
}

void World::break_connections(NodeIndex a, NodeIndex b) {
  if (observer_ != nullptr) observer_->on_break(a, b);
  trace_.tell(now(), a, "loses its connections with ", node_name(b));
  network_.break_between(a, b);
  links_.break_between(a, b);
}

void World::set_rate(NodeIndex node, double bytes_per_second) {
  trace_.tell(now(), node, "now has a link of ", format_rate(bytes_per_second));
  hosts_[node].link.up = hosts_[node].link.down = bytes_per_second;
}

// --- events in, effects out

void World::step(NodeIndex node, Event event, ByteView payload) {
  if (violation_) return;
  mix(static_cast<std::uint64_t>(now().ns));
  mix(node << 8 | event.index());
  ++steps_;
  trace_.tell(now(), node, event);
  Effects effects;
  if (!spare_effects_.empty()) {
    effects.swap(spare_effects_.back());
    spare_effects_.pop_back();
  }
  nodes_[node].agent->step(now(), std::move(event), effects);
  if (steps_ % kCheckEvery == 0) nodes_[node].agent->check_invariants();
  note_renaming(node);
  note_goodbye(node);
  for (Effect& effect : effects) {
    trace_.tell(now(), node, effect);
    mix(effect.index());
    std::visit([&](auto& e) { carry_out(node, e, payload); }, effect);
  }
  effects.clear();
  spare_effects_.push_back(std::move(effects));
  set_timer(node);
  if (observer_ != nullptr) observer_->on_step(node);
}

void World::note_renaming(NodeIndex node) {
  const NodeRef before = hosts_[node].ref;
  if (nodes_[node].agent->self() == before) return;
  hosts_[node].ref = nodes_[node].agent->self();
  trace_.tell(now(), node, "was given up, and is ", hosts_[node].ref, " now");
  network_.disconnect_all(node);
  nodes_[node].plane->data().disconnect_all();
  if (observer_ != nullptr) observer_->on_rename(node, before);
}

void World::set_timer(NodeIndex node) {
  Node& self = nodes_[node];
  const Time wanted = std::max(self.agent->next_wakeup(), now());
  if (wanted >= self.timer || wanted == Time::never()) return;
  self.timer = wanted;
  const ProcessId process = hosts_.process(node);
  queue_.at(wanted, [this, process, wanted] { timer_due(process, wanted); });
}

void World::timer_due(ProcessId process, Time set_for) {
  if (!hosts_.alive(process)) return;
  if (hosts_.defer(process.node, [this, process, set_for] { timer_due(process, set_for); })) return;
  Node& self = nodes_[process.node];
  if (self.timer != set_for) return;  // an earlier one was set since, and has taken its place
  self.timer = Time::never();
  if (self.agent->next_wakeup() <= now()) return step(process.node, event::Tick{});
  set_timer(process.node);
}

void World::message_arrived(NodeIndex at, NodeRef from, const std::string& bytes) {
  mix(XXH3_64bits(bytes.data(), bytes.size()));
  auto decoded = decode_message(as_bytes(bytes));
  if (!decoded) return contract_broken(at, "a message cannot be decoded: " + decoded.error().message);
  trace_.tell(now(), at, "<- ", from, "  ", decoded->message);
  if (const auto* reply = std::get_if<EvictReply>(&decoded->message)) any_evicted_ = any_evicted_ || reply->granted;
  const ByteView payload = decoded->payload;
  const bool is_want = options_.cost != nullptr && std::holds_alternative<Want>(decoded->message);
  const double began = is_want ? thread_seconds() : 0;
  step(at, event::Received{from, std::move(decoded->message), payload.size()}, payload);
  if (is_want) options_.cost->want_us.push_back(static_cast<float>((thread_seconds() - began) * 1e6));
}

void World::peer_lost(NodeIndex at, NodeRef peer, Loss why) {
  trace_.tell(now(), at, "has no connection with ", peer, ": ", std::string(enumerator_name(why)));
  step(at, event::PeerLost{peer, why});
}

void World::link_arrived(NodeIndex at, ProcessId child, NodeRef ref, const dataplane::MakeLink& make) {
  transfers_.connected(process(at), nodes_[at].plane->adopt(ref, make), child);
}

void World::data_plane_event(NodeIndex at, DataPlaneEvent event) {
  if (const auto* closed = std::get_if<event::CopyClosed>(&event)) nodes_[at].open.erase(closed->copy);
  std::visit([&](auto& e) { step(at, std::move(e)); }, event);
}

void World::contract_broken(NodeIndex at, const std::string& what) {
  violate("effects-make-sense", node_name(at) + ": " + what);
}

// --- effects

void World::carry_out(NodeIndex node, effect::Send& send, ByteView payload) {
  std::string bytes;
  encode_message(send.message, bytes);
  if (send.payload == effect::Payload::kExtent) {
    const ByteSpan memory = nodes_[node].arena;
    if (!options_.carry_bytes) bytes.append(send.extent.size, '\0');
    else if (send.extent.end() > memory.size()) contract_broken(node, "a payload outside the arena");
    else bytes.append(reinterpret_cast<const char*>(memory.data() + send.extent.offset), send.extent.size);
  }
  if (send.payload == effect::Payload::kReceived)
    bytes.append(reinterpret_cast<const char*>(payload.data()), payload.size());
  if (bytes.size() > options_.limits.max_message_bytes)
    return contract_broken(node, "a " + type_name(send.message) + " of " + std::to_string(bytes.size()) + " bytes");
  network_.send(node, send.to, send.address, std::move(bytes));
}

void World::carry_out(NodeIndex node, effect::SendToAddress& send, ByteView) {
  std::string bytes;
  encode_message(send.message, bytes);
  network_.send_to_address(node, send.address, std::move(bytes));
}

void World::carry_out(NodeIndex node, effect::Disconnect& disconnect, ByteView) {
  network_.disconnect(node, disconnect.node);
  nodes_[node].plane->data().disconnect(disconnect.node);
}

void World::carry_out(NodeIndex node, effect::StorePayload& store, ByteView payload) {
  if (store.extent.size != payload.size())
    return contract_broken(node, "StorePayload of another size than the payload");
  if (!options_.carry_bytes || payload.empty()) return;
  if (store.extent.end() > nodes_[node].arena.size()) return contract_broken(node, "StorePayload outside the arena");
  std::memcpy(nodes_[node].arena.data() + store.extent.offset, payload.data(), payload.size());
}

void World::carry_out(NodeIndex node, effect::Reply& reply, ByteView) {
  if (reply.client == 0 || reply.client > ports_.size()) return contract_broken(node, "a reply to nobody");
  Port& port = ports_[reply.client - 1];
  if (port.process != hosts_.process(node)) return contract_broken(node, "a reply to another node's client");
  port.answers.push_back({reply.request, std::move(reply.message)});
  const Duration delay{static_cast<std::int64_t>(random_.below(options_.client_delay.ns + 1))};
  port.last_answer = std::max(port.last_answer, now() + delay);
  const ClientKey client = reply.client;
  queue_.at(port.last_answer, [this, client] { answer_arrived(client); });
}

template <typename Command>
  requires requires(dataplane::DataPlane& plane, const Command& command) { plane.execute(command); }
void World::carry_out(NodeIndex node, const Command& command, ByteView) {
  if constexpr (requires { note(node, command); }) note(node, command);
  nodes_[node].plane->data().execute(command);
  if constexpr (std::is_same_v<Command, effect::AcceptPull>) note_accepted(node, command);
}

// Memory that the data plane may touch belongs to one copy.
void World::note(NodeIndex node, const effect::OpenCopy& open) {
  for (const auto& [key, extent] : nodes_[node].open)
    if (open.extent.offset < extent.end() && extent.offset < open.extent.end())
      contract_broken(node, "copy " + std::to_string(open.copy) + " is opened over copy " + std::to_string(key));
  nodes_[node].open.emplace(open.copy, open.extent);
}

void World::note_accepted(NodeIndex node, const effect::AcceptPull& accept) {
  if (!nodes_[node].plane->is_serving(accept.serve)) return;  // the child has gone or changed its mind
  const Transfer* transfer = transfers_.accepted(process(node), accept);
  if (transfer != nullptr && observer_ != nullptr) observer_->on_transfer(*transfer);
}

// --- clients

ClientKey World::attach(NodeIndex node) {
  Port& port = ports_.emplace_back();
  port.process = hosts_.process(node);
  port.number = ++nodes_[node].clients;
  return ports_.size();
}

bool World::attached(ClientKey client) const {
  const Port& port = ports_[client - 1];
  return port.open && hosts_.alive(port.process);
}

void World::detach(ClientKey client) {
  Port& port = ports_[client - 1];
  if (!port.open) return;
  port.open = false;
  port.answers.clear();
  trace_.tell(now(), port.process.node, "the connection of client ", client, " ends");
  queue_ask(client, {0, {}, {}, Ask::What::kIsGone});
}

void World::give_back(ClientKey client, CopyKey copy) {
  trace_.tell(now(), ports_[client - 1].process.node, "client ", client, " gives back copy ", copy);
  queue_ask(client, {0, ipc::Release{{copy}}, {}, Ask::What::kAsks});
}

void World::end_lease(ClientKey client) {
  trace_.tell(now(), ports_[client - 1].process.node, "client ", client, " holds nothing any more");
  queue_ask(client, {0, {}, {}, Ask::What::kLeaseEnded});
}

void World::ask(ClientKey client, std::uint64_t request, ipc::Request message, std::string payload) {
  const Port& port = ports_[client - 1];
  if (!port.open) return;
  trace_.tell(now(), port.process.node, "client ", client, " asks: ", message, " (request ", request, ")");
  queue_ask(client, {request, std::move(message), std::move(payload), Ask::What::kAsks});
}

void World::queue_ask(ClientKey client, Ask ask) {
  Port& port = ports_[client - 1];
  const bool asks = ask.what == Ask::What::kAsks;
  port.asks.push_back(std::move(ask));
  const Duration delay{asks ? static_cast<std::int64_t>(random_.below(options_.client_delay.ns + 1)) : 0};
  port.last_ask = std::max(port.last_ask, now() + delay);
  queue_.at(port.last_ask, [this, client] { ask_arrived(client); });
}

void World::ask_arrived(ClientKey client) {
  Port& port = ports_[client - 1];
  if (!hosts_.alive(port.process)) return;
  if (hosts_.defer(port.process.node, [this, client] { ask_arrived(client); })) return;
  const Ask ask = std::move(port.asks.front());
  port.asks.pop_front();
  if (ask.what == Ask::What::kIsGone) return step(port.process.node, event::ClientGone{client});
  if (ask.what == Ask::What::kLeaseEnded) return step(port.process.node, event::LeaseEnded{client});
  step(port.process.node, event::ClientAsked{client, ask.request, ask.message, ask.payload.size()},
       as_bytes(ask.payload));
}

void World::answer_arrived(ClientKey client) {
  Port& port = ports_[client - 1];
  if (!port.open || port.answers.empty() || !hosts_.alive(port.process)) return;
  const Answer answer = std::move(port.answers.front());
  port.answers.pop_front();
  trace_.tell(now(), port.process.node, "client ", client, " hears: ", answer.message, " (request ", answer.request,
              ")");
  if (observer_ != nullptr) observer_->on_reply(client, answer.request, answer.message);
}

}  // namespace hoplite::sim
