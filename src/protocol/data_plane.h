// What is asked of the data plane and what it reports. These are the only declarations: the agent emits the commands and
// receives the events, the daemon and the simulator pass them on, and src/dataplane carries them out.
//
// A copy is opened before it is pulled into or served from. Offsets count from the start of the object, also in a copy that
// has only one slice of it.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "base/address.h"
#include "base/extent.h"
#include "base/node_id.h"
#include "hoplite/dtype.h"
#include "hoplite/priority.h"
#include "protocol/bulk.h"
#include "protocol/transfer.h"
#include "protocol/valid_bytes.h"

namespace hoplite {

namespace effect {

struct OpenCopy {
  CopyKey copy = 0;
  Extent extent;
  std::uint32_t slices = 1;
  bool complete = false;
  // Of an object of this size the copy has only this slice, and the extent is just that; kAllSlices: all of it.
  std::uint64_t size = 0;
  std::uint32_t only = kAllSlices;

  std::uint64_t object_size() const { return only == kAllSlices ? extent.size : size; }
};

struct GrowCopy {  // written by a client: the first `bytes` are valid (one slice)
  CopyKey copy = 0;
  std::uint64_t bytes = 0;
};

struct SealCopy {  // all bytes are there and committed: its serves may end with kEnd
  CopyKey copy = 0;
  std::uint32_t slice = kAllSlices;  // or only this one's
};

// A slice of `out`, empty so far and whole elements long, is to become the combination of the inputs, element by element, as
// far as all of them are valid. event::Combined at the end; until then, or until `out` is closed, the inputs stay open.
struct Combine {
  struct Input {
    CopyKey copy = 0;
    std::uint32_t slice = 0;  // how far it is: this slice's valid bytes
    std::uint64_t begin = 0;  // where the bytes begin, from the start of the object
  };
  CopyKey out = 0;
  std::uint32_t slice = 0;
  ReduceOp op = ReduceOp::kSum;
  DType type = DType::kF32;
  std::uint64_t divide_by = 1;
  bool final = false;  // the slice's serves may end with kEnd once it is complete; otherwise sealing says so
  std::vector<Input> inputs;
};

struct FollowCopy {  // event::CopyGrown from now on
  CopyKey copy = 0;
};

struct CloseCopy {  // abort its serves and pulls; CopyClosed when done (ServeEnded and PullEnded come before)
  CopyKey copy = 0;
};

struct StartPull {
  NodeRef parent;
  Address address;
  CopyKey copy = 0;
  PullRequest pull;
  Duration patience;  // so much silence is reported
};

struct CancelPull {
  TransferId transfer = 0;
};

struct PrioritizePull {  // another priority than it was started with, from now on. The parent hears of it.
  TransferId transfer = 0;
  Priority priority = Priority::kNormal;
};

struct AcceptPull {
  ChannelId channel = 0;
  ServeId serve = 0;
  CopyKey copy = 0;
  PullRequest pull;
};

struct RefusePull {
  ChannelId channel = 0;
  TransferId transfer = 0;
  Code code = Code::kUnavailable;
};

}  // namespace effect

using DataPlaneCommand = std::variant<effect::OpenCopy, effect::GrowCopy, effect::SealCopy, effect::Combine,
                                      effect::FollowCopy, effect::CloseCopy, effect::StartPull, effect::CancelPull,
                                      effect::PrioritizePull, effect::AcceptPull, effect::RefusePull>;

namespace event {

struct PullAsked {  // a peer wants bytes of a copy
  NodeRef peer;
  ChannelId channel = 0;
  PullRequest pull;
};

struct PullAccepted {
  TransferId transfer = 0;
};

struct PullSilent {  // no frame for as long as it was to be patient. The pull goes on until it is cancelled.
  TransferId transfer = 0;
};

struct PullEnded {  // and no thread touches the copy for it any more
  TransferId transfer = 0;
  PullEnd how = PullEnd::kComplete;
  ValidBytes valid;  // of the slice
};

struct ServePrioritized {  // the child wants it at another priority
  ServeId serve = 0;
  Priority priority = Priority::kNormal;
};

struct ServeEnded {  // all sent, cancelled by the child, the copy is closed, or the connection is gone
  ServeId serve = 0;
};

struct CopyClosed {  // answers effect::CloseCopy: no thread touches the extent any more
  CopyKey copy = 0;
};

struct Combined {  // effect::Combine has come to its end
  CopyKey out = 0;
  std::uint32_t slice = 0;
};

struct CopyGrown {  // only for copies with effect::FollowCopy; may skip steps
  CopyKey copy = 0;
};

}  // namespace event

using DataPlaneEvent =
    std::variant<event::PullAsked, event::PullAccepted, event::PullSilent, event::PullEnded, event::ServePrioritized,
                 event::ServeEnded, event::CopyClosed, event::Combined, event::CopyGrown>;

}  // namespace hoplite
