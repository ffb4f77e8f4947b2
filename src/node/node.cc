#include "node/node.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/check.h"

namespace hoplite {
namespace {

constexpr char kStopping[] = "the daemon is stopping";
constexpr Duration kStopPoll = Duration::ms(5);
// A conversation of small messages between two hosts: about one there and back. Measured: 280 us without, 80 us with it.
constexpr Duration kLinger = Duration::us(100);

std::uint64_t random_number() {
  std::uint64_t value = 0;
  while (value == 0) {
    const ssize_t got = ::getrandom(&value, sizeof value, 0);
    CHECK(got == sizeof value || errno == EINTR, errno);
  }
  return value;
}

}  // namespace

Result<std::unique_ptr<Node>> Node::create(const NodeOptions& options, Log& log) {
  std::unique_ptr<Node> node(new Node(options, log));
  if (auto started = node->start(); !started) return started.error();
  return node;
}

Node::Node(const NodeOptions& options, Log& log) : options_(options), log_(log), started_(monotonic_now()) {}
Node::~Node() { loop_.cancel(timer_); }

// --- starting

Result<void> Node::start() {
  // First the socket's lock: a second daemon must find out before it takes memory or a port.
  auto listener = UnixListener::open(options_.socket, options_.socket_mode, options_.limits.clients.backlog);
  if (!listener) return listener.error();
  auto arena = Arena::create({.bytes = options_.memory_bytes});
  if (!arena) return arena.error();
  arena_ = std::move(*arena);

  const NodeId id{random_number()};
  if (auto started = start_transport(id); !started) return started;
  start_agent(id);
  start_clients(id, std::move(*listener));
  joiner_ = std::make_unique<Joiner>(loop_, log_, static_cast<Joiner::Host&>(*this), options_.join);
  runner_ =
      std::make_unique<EffectRunner>(*transport_, *joiner_, *clients_, ByteSpan(arena_->base(), arena_->size()), log_);
  if (log_.shows(LogLevel::kDebug)) narrator_ = std::make_unique<Narrator>(log_);
  // The transport has hooked itself in before us, so what peers wait for leaves before what clients wait for.
  loop_.after_batch([this] { after_batch(); });
  loop_.set_busy_poll(options_.busy_poll);
  loop_.set_linger(kLinger);

  log_.info("node " + id.to_string() + " listens for other nodes at " + address_.to_string() + " and for clients at " +
            options_.socket + ", store of " + format_size(arena_->size()));
  joiner_->begin();
  untouched_ = {0, arena_->size()};
  arm_timer();
  return {};
}

Result<void> Node::start_transport(NodeId id) {
  options_.self = self_ = NodeRef{id, 0};
  options_.arena = arena_->base();
  options_.arena_bytes = arena_->size();
  options_.log = [this](const std::string& line) { log_.warn(line); };
  auto transport = make_tcp_transport(loop_, *this, options_);
  if (!transport) return transport.error();
  transport_ = std::move(*transport);

  address_ = options_.advertise.empty() ? transport_->listen_address() : options_.advertise;
  if (address_.port == 0) address_.port = transport_->listen_address().port;
  return {};
}

void Node::start_agent(NodeId id) {
  AgentOptions agent;
  agent.self = id;
  agent.address = address_;
  agent.seeds = options_.join;
  agent.capacity = arena_->size();
  agent.limits = options_.limits;
  agent.seed = random_number();
  // tidy: the core's one look at the wall clock, for the generations of versions
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  agent.wall_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(since_1970).count() - monotonic_now().ns / 1'000'000;
  agent_ = std::make_unique<Agent>(std::move(agent), static_cast<const Progress&>(*this), monotonic_now());
  if (agent_->self() != self_) transport_->rename(self_ = agent_->self());
}

void Node::start_clients(NodeId id, std::unique_ptr<UnixListener> listener) {
  ClientServerOptions server;
  server.welcome = {id, 0, arena_->size(), options_.limits.inline_bytes, address_.to_string()};
  server.token = options_.token;
  server.read_only_arena = arena_->read_only_fd();
  server.writable_arena = arena_->writable_fd();
  server.limits = options_.limits.clients;
  clients_ = std::make_unique<ClientServer>(loop_, static_cast<ClientHandler&>(*this), log_, std::move(listener),
                                            std::move(server));
}

// --- running

void Node::run() { loop_.run(); }

void Node::step(Event event, ByteView payload) {
  CHECK(!std::exchange(stepping_, true));
  effects_.clear();
  if (narrator_) narrator_->tell(monotonic_now(), event);
  agent_->step(monotonic_now(), std::move(event), effects_);
  if (narrator_) narrator_->tell(monotonic_now(), effects_);
  // What this step says is already said by the new incarnation.
  if (agent_->self() != self_) {
    self_ = agent_->self();
    log_.warn("was declared dead by other nodes; has rejoined as " + self_.to_string());
    transport_->rename(self_);
  }
  runner_->run(effects_, payload);
  if (joiner_->is_joining() && agent_->members() > 1) joiner_->joined(agent_->members());
  stepping_ = false;
}

void Node::after_batch() {
  clients_->flush();
  prefault();
  arm_timer();
}

// The arena is handed out from both ends; what lies beyond is made ready before it is needed.
void Node::prefault() {
  const Extent untouched{agent_->high_water(), agent_->low_water() - agent_->high_water()};
  if (untouched == untouched_) return;
  if (untouched.offset != untouched_.offset) arena_->handed_out({0, untouched.offset});
  if (untouched.end() != untouched_.end()) arena_->handed_out({untouched.end(), arena_->size() - untouched.end()});
  untouched_ = untouched;
}

// A timer that is too early costs one empty wake-up; moving it with every request would cost more.
void Node::arm_timer() {
  const Time wanted = agent_->next_wakeup();
  if (timer_ != 0 && timer_at_ <= wanted) return;
  loop_.cancel(std::exchange(timer_, 0));
  if (wanted == Time::never()) return;
  timer_at_ = wanted;
  timer_ = loop_.at(wanted, [this] {
    timer_ = 0;
    if (agent_->next_wakeup() <= monotonic_now()) step(event::Tick{});
  });
}

void Node::stop() {
  if (std::exchange(stopping_, true)) return loop_.stop();
  log_.info("stopping");
  step(event::Leave{});
  stop_when_left();
}

void Node::stop_when_left() {
  if (!agent_->has_left()) {
    loop_.at(monotonic_now() + kStopPoll, [this] { stop_when_left(); });
    return;
  }
  clients_->stop(kStopping);
  finish_stopping(monotonic_now());
}

void Node::finish_stopping(Time since) {
  const Duration waited = monotonic_now() - since;
  const bool all_told = waited >= options_.limits.sockets.goodbye && clients_->all_sent();
  if (all_told || waited >= options_.limits.clients.goodbye) return loop_.stop();
  loop_.at(monotonic_now() + kStopPoll, [this, since] { finish_stopping(since); });
}

// --- events of the transport

void Node::on_message(NodeRef from, Message message, ByteView payload) {
  step(event::Received{from, std::move(message), payload.size()}, payload);
}
void Node::on_peer_lost(NodeRef peer, Loss why) { step(event::PeerLost{peer, why}); }
void Node::on_not_reached(const Address& address, const std::string& why) {
  if (!is_inside(address)) joiner_->failed(address, why);
}
void Node::on_data_plane(DataPlaneEvent event) {
  std::visit([this](auto& e) { step(std::move(e)); }, event);
}

ValidBytes Node::valid(CopyKey copy, std::uint32_t slice) const { return transport_->data_plane().valid(copy, slice); }
std::uint64_t Node::backlog(NodeRef peer) const { return transport_->backlog(peer); }

// --- joining

void Node::knock_at(const Address& numeric, const Message& message) { transport_->send_to_address(numeric, message); }

bool Node::is_inside(const Address& numeric) const {
  if (numeric == address_ || numeric == transport_->listen_address()) return true;
  return std::ranges::any_of(
      agent_->nodes(), [&](const ipc::NodeInfo& node) { return node.life == Life::kAlive && node.address == numeric; });
}

void Node::may_be_first() { step(event::MayBeFirst{}); }

// --- events of the clients

void Node::on_client_request(ClientKey client, std::uint64_t request, ipc::Request message, ByteView payload) {
  if (std::holds_alternative<ipc::GetStatus>(message)) return clients_->reply(client, request, status());
  if (std::holds_alternative<ipc::GetObjects>(message)) return clients_->reply(client, request, objects());
  if (std::holds_alternative<ipc::GetNodes>(message)) return clients_->reply(client, request, nodes());
  step(event::ClientAsked{client, request, std::move(message), payload.size()}, payload);
}
void Node::on_client_gone(ClientKey client) { step(event::ClientGone{client}); }
void Node::on_lease_ended(ClientKey client) { step(event::LeaseEnded{client}); }

}  // namespace hoplite
