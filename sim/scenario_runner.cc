// Plays a scenario: each command is one small function.
#include <algorithm>
#include <charconv>
#include <optional>
#include <variant>

#include "sim/clients.h"
#include "sim/quiet_checks.h"
#include "sim/scenario.h"

namespace hoplite::sim {
namespace {

constexpr Duration kPatience = Duration::s(60);  // for what has no `within`, and for the end

struct Wrong {  // thrown inside this file only, caught by run_scenario: any line may be nonsense
  std::string what;
};

using Field = std::variant<std::uint64_t Limits::*, std::uint32_t Limits::*, Duration Limits::*>;
const std::map<std::string, Field>& limit_fields() {
  static const std::map<std::string, Field> kFields{
      {"inline_bytes", &Limits::inline_bytes},     {"want_refresh", &Limits::want_refresh},
      {"waiting_after", &Limits::waiting_after},   {"request_retry", &Limits::request_retry},
      {"stall_after", &Limits::stall_after},       {"starved_every", &Limits::starved_every},
      {"retry_backoff", &Limits::retry_backoff},   {"drain", &Limits::drain},
      {"ping_every", &Limits::ping_every},         {"gossip_every", &Limits::gossip_every},
      {"ping_timeout", &Limits::ping_timeout},     {"indirect_timeout", &Limits::indirect_timeout},
      {"sync_every", &Limits::sync_every},         {"rejoin_every", &Limits::rejoin_every},
      {"tombstone_life", &Limits::tombstone_life}, {"crowd", &Limits::crowd},
      {"max_tombstones", &Limits::max_tombstones}, {"facts_per_message", &Limits::facts_per_message},
      {"absent_life", &Limits::absent_life},       {"slice_bytes", &Limits::slice_bytes},
      {"max_slices", &Limits::max_slices},         {"max_children", &Limits::max_children},
      {"default_rate", &Limits::default_rate},     {"hop_latency", &Limits::hop_latency},
      {"reduce_width", &Limits::reduce_width},     {"gather_for", &Limits::gather_for},
      {"tree_work", &Limits::tree_work},
  };
  return kFields;
}

template <typename T>
T take(Result<T> result) {
  if (!result) throw Wrong{result.error().message};
  return std::move(*result);
}

std::uint64_t to_number(const std::string& text) {
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) throw Wrong{"'" + text + "' is not a number"};
  return value;
}

class Player {
 public:
  Player(std::uint64_t seed, std::ostream* trace) : seed_(seed), trace_(trace) {}

  std::string play(const Scenario& scenario) {
    int line = 0;
    try {
      for (const Command& command : scenario) {
        line = command.line;
        run(command);
        look_around();
      }
      line = -1;
      finish();
    } catch (const Wrong& wrong) {
      return (line < 0 ? "at the end" : "line " + std::to_string(line)) + ": " + wrong.what;
    }
    return "";
  }

 private:
  void run(const Command& command) {
    const std::string& verb = command.verb();
    if (verb == "limit") return set_limit(command);
    if (verb == "nodes") return build(command);
    if (!world_) throw Wrong{"'nodes' comes first"};
    if (verb == "expect") return expect(command);
    if (command.words.size() > 1 && verb[0] == 'n' && verb.size() > 1 && std::isdigit(verb[1]) != 0)
      return request(command);
    if (verb == "run") return pass(take(parse_duration(command.words[1])));
    if (verb == "write" || verb == "seal" || verb == "abort" || verb == "cancel" || verb == "release")
      return go_on(command);
    fault(command);
  }

  // --- building

  void set_limit(const Command& command) {
    if (world_) throw Wrong{"limits come before 'nodes'"};
    const auto it = limit_fields().find(command.words[1]);
    if (it == limit_fields().end()) throw Wrong{"there is no limit '" + command.words[1] + "'"};
    const std::string& value = command.words[2];
    if (const auto* bytes = std::get_if<std::uint64_t Limits::*>(&it->second))
      limits_.** bytes = take(parse_size(value));
    if (const auto* count = std::get_if<std::uint32_t Limits::*>(&it->second))
      limits_.** count = static_cast<std::uint32_t>(to_number(value));
    if (const auto* pace = std::get_if<Duration Limits::*>(&it->second)) limits_.** pace = take(parse_duration(value));
  }

