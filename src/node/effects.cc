#include "node/effects.h"

#include <cstring>

#include "base/check.h"

namespace hoplite {

void EffectRunner::run(const Effects& effects, ByteView payload) {
  payload_ = payload;
  for (const Effect& effect : effects) std::visit([this](const auto& e) { carry_out(e); }, effect);
}

ByteSpan EffectRunner::bytes(const Extent& extent) const {
  CHECK(extent.offset <= arena_.size() && extent.size <= arena_.size() - extent.offset, extent.offset, extent.size,
        arena_.size());
  return arena_.subspan(extent.offset, extent.size);
}

void EffectRunner::carry_out(const effect::Send& e) {
  ByteView payload;
  if (e.payload == effect::Payload::kExtent) payload = bytes(e.extent);
  if (e.payload == effect::Payload::kReceived) payload = payload_;
  transport_.send(e.to, e.address, e.message, payload);
}

void EffectRunner::carry_out(const effect::StorePayload& e) {
  CHECK(e.extent.size == payload_.size(), e.extent.size, payload_.size());
  if (!payload_.empty()) std::memcpy(bytes(e.extent).data(), payload_.data(), payload_.size());
}

}  // namespace hoplite
