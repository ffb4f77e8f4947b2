// What I/O threads report to the loop thread, in order.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/node_id.h"
#include "protocol/bulk.h"
#include "protocol/transfer.h"
#include "transport/tcp/copy.h"

namespace hoplite::tcp {

namespace bulk_event {

struct PullAsked {
  NodeRef peer;
  ChannelId channel = 0;
  PullRequest pull;
};
struct PullAccepted {
  TransferId transfer = 0;
};
struct PullSilent {
  TransferId transfer = 0;
};
struct PullEnded {  // the thread does not touch the copy for it any more
  TransferId transfer = 0;
  PullEnd how = PullEnd::kComplete;
  ValidBytes valid;
};
struct ServeEnded {  // likewise
  ServeId serve = 0;
};
struct CombineEnded {  // likewise: neither what it made nor its inputs
  CopyKey out = 0;
  std::uint32_t slice = 0;
  bool complete = false;  // else it was stopped
};
struct CopyGrown {
  CopyPtr copy;
};
struct Refused {  // a peer that is to be told to the operator
  std::string host;
  std::string why;
};

}  // namespace bulk_event

using BulkEvent =
    std::variant<bulk_event::PullAsked, bulk_event::PullAccepted, bulk_event::PullSilent, bulk_event::PullEnded,
                 bulk_event::ServeEnded, bulk_event::CombineEnded, bulk_event::CopyGrown, bulk_event::Refused>;
using BulkEvents = std::vector<BulkEvent>;

}  // namespace hoplite::tcp
