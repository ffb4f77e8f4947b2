// Where things are on this machine unless somebody says otherwise.
#pragma once

#include <string>
#include <vector>

#include "hoplite/error.h"

namespace hoplite {

// The unix socket of this user's daemon: $XDG_RUNTIME_DIR/hoplite.sock, else /tmp/hoplite-UID/hoplite.sock. The folder
// need not exist; the daemon makes it, for this user only.
std::string default_socket_path();

// Where this user's other daemons listen at a default socket: one that was started with another $XDG_RUNTIME_DIR, or without
// it. With the variable set, only the place without it counts: whoever sets it has chosen one.
std::vector<std::string> other_default_sockets();
// The same from the text of /proc/net/unix; not checked for their owner.
std::vector<std::string> default_sockets_in(const std::string& proc_net_unix);
// "; your daemons listen at A and B: ..." for errors; "" if there are none.
std::string choose_among(const std::vector<std::string>& sockets);

// Makes the folder that `path` lies in, for this user only, if there is none. In /tmp somebody else may have made it first,
// to put something of theirs in our place: then kNotAuthorised.
Result<void> make_parent_folder(const std::string& path);

}  // namespace hoplite
