// From a path to an attached client: connect, greeting, proof, welcome, mapping.
#pragma once

#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "client/call.h"
#include "client/frame_reader.h"
#include "hoplite/client.h"
#include "protocol/client_messages.h"
#include "shm/client_mapping.h"

namespace hoplite::client {

struct Attachment {
  std::string socket_path;
  UniqueFd socket;
  // While it is open, the daemon leaves alone what this process views and writes. Before the mapping, so that it ends later.
  UniqueFd lease;
  ipc::Welcome welcome;
  std::unique_ptr<ClientMapping> mapping;
  FrameReader frames;  // may already hold what came behind the welcome
};

Result<Attachment> attach(const ConnectOptions& options);
// The same on a socket that is connected already; `path` is for messages.
Result<Attachment> attach(UniqueFd socket, const std::string& path, const std::string& token, const Deadline& deadline);

}  // namespace hoplite::client