  void build(const Command& command) {
    if (world_) throw Wrong{"'nodes' comes once"};
    const std::uint64_t count = to_number(command.words[1]);
    if (count == 0 || count > 100) throw Wrong{"1 to 100 nodes"};
    LinkSpec link;
    link.up = link.down = static_cast<double>(take(parse_rate(option(command, "rate", "100MB/s"))));
    link.latency = take(parse_duration(option(command, "latency", "100us")));
    link.jitter = take(parse_duration(option(command, "jitter", "0")));
    if (link.up <= 0) throw Wrong{"a rate of nothing"};
    const std::uint64_t capacity = take(parse_size(option(command, "capacity", "1MiB")));
    if (capacity > kGiB) throw Wrong{"stores of more than 1 GiB"};
    WorldOptions options;
    options.seed = mix64(seed_);
    options.limits = limits_;
    options.links.piece_bytes = 1024;
    options.links.window_bytes = 4096;
    options.links.trickle = limits_.starved_every;
    options.post_delay = options.client_delay = Duration::us(10);
    options.max_events = 20'000'000;
    options.trace = trace_;
    world_.emplace(options);
    judge_.emplace(*world_, ledger_, JudgeOptions{Duration::s(30), Duration::s(1)});
    clients_.emplace(*world_, ledger_, *judge_);
    std::vector<Address> addresses;
    for (std::uint64_t i = 0; i < count; ++i) addresses.push_back({"10.0.0." + std::to_string(i + 1), 7411});
    for (const Address& address : addresses) world_->add_node({address, link, capacity, addresses});
    const std::uint64_t started = std::min(to_number(option(command, "started", std::to_string(count))), count);
    for (NodeIndex node = 0; node < started; ++node) world_->start(node);
    wait_until(kPatience, "the nodes do not find each other", [&] { return members_converged(*world_); });
  }

  static std::string option(const Command& command, const std::string& name, const std::string& otherwise) {
    const auto it = command.options.find(name);
    return it == command.options.end() ? otherwise : it->second;
  }
  static bool has(const Command& command, const std::string& name) { return command.options.contains(name); }
  static std::int64_t timeout_of(const Command& command) {
    return has(command, "timeout") ? take(parse_duration(command.options.at("timeout"))).ns : kNoTimeout;
  }

  // --- who and what

  NodeIndex node(const std::string& name) const {
    const std::uint64_t number = name.size() > 1 && name[0] == 'n' ? to_number(name.substr(1)) : 0;
    if (number == 0 || number > world_->size()) throw Wrong{"there is no node '" + name + "'"};
    return static_cast<NodeIndex>(number - 1);
  }
  NodeIndex running_node(const std::string& name) const {
    const NodeIndex index = node(name);
    if (!world_->running(index)) throw Wrong{name + " does not run"};
    return index;
  }
  ClientKey client(NodeIndex index, const std::string& name) {
    ClientKey& key = named_clients_[{index, name}];
    if (key == 0 || !world_->attached(key)) key = clients_->attach(index);
    return key;
  }
  ObjectId object(const std::string& name) {
    const auto [it, fresh] = objects_.try_emplace(name);
    if (!fresh) return it->second;
    const std::size_t colon = name.find(':');
    it->second = colon == std::string::npos ? ObjectId::named(name)
                                            : clients_->new_id(client(running_node(name.substr(0, colon)), "c1"));
    world_->trace().names().add_object(it->second, name);
    return it->second;
  }
  RequestNumber named(const std::string& name) const {
    const auto it = requests_.find(name);
    if (it == requests_.end()) throw Wrong{"there is no request '" + name + "'"};
    return it->second;
  }

  // --- doing

  RequestNumber reduce(const Command& command, ClientKey who, const ObjectId& target) {
    ReduceSpec spec;
    spec.target = target;
    spec.type = DType::kU8;
    spec.wait_if_lost = has(command, "wait_if_lost");
    spec.timeout_ns = timeout_of(command);
    if (has(command, "spread"))
      spec.spread = command.options.at("spread") == "slices" ? Spread::kSlices : Spread::kByCost;
    for (std::size_t i = 4; i < command.words.size(); ++i) spec.sources.push_back(object(command.words[i]));
    spec.count = static_cast<std::uint32_t>(to_number(option(command, "count", std::to_string(spec.sources.size()))));
    const std::uint64_t size = take(parse_size(command.words[3]));
    return clients_->reduce(who, spec, size);
  }

