// From what a person said to what a node needs: addresses parsed, the token read, and what would be unsafe refused.
#pragma once

#include "daemon_options.h"
#include "hoplite/error.h"
#include "node/node.h"

namespace hoplite {

// kInvalidArgument with a sentence that says what to do. Listening beyond loopback without a token is kNotAuthorised
// unless options.insecure.
Result<NodeOptions> node_options(const DaemonOptions& options);

}  // namespace hoplite
