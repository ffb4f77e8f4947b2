// Carries out what the agent decided: each effect is one call on the transport, the clients, the arena or the log.
#pragma once

#include "base/bytes.h"
#include "core/agent/events.h"
#include "node/client_server.h"
#include "node/log.h"
#include "transport/transport.h"

namespace hoplite {

class EffectRunner {
 public:
  EffectRunner(Transport& transport, ClientServer& clients, ByteSpan arena, Log& log)
      : transport_(transport), clients_(clients), arena_(arena), log_(log) {}

  // In order. `payload` is that of the event whose step gave these effects.
  void run(const Effects& effects, ByteView payload);

 private:
  struct Visitor;

  Transport& transport_;
  ClientServer& clients_;
  ByteSpan arena_;
  Log& log_;
};

}  // namespace hoplite
