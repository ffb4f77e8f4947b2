#include "node/narrator.h"

#include <type_traits>
#include <variant>

#include "protocol/metadata.h"

namespace hoplite {
namespace {

// Some are never answered: their connections have ended. Forgetting who asked costs a word in the log.
constexpr std::size_t kMaxAsked = 4096;

std::string_view in_words(Loss why) {
  static constexpr std::string_view kWords[] = {"the connection ended", "it refuses connections", "it does not answer",
                                                "somebody else answers at its address", "token or version differ"};
  return kWords[static_cast<std::size_t>(why)];
}

std::string_view in_words(PullEnd how) {
  static constexpr std::string_view kWords[] = {"complete", "it refused", "it gave up", "the connection was lost",
                                                "not needed any more"};
  return kWords[static_cast<std::size_t>(how)];
}

std::string speed(std::uint64_t bytes, Duration took) {
  std::string text = format_size(bytes) + " in " + format_duration(took);
  if (took.ns > 0 && bytes > 0) text += ", " + format_rate(static_cast<double>(bytes) / took.seconds());
  return text;
}

template <typename T>
constexpr bool has_metadata = requires(const T& message) { message.id, message.meta; };
template <typename T>
constexpr bool has_names = requires(const T& message) { message.names; };

}  // namespace

void Narrator::tell(Time now, const Event& event) {
  std::visit([&](const auto& e) { on(now, e); }, event);
}

void Narrator::tell(Time now, const Effects& effects) {
  for (const Effect& effect : effects) std::visit([&](const auto& e) { on(now, e); }, effect);
}

void Narrator::learn(const ObjectId& id, const std::string& metadata) { names_.add(name_in_metadata(id, metadata)); }

void Narrator::learn(const std::vector<std::string>& names) {
  for (const std::string& name : names) names_.add(name);
}

// --- peers and clients ---------------------------------------------------------------------------------------------------

void Narrator::on(Time, const event::Received& e) {
  if (peers_.insert(e.from).second) log_.debug("peer " + e.from.to_string() + ": connected");
  std::visit(
      [&](const auto& message) {
        using T = std::decay_t<decltype(message)>;
        if constexpr (has_metadata<T>) learn(message.id, message.meta);
        if constexpr (std::is_same_v<T, ReduceRequest>) learn(message.spec.names);
        if constexpr (has_names<T>) learn(message.names);
      },
      e.message);
}

void Narrator::on(Time, const event::PeerLost& e) {
  peers_.erase(e.peer);
  log_.debug("peer " + e.peer.to_string() + ": lost: " + std::string(in_words(e.why)));
}

void Narrator::on(Time, const event::ClientAsked& e) {
  std::visit(
      [&](const auto& message) {
        using T = std::decay_t<decltype(message)>;
        if constexpr (has_metadata<T>) learn(message.id, message.meta);
        if constexpr (std::is_same_v<T, ipc::Reduce>) learn(message.spec.names);
        if constexpr (has_names<T>) learn(message.names);
      },
      e.message);
}

void Narrator::on(Time, const event::ClientGone& e) { log_.debug("client " + std::to_string(e.client) + ": gone"); }

// --- transfers to this node ----------------------------------------------------------------------------------------------

void Narrator::on(Time now, const effect::StartPull& e) {
  pulls_.insert_or_assign(e.pull.transfer, Pull{e, now});
  const std::string part = e.pull.slices > 1
                               ? ", slice " + std::to_string(e.pull.slice) + " of " + std::to_string(e.pull.slices)
                               : std::string();
  log_.debug("transfer " + std::to_string(e.pull.transfer) + ": asks node " + e.parent.id.to_string() + " for object " +
             object(e.pull.id) + part + (e.pull.offset > 0 ? " from " + format_size(e.pull.offset) + " on" : ""));
}

void Narrator::on(Time now, const event::PullAccepted& e) {
  const auto it = pulls_.find(e.transfer);
  if (it == pulls_.end()) return;
  log_.debug("transfer " + std::to_string(e.transfer) + ": accepted after " + format_duration(now - it->second.at));
  it->second.at = now;
}

void Narrator::on(Time, const event::PullSilent& e) {
  const auto it = pulls_.find(e.transfer);
  if (it == pulls_.end()) return;
  log_.debug("transfer " + std::to_string(e.transfer) + ": node " + it->second.start.parent.id.to_string() +
             " has been silent for " + format_duration(it->second.start.patience));
}

void Narrator::on(Time now, const event::PullEnded& e) {
  const auto it = pulls_.find(e.transfer);
  if (it == pulls_.end()) return;
  const effect::StartPull& start = it->second.start;
  const std::uint64_t front = e.valid.front();
  const std::uint64_t bytes = front > start.pull.offset ? front - start.pull.offset : 0;
  log_.debug("transfer " + std::to_string(e.transfer) + ": object " + object(start.pull.id) + " from node " +
             start.parent.id.to_string() + ": " + speed(bytes, now - it->second.at) + "; " +
             std::string(in_words(e.how)));
  pulls_.erase(it);
}

// --- transfers from this node --------------------------------------------------------------------------------------------

void Narrator::on(Time, const event::PullAsked& e) {
  if (asked_.size() >= kMaxAsked) asked_.clear();
  asked_[{e.channel, e.pull.transfer}] = e.peer.id;
}

void Narrator::on(Time, const effect::RefusePull& e) {
  const auto asked = asked_.extract({e.channel, e.transfer});
  if (!asked.empty())
    log_.debug("refuses a transfer to node " + asked.mapped().to_string() + ": " + std::string(code_name(e.code)));
}

void Narrator::on(Time now, const effect::AcceptPull& e) {
  const auto asked = asked_.extract({e.channel, e.pull.transfer});
  const NodeId peer = asked.empty() ? NodeId{} : asked.mapped();
  serves_.insert_or_assign(e.serve, Serve{e.pull.id, peer, now});
  log_.debug("sends object " + object(e.pull.id) + " to node " + peer.to_string() +
             (e.pull.offset > 0 ? " from " + format_size(e.pull.offset) + " on" : ""));
}

void Narrator::on(Time now, const event::ServeEnded& e) {
  const auto serve = serves_.extract(e.serve);
  if (serve.empty()) return;
  log_.debug("has stopped sending object " + object(serve.mapped().id) + " to node " + serve.mapped().peer.to_string() +
             " after " + format_duration(now - serve.mapped().at));
}

// --- what the agent says -------------------------------------------------------------------------------------------------

void Narrator::on(Time, const effect::Happened& e) {
  const std::string who = object(e.id);
  switch (e.what) {
    case effect::Happened::What::kEvicted:
      return log_.debug("evicted the copy of object " + who + ", " + format_size(e.bytes));
    case effect::Happened::What::kReduceStarted: return log_.debug("reduce " + who + ": started, coordinated here");
    case effect::Happened::What::kReduceDone: return log_.debug("reduce " + who + ": done, " + format_size(e.bytes));
    case effect::Happened::What::kReduceFailed: return log_.debug("reduce " + who + ": failed: " + e.why);
  }
}

}  // namespace hoplite
