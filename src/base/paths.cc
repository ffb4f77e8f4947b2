#include "base/paths.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace hoplite {

std::string default_socket_path() {
  const char* runtime_dir = std::getenv("XDG_RUNTIME_DIR");
  if (runtime_dir != nullptr && runtime_dir[0] == '/') return std::string(runtime_dir) + "/hoplite.sock";
  return "/tmp/hoplite-" + std::to_string(getuid()) + "/hoplite.sock";
}

Result<void> make_parent_folder(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos || slash == 0) return {};
  const std::string folder = path.substr(0, slash);
  const auto failed = [&](const char* what) {
    return Error{Code::kUnavailable, what + folder + ": " + std::strerror(errno)};
  };
  if (mkdir(folder.c_str(), 0700) == 0) return {};
  if (errno != EEXIST) return failed("cannot create the directory ");
  struct stat info{};
  if (stat(folder.c_str(), &info) != 0) return failed("cannot look at the directory ");
  if (info.st_uid != 0 && info.st_uid != geteuid())
    return Error{Code::kNotAuthorised, "the directory " + folder + " belongs to another user"};
  return {};
}

}  // namespace hoplite
