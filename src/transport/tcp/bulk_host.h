// What a bulk connection needs of the I/O thread it lives on.
#pragma once

#include "base/limits.h"
#include "transport/loop.h"
#include "transport/tcp/bulk_events.h"
#include "transport/tcp/counters.h"
#include "transport/tcp/handshake.h"
#include "transport/tcp/rate_limiter.h"
#include "transport/tcp/rate_meter.h"

namespace hoplite::tcp {

class ServeConnection;

class BulkHost {
 public:
  virtual ~BulkHost() = default;

  // It is to be destroyed after this batch of the loop.
  virtual void connection_broken() = 0;
  virtual void emit(BulkEvent event) = 0;
  // A pull or a combination has moved a watermark, or made a slice final: go on with what follows the copy.
  virtual void copy_advanced(Copy& copy) = 0;
  virtual void pull_ended(TransferId transfer) = 0;
  virtual void serve_began(ServeConnection& connection, TransferId transfer, ServeId serve, Copy& copy) = 0;
  virtual void serve_ended(ServeConnection& connection, TransferId transfer, ServeId serve, Copy& copy) = 0;
};

struct BulkContext {  // all of it outlives the connections
  Loop& loop;
  BulkHost& host;
  const Identity& identity;
  const Limits& limits;
  RateLimiter& limiter;
  RateMeters& meters;
  Counters& counters;
};

}  // namespace hoplite::tcp
