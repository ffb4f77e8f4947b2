// The socket file that clients connect to, and the right to use its path.
//
// A lock file beside it ("SOCKET.lock", flock) decides between two daemons that start at once; it holds the owner's pid.
// The socket file of a daemon that died is replaced, that of a live one is an error. Both files are removed on destruction.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "base/limits.h"
#include "base/unique_fd.h"
#include "hoplite/error.h"

namespace hoplite {

class UnixListener {
 public:
  // Creates the parent directory (0700) if it is missing. kUnavailable: "a daemon already runs at SOCKET (pid N)".
  static Result<std::unique_ptr<UnixListener>> open(const std::string& path, mode_t mode,
                                                    int backlog = ClientLimits{}.backlog);
  ~UnixListener();
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

  int fd() const { return socket_.get(); }
  const std::string& path() const { return path_; }

  // Stops listening and removes both files: whoever connects from now on finds nobody.
  void close();

 private:
  UnixListener(std::string path, UniqueFd lock, UniqueFd socket)
      : path_(std::move(path)), lock_(std::move(lock)), socket_(std::move(socket)) {}

  std::string path_;
  UniqueFd lock_;
  UniqueFd socket_;
};

}  // namespace hoplite