  void request(const Command& command) {
    const NodeIndex index = running_node(command.verb());
    const ClientKey who = client(index, option(command, "client", "c1"));
    const std::string& verb = command.words[1];
    const std::int64_t timeout = timeout_of(command);
    RequestNumber number = 0;
    if (verb == "wait") {
      std::vector<ObjectId> ids;
      for (std::size_t i = 2; i < command.words.size(); ++i) ids.push_back(object(command.words[i]));
      const auto count = static_cast<std::uint32_t>(to_number(option(command, "count", std::to_string(ids.size()))));
      number = clients_->wait(who, ids, count, timeout);
    } else {
      const ObjectId id = object(command.words[2]);
      if (verb == "get")
        number = clients_->get(who, {id, timeout, has(command, "wait_if_lost"), has(command, "follow")});
      if (verb == "remove") number = clients_->remove(who, id, timeout);
      if (verb == "reduce") number = reduce(command, who, id);
      if (verb == "report") number = clients_->report(who, id);
      if (verb == "put" || verb == "create") {
        const std::uint64_t size = take(parse_size(command.words[3]));
        if (verb == "put" && size > limits_.inline_bytes) throw Wrong{"'put' takes at most inline_bytes: use create"};
        if (size > 2 * kGiB) throw Wrong{"an object of more than 2 GiB"};
        number = verb == "put" ? clients_->put(who, id, size, timeout) : clients_->create(who, id, size, timeout);
      }
    }
    if (has(command, "as")) requests_[command.options.at("as")] = number;
    pass(Duration{});
  }

  void go_on(const Command& command) {
    const RequestNumber number = named(command.words[1]);
    const std::string& verb = command.verb();
    if (verb == "cancel") return clients_->cancel(number);
    if (verb == "release") {
      if (ledger_.requests[number].held == 0) throw Wrong{"it holds nothing"};
      return clients_->release(ledger_.requests[number].held);
    }
    wait_until(kPatience, "it was not created", [&] { return ledger_.writing.contains(number); });
    if (verb == "write") clients_->write(number, take(parse_size(command.words[2])));
    if (verb == "abort") clients_->abort(number);
    if (verb != "seal") return;
    const RequestNumber seal = clients_->seal(number, timeout_of(command));
    if (has(command, "as")) requests_[command.options.at("as")] = seal;
  }

  void disturb(NodeIndex index, bool on) {
    if (on == disturbed_.contains(index)) return;
    if (on) disturbed_.insert(index);
    if (!on) disturbed_.erase(index);
    judge_->disturbed(on);
  }

  void fault(const Command& command) {
    const std::string& verb = command.verb();
    if (verb == "heal") return heal();
    if (verb == "partition") return partition(command);
    const NodeIndex index = node(command.words[1]);
    if (verb == "start" || verb == "restart") {
      if (world_->running(index)) throw Wrong{command.words[1] + " runs already"};
      return world_->start(index);
    }
    running_node(command.words[1]);
    if (verb == "crash") return world_->crash(index, Crash::kProcess);
    if (verb == "unplug") return world_->crash(index, Crash::kMachine);
    if (verb == "stop") return world_->leave(index);
    if (verb == "pause") return disturb(index, true), world_->pause(index);
    if (verb == "resume") return world_->resume(index), disturb(index, false);
    if (verb == "rate") {
      const auto rate = static_cast<double>(take(parse_rate(command.words[2])));
      if (rate <= 0) throw Wrong{"a rate of nothing"};
      return world_->set_rate(index, rate);
    }
    if (verb == "kill-client") {
      const std::string name = command.words.size() > 2 ? command.words[2] : "c1";
      return clients_->kill(client(index, name));
    }
    if (verb == "disconnect-client") {
      const std::string name = command.words.size() > 2 ? command.words[2] : "c1";
      return clients_->disconnect(client(index, name));
    }
    const NodeIndex other = node(command.words[2]);
    if (verb == "break") return world_->break_connections(index, other);
    if (verb == "refuse") return world_->refuse(index, other), world_->refuse(other, index);
    disturb(kNobody, true);
    world_->block(index, other);  // cut
    if (verb == "wall") world_->block(other, index);
  }

