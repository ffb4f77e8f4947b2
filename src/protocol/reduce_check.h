// Which reduces make sense at all, whatever the objects turn out to be. The client asks before it sends one; the daemon asks
// again, because it does not trust clients.
#pragma once

#include <optional>
#include <span>

#include "hoplite/error.h"
#include "hoplite/object_id.h"
#include "protocol/reduce.h"

namespace hoplite {

// kInvalidArgument with a sentence, or nothing if all is well. A nil target is somebody else's to mint.
std::optional<Error> check(const ReduceSpec& spec);

// The part of it about ids, for sources that are added later: at least one, none nil, none twice, not the target.
std::optional<Error> check_sources(const ObjectId& target, std::span<const ObjectId> sources);

}  // namespace hoplite
