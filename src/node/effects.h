// Carries out what the agent decided: each effect is one call on the transport, the clients, the arena or the log.
#pragma once

#include "base/bytes.h"
#include "core/agent/events.h"
#include "node/client_server.h"
#include "node/joiner.h"
#include "node/log.h"
#include "transport/transport.h"

namespace hoplite {

class EffectRunner {
 public:
  EffectRunner(Transport& transport, Joiner& joiner, ClientServer& clients, ByteSpan arena, Log& log)
      : transport_(transport), joiner_(joiner), clients_(clients), arena_(arena), log_(log) {}

  // In order. `payload` is that of the event whose step gave these effects.
  void run(const Effects& effects, ByteView payload);

 private:
  ByteSpan bytes(const Extent& extent) const;

  void carry_out(const effect::Send& e);
  void carry_out(const effect::SendToAddress& e) { joiner_.knock(e.address, e.message); }
  void carry_out(const effect::Disconnect& e) { transport_.disconnect(e.node); }
  void carry_out(const effect::StorePayload& e);
  void carry_out(const effect::Reply& e) { clients_.reply(e.client, e.request, e.message); }
  void carry_out(const effect::Log& e) {
    log_.write(e.kind == effect::Log::Kind::kFact ? LogLevel::kInfo : LogLevel::kWarn, e.text);
  }
  void carry_out(const effect::Happened&) {}  // the narrator tells
  template <typename Command>
    requires requires(dataplane::DataPlane& plane, const Command& command) { plane.execute(command); }
  void carry_out(const Command& e) {
    transport_.data_plane().execute(e);
  }

  Transport& transport_;
  Joiner& joiner_;
  ClientServer& clients_;
  ByteSpan arena_;
  Log& log_;
  ByteView payload_;  // of the event, while its effects run
};

}  // namespace hoplite