  void partition(const Command& command) {
    std::vector<std::vector<NodeIndex>> sides(1);
    for (std::size_t i = 1; i < command.words.size(); ++i) {
      if (command.words[i] == "/") sides.emplace_back();
      else sides.back().push_back(node(command.words[i]));
    }
    disturb(kNobody, true);
    for (const auto& side : sides)
      for (const auto& other : sides)
        if (&side != &other)
          for (const NodeIndex a : side)
            for (const NodeIndex b : other) world_->block(a, b);
  }

  void heal() {
    world_->heal();
    disturb(kNobody, false);
  }

  // --- expecting

  void pass(Duration time) {
    if (!world_->run_for(time)) throw Wrong{world_->violation()->invariant + ": " + world_->violation()->text};
  }

  // What is wrong otherwise may be put into words by the condition itself.
  template <typename Condition>
  void wait_until(Duration most, const std::string& otherwise, Condition condition, Duration step = Duration::us(200)) {
    for (const Time end = world_->now() + most; !condition(); pass(step))
      if (world_->now() >= end) throw Wrong{otherwise};
  }

  void look_around() {
    if (!world_) return;
    for (const auto& [number, held] : ledger_.held) judge_->look_again(held);
    pass(Duration{});
  }

  Duration patience(const Command& command) const {
    return has(command, "within") ? take(parse_duration(command.options.at("within"))) : kPatience;
  }

  void expect(const Command& command) {
    const std::string& subject = command.words[1];
    if (!requests_.contains(subject)) return expect_of_node(command);
    const RequestNumber number = named(subject);
    const std::string& what = command.words[2];
    const RequestRecord& request = ledger_.requests[number];
    if (what == "pending") {
      if (request.ended) throw Wrong{subject + " has ended: " + outcome(request)};
      return;
    }
    if (what == "shown") return expect_shown(command, number);
    wait_until(patience(command), subject + " does not end", [&] { return request.ended; });
    if (what == "ready") return expect_objects(command, request.ready);
    if (what == "gone") return expect_objects(command, ids_of(request.gone));
    if (what == "used") return expect_objects(command, used_sources(request));
    if (outcome(request) != what)
      throw Wrong{subject + " ended as " + outcome(request) + " (" + request.message + "), expected was " + what};
    if (has(command, "naming") &&
        request.message.find(object(command.options.at("naming")).to_string()) == std::string::npos)
      throw Wrong{subject + " does not name it: " + request.message};
    if (!has(command, "of")) return;
    const PutNumber put = ledger_.requests[named(command.options.at("of"))].put;
    if (!request.got || *request.got != put) throw Wrong{subject + " has the bytes of another put"};
  }

  static std::string outcome(const RequestRecord& request) {
    if (request.orphaned) return "orphaned";
    if (request.use_create) return "use_create";
    if (request.code == Code::kOk) return "ok";
    std::string name(code_name(request.code));
    std::replace(name.begin(), name.end(), ' ', '_');
    return name;
  }

  void expect_shown(const Command& command, RequestNumber number) {
    if (command.words.size() != 4) throw Wrong{"how many bytes?"};
    const std::uint64_t bytes = take(parse_size(command.words[3]));
    wait_until(patience(command), "it does not show so much", [&] {
      const auto held = ledger_.held.find(ledger_.requests[number].held);
      return held != ledger_.held.end() && held->second.shown >= bytes;
    });
  }

  static std::vector<ObjectId> ids_of(const std::vector<ipc::Gone>& gone) {
    std::vector<ObjectId> ids;
    for (const ipc::Gone& one : gone) ids.push_back(one.id);
    return ids;
  }

  static std::vector<ObjectId> used_sources(const RequestRecord& request) {
    std::vector<ObjectId> used;
    if (!request.report || request.report->phase != ReducePhase::kDone) throw Wrong{"the reduce is not done"};
    for (const SourceReport& source : request.report->sources)
      if (source.state == SourceState::kUsed) used.push_back(source.id);
    return used;
  }

