// Where things are on this machine unless somebody says otherwise.
#pragma once

#include <string>

namespace hoplite {

// The unix socket of this user's daemon: $XDG_RUNTIME_DIR/hoplite.sock, else /tmp/hoplite-UID/hoplite.sock. The folder
// need not exist; the daemon makes it, for this user only.
std::string default_socket_path();

}  // namespace hoplite
