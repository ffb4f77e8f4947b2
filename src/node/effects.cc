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

  template <typename Command>
    requires requires(dataplane::DataPlane& plane, const Command& command) { plane.execute(command); }
  void operator()(const Command& e) const {
    transport.data_plane().execute(e);
  }

  void operator()(const effect::Reply& e) const { runner.clients_.reply(e.client, e.request, e.message); }
  void operator()(const effect::Log& e) const { runner.log_.warn(e.text); }
};

void EffectRunner::run(const Effects& effects, ByteView payload) {
  const Visitor visitor{*this, transport_, payload};
  for (const Effect& effect : effects) std::visit(visitor, effect);
}

}  // namespace hoplite