  void expect_objects(const Command& command, const std::vector<ObjectId>& found) {
    std::set<ObjectId> wanted;
    for (std::size_t i = 3; i < command.words.size(); ++i) wanted.insert(object(command.words[i]));
    if (std::set<ObjectId>(found.begin(), found.end()) == wanted) return;
    std::string names;
    for (const ObjectId& id : found) names += " " + judge_->object(id);
    throw Wrong{"it is others:" + names};
  }

  void expect_of_node(const Command& command) {
    const NodeIndex index = running_node(command.words[1]);
    if (command.words.size() != 4) throw Wrong{"expect NODE used|objects|growing|members NUMBER"};
    if (command.words[2] == "incarnation") {
      const std::uint64_t now = world_->agent(index).self().incarnation;
      if (now != to_number(command.words[3])) throw Wrong{command.words[1] + " has incarnation " + std::to_string(now)};
      return;
    }
    static const std::map<std::string, std::uint64_t ipc::Status::*> kFigures{{"used", &ipc::Status::used},
                                                                              {"objects", &ipc::Status::objects},
                                                                              {"growing", &ipc::Status::growing},
                                                                              {"members", &ipc::Status::members}};
    const auto figure = kFigures.find(command.words[2]);
    if (figure == kFigures.end()) throw Wrong{"nothing is known of '" + command.words[2] + "'"};
    const std::uint64_t wanted = take(parse_size(command.words[3]));
    std::string found;
    const auto fits = [&] {
      const std::uint64_t value = world_->agent(index).status().*figure->second;
      found = command.words[1] + " has " + command.words[2] + " " + std::to_string(value);
      return value == wanted;
    };
    wait_until(has(command, "within") ? patience(command) : Duration{}, found, fits);
  }

  // Everything is given back and deleted, and nothing may be left.
  void finish() {
    if (!world_) return;
    heal();
    NodeIndex somebody = kNobody;
    for (NodeIndex index = 0; index < world_->size(); ++index) {
      if (world_->paused(index)) world_->resume(index), disturb(index, false);
      if (world_->running(index)) somebody = index;
    }
    if (somebody == kNobody) return;
    wait_until(kPatience, "the nodes do not find each other again", [&] { return members_converged(*world_); });
    while (!ledger_.writing.empty()) clients_->abort(ledger_.writing.begin()->first);
    for (RequestNumber number = 1; number < ledger_.requests.size(); ++number) clients_->cancel(number);
    wait_until(kPatience, "cancelled requests do not end", [&] {
      return std::all_of(ledger_.requests.begin() + 1, ledger_.requests.end(), [](const auto& r) { return r.ended; });
    });
    clients_->release_all();
    clients_->end_disconnected();
    std::string wrong;
    const auto agrees = [&] { return (wrong = directory_disagreement(*world_)).empty(); };
    wait_until(kPatience, wrong, agrees, Duration::ms(20));
    std::set<ObjectId> ids = ids_with_copies(*world_);
    for (const auto& [id, record] : ledger_.objects) ids.insert(id);
    for (const ObjectId& id : ids) clients_->remove(client(somebody, "c1"), id, kNoTimeout);
    const auto nothing_left = [&] { return (wrong = leftovers(*world_)).empty(); };
    wait_until(kPatience, wrong, nothing_left, Duration::ms(20));
  }

  std::uint64_t seed_;
  std::ostream* trace_;
  Limits limits_;
  Ledger ledger_;
  std::optional<World> world_;
  std::optional<Judge> judge_;
  std::optional<Clients> clients_;
  std::map<std::string, RequestNumber> requests_;
  std::map<std::string, ObjectId> objects_;
  std::map<std::pair<NodeIndex, std::string>, ClientKey> named_clients_;
  std::set<NodeIndex> disturbed_;  // kNobody stands for the network
};

}  // namespace

std::string run_scenario(const Scenario& scenario, std::uint64_t seed, std::ostream* trace) {
  return Player(seed, trace).play(scenario);
}

}  // namespace hoplite::sim
