#include "node/effects.h"

#include <cstring>

#include "base/check.h"

namespace hoplite {

struct EffectRunner::Visitor {
  EffectRunner& runner;
  Transport& transport;
  ByteView event_payload;

  ByteSpan bytes(const Extent& extent) const {
    CHECK(extent.offset <= runner.arena_.size() && extent.size <= runner.arena_.size() - extent.offset, extent.offset,
          extent.size, runner.arena_.size());
    return runner.arena_.subspan(extent.offset, extent.size);
  }

  ByteView payload(const effect::Send& send) const {
    switch (send.payload) {
      case effect::Payload::kNone: return {};
      case effect::Payload::kExtent: return bytes(send.extent);
    }
    return {};
  }

  void operator()(const effect::Send& e) const { transport.send(e.to, e.address, e.message, payload(e)); }
  void operator()(const effect::SendToAddress& e) const { transport.send_to_address(e.address, e.message); }
  void operator()(const effect::Disconnect& e) const { transport.disconnect(e.node); }
  void operator()(const effect::StorePayload& e) const {
    CHECK(e.extent.size == event_payload.size(), e.extent.size, event_payload.size());
    if (!event_payload.empty()) std::memcpy(bytes(e.extent).data(), event_payload.data(), event_payload.size());
  }

  void operator()(const effect::OpenCopy& e) const {
    transport.open_copy(e);
  }
  void operator()(const effect::GrowCopy& e) const { transport.grow_copy(e.copy, e.bytes); }
  void operator()(const effect::SealCopy& e) const { transport.seal_copy(e.copy, e.slice); }
  void operator()(const effect::Combine& e) const { transport.combine(e); }
  void operator()(const effect::FollowCopy& e) const { transport.follow_copy(e.copy); }
  void operator()(const effect::CloseCopy& e) const { transport.close_copy(e.copy); }
  void operator()(const effect::StartPull& e) const {
    transport.start_pull(e.parent, e.address, e.copy, e.pull, e.patience);
  }
  void operator()(const effect::CancelPull& e) const { transport.cancel_pull(e.transfer); }
  void operator()(const effect::AcceptPull& e) const { transport.accept_pull(e.channel, e.serve, e.copy, e.pull); }
  void operator()(const effect::RefusePull& e) const { transport.refuse_pull(e.channel, e.transfer, e.code); }
  void operator()(const effect::PrioritizePull&) const {}

  void operator()(const effect::Reply& e) const { runner.clients_.reply(e.client, e.request, e.message); }
  void operator()(const effect::Log& e) const { runner.log_.warn(e.text); }
};

void EffectRunner::run(const Effects& effects, ByteView payload) {
  const Visitor visitor{*this, transport_, payload};
  for (const Effect& effect : effects) std::visit(visitor, effect);
}

}  // namespace hoplite
