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

std::optional<Time> Outbox::detour(NodeId peer) const {
  const auto it = detours_.find(peer);
  return it == detours_.end() || it->second <= now_ ? std::nullopt : std::optional(it->second);
}

void Outbox::send(NodeRef to, Message message, effect::Payload payload, Extent bytes) {
  if (to.id == self().id) {
    local_.push_back(std::move(message));
    return;
  }
  const Address* address = depend_on(to.id);
  if (address == nullptr) return;
  if (payload == effect::Payload::kNone && detour(to.id) && send_by_way_of_another(to, message)) return;
  if (introduced_.insert(to).second)
    emit(effect::Send{to, *address, News{{{self(), own_, Life::kAlive}}}, effect::Payload::kNone, {}});
  emit(effect::Send{to, *address, std::move(message), payload, bytes});
}

bool Outbox::send_by_way_of_another(NodeRef to, const Message& message) {
  const NodeRef helper = membership_.random_member(to.id);
  if (helper.id.is_nil() || detours_.contains(helper.id)) return false;
  COVERAGE_MARK(message_relayed);
  Relay relay{self(), to, {}};
  encode_message(message, relay.message);
  send(helper, std::move(relay));
  return true;
}

}  // namespace hoplite
