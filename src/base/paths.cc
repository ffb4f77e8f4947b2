#include "base/paths.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

namespace hoplite {
namespace {

constexpr char kSocketName[] = "/hoplite.sock";

// nullptr if it is not set to anything useful.
const char* runtime_dir() {
  const char* folder = std::getenv("XDG_RUNTIME_DIR");
  return folder != nullptr && folder[0] == '/' ? folder : nullptr;
}

std::string socket_without_runtime_dir() { return "/tmp/hoplite-" + std::to_string(getuid()) + kSocketName; }

bool is_own_socket(const std::string& path) {
  struct stat info{};
  return lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode) && info.st_uid == getuid();
}

}  // namespace

std::string default_socket_path() {
  return runtime_dir() != nullptr ? std::string(runtime_dir()) + kSocketName : socket_without_runtime_dir();
}

std::vector<std::string> default_sockets_in(const std::string& proc_net_unix) {
  // Num RefCount Protocol Flags Type St Inode Path
  constexpr unsigned kListening = 0x10000;
  std::vector<std::string> found;
  std::istringstream lines(proc_net_unix);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string skipped;
    std::string path;
    unsigned flags = 0;
    fields >> skipped >> skipped >> skipped >> std::hex >> flags >> skipped >> skipped >> skipped >> std::ws;
    if (!fields || !std::getline(fields, path)) continue;
    if ((flags & kListening) != 0 && path.starts_with('/') && path.ends_with(kSocketName)) found.push_back(path);
  }
  return found;
}

std::vector<std::string> other_default_sockets() {
  std::ifstream file("/proc/net/unix");
  std::ostringstream text;
  text << file.rdbuf();
  std::vector<std::string> sockets = default_sockets_in(text.str());
  std::erase_if(sockets, [](const std::string& path) {
    const bool elsewhere = runtime_dir() == nullptr || path == socket_without_runtime_dir();
    return !elsewhere || path == default_socket_path() || !is_own_socket(path);
  });
  std::sort(sockets.begin(), sockets.end());
  sockets.erase(std::unique(sockets.begin(), sockets.end()), sockets.end());
  return sockets;
}

std::string choose_among(const std::vector<std::string>& sockets) {
  if (sockets.empty()) return "";
  std::string list;
  for (std::size_t i = 0; i < sockets.size(); ++i)
    list += (i == 0 ? "" : i + 1 == sockets.size() ? " and " : ", ") + sockets[i];
  return "; your daemons listen at " + list + ": choose one with --socket or HOPLITE_SOCKET";
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
  if (stat(folder.c_str(), &info) != 0) return failed("cannot access the directory ");
  if (info.st_uid != 0 && info.st_uid != geteuid())
    return Error{Code::kNotAuthorised, "the directory " + folder + " belongs to another user"};
  return {};
}

}  // namespace hoplite
