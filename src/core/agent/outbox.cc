#include "core/agent/outbox.h"

#include "base/check.h"
#include "base/coverage.h"

namespace hoplite {

void Outbox::begin_step(Time now, Effects& effects) {
  CHECK(effects_ == nullptr && now >= now_, now.ns, now_.ns);
  now_ = now;
  effects_ = &effects;
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
  emit(effect::Send{to, *address, std::move(message), payload, bytes});
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
