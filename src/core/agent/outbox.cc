#include "core/agent/outbox.h"

#include "base/check.h"
#include "base/coverage.h"

namespace hoplite {

void Outbox::begin_step(Time now, Effects& effects) {
  CHECK(effects_ == nullptr && now >= now_, now.ns, now_.ns);
  now_ = now;
  effects_ = &effects;
  given_bytes_.clear();
}

Effects& Outbox::effects() {
  CHECK(effects_ != nullptr);
  return *effects_;
}

const Address* Outbox::depend_on(NodeId node) {
  const Address* address = membership_.address_of(node);
  if (address != nullptr) membership_.touch(now_, node);
  return address;
}

Message Outbox::take_local() {
  CHECK(has_local());
  Message message = std::move(local_.front());
  local_.pop_front();
  return message;
}

void Outbox::send(NodeRef to, Message message, effect::Payload payload, Extent bytes) {
  if (to.id == self().id) {
    local_.push_back(std::move(message));
    return;
  }
  if (membership_.paths().is_blocked(to.id) && send_by_way_of_another(to, message, payload, bytes)) return;
  send_directly(to, std::move(message), payload, bytes);
}

void Outbox::send_directly(NodeRef to, Message message, effect::Payload payload, Extent bytes) {
  const Address* address = depend_on(to.id);
  if (address == nullptr) return;
  if (introduced_.insert(to).second)
    emit(effect::Send{to, *address, News{{{self(), own_, Life::kAlive}}}, effect::Payload::kNone, {}});
  if (payload == effect::Payload::kExtent) given_bytes_[to] += bytes.size;
  emit(effect::Send{to, *address, std::move(message), payload, bytes});
}

bool Outbox::takes_bytes(NodeRef to) const {
  const auto given = given_bytes_.find(to);
  const std::uint64_t now = given == given_bytes_.end() ? 0 : given->second;
  return now + progress_.backlog(to) < limits_.max_backlog_bytes;
}

// --- questions -----------------------------------------------------------------------------------------------------------

void Outbox::ask(NodeRef to, std::uint64_t number, Message message, std::optional<Extent> bytes, Turn turn) {
  const auto payload = bytes ? effect::Payload::kExtent : effect::Payload::kNone;
  if (to.id == self().id) return send(to, std::move(message), payload, bytes.value_or(Extent{}));
  const bool fresh = asked_.try_emplace(number, Asked{to, true}).second;
  CHECK(fresh, number, to);
  Window& window = windows_[to];
  ++window.held;
  Held question{number, std::move(message), bytes};
  if (turn == Turn::kFirst) window.queue.push_front(std::move(question));
  else window.queue.push_back(std::move(question));
  if (window.held == 1) send_held(to);
  else due_.insert(to);
  if (is_held(number)) COVERAGE_MARK(question_waits_for_its_turn);
}

void Outbox::send_due() {
  for (const NodeRef& to : std::exchange(due_, {}))
    if (windows_.contains(to)) send_held(to);
}

bool Outbox::is_held(std::uint64_t number) const {
  const auto it = asked_.find(number);
  return it != asked_.end() && it->second.held;
}

void Outbox::answered(std::uint64_t number) {
  const auto it = asked_.find(number);
  if (it == asked_.end()) return;
  const Asked asked = it->second;
  asked_.erase(it);
  Window& window = windows_.at(asked.to);
  --(asked.held ? window.held : window.open);
  due_.insert(asked.to);
}

void Outbox::send_held(NodeRef to) {
  Window& window = windows_.at(to);
  while (window.held > 0 && window.open < limits_.max_open_questions) {
    Held next = std::move(window.queue.front());
    window.queue.pop_front();
    const auto asked = asked_.find(next.number);
    const bool waits = asked != asked_.end() && asked->second.held && asked->second.to == to;
    if (!waits) continue;  // taken back, and perhaps asked of another home
    asked->second.held = false;
    --window.held;
    ++window.open;
    const auto payload = next.bytes ? effect::Payload::kExtent : effect::Payload::kNone;
    send(to, std::move(next.message), payload, next.bytes.value_or(Extent{}));
  }
  if (window.held == 0) window.queue.clear();
  if (window.held + window.open == 0) windows_.erase(to);
}

void Outbox::drop_questions(NodeRef peer) {
  if (windows_.erase(peer) > 0) std::erase_if(asked_, [&](const auto& item) { return item.second.to == peer; });
}

void Outbox::check_invariants() const {
  CHECK(due_.empty(), due_.size());
  std::size_t known = 0;
  for (const auto& [peer, window] : windows_) {
    CHECK(window.open <= limits_.max_open_questions, peer, window.open);
    CHECK(window.held == 0 || window.open == limits_.max_open_questions, peer, window.open, window.held);
    CHECK(window.held <= window.queue.size() && window.held + window.open > 0, peer, window.held, window.queue.size());
    known += window.held + window.open;
  }
  CHECK(known == asked_.size(), known, asked_.size());
}

bool Outbox::send_by_way_of_another(NodeRef to, const Message& message, effect::Payload payload, Extent bytes) {
  const NodeRef helper = membership_.helper_for(to.id);
  if (helper.id.is_nil()) return false;
  COVERAGE_MARK(message_relayed);
  depend_on(to.id);
  Relay relay{self(), to, {}};
  encode_message(message, relay.message);
  send_directly(helper, std::move(relay), payload, bytes);
  return true;
}

std::vector<CutOff> Outbox::cut_off() const {
  std::vector<CutOff> all;
  for (const Paths::Blocked& path : membership_.paths().blocked(limits_.max_cut_off))
    all.push_back({path.peer, path.by_way_of});
  return all;
}

bool Outbox::pass_on(NodeRef to, const Relay& relay) {
  if (membership_.paths().is_blocked(to.id)) return false;
  send_directly(to, relay, effect::Payload::kReceived, {});
  return true;
}

}  // namespace hoplite
