// Where things are on this machine unless somebody says otherwise.
#pragma once

#include <string>

#include "hoplite/error.h"

namespace hoplite {

// The unix socket of this user's daemon: $XDG_RUNTIME_DIR/hoplite.sock, else /tmp/hoplite-UID/hoplite.sock. The folder
// need not exist; the daemon makes it, for this user only.
std::string default_socket_path();

// Makes the folder that `path` lies in, for this user only, if there is none. In /tmp somebody else may have made it first,
// to put something of theirs in our place: then kNotAuthorised.
Result<void> make_parent_folder(const std::string& path);

}  // namespace hoplite
