#include "node/unix_listener.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "base/paths.h"
#include "shm/fd_passing.h"

namespace hoplite {
namespace {

std::string lock_path(const std::string& path) { return path + ".lock"; }

Error failed(const std::string& what) { return Error{Code::kUnavailable, what + ": " + std::strerror(errno)}; }

Result<sockaddr_un> unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return Error{Code::kInvalidArgument, "the socket path '" + path + "' must have 1 to " +
                                             std::to_string(sizeof address.sun_path - 1) + " bytes"};
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Error already_runs(const std::string& path, const std::string& pid) {
  return Error{Code::kUnavailable, "a daemon already runs at " + path + (pid.empty() ? "" : " (pid " + pid + ")")};
}

std::string pid_in(int lock) {
  char text[24] = {};
  const ssize_t size = ::pread(lock, text, sizeof text - 1, 0);
  std::string pid(text, size > 0 ? static_cast<std::size_t>(size) : 0);
  while (!pid.empty() && pid.back() == '\n') pid.pop_back();
  return pid.find_first_not_of("0123456789") == std::string::npos ? pid : std::string();
}

bool is_file(int fd, const std::string& path) {
  struct stat ours{};
  struct stat named{};
  return ::fstat(fd, &ours) == 0 && ::stat(path.c_str(), &named) == 0 && ours.st_dev == named.st_dev &&
         ours.st_ino == named.st_ino;
}

Result<UniqueFd> take_lock(const std::string& path) {
  const std::string name = lock_path(path);
  for (;;) {
    UniqueFd lock(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (lock.get() < 0) return failed("cannot open " + name);
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return already_runs(path, pid_in(lock.get()));
      return failed("cannot lock " + name);
    }
    // A daemon that stopped just now may have removed the file that we have locked: then the name is up for grabs again.
    if (!is_file(lock.get(), name)) continue;
    const std::string pid = std::to_string(::getpid()) + "\n";
    if (::ftruncate(lock.get(), 0) != 0 || ::pwrite(lock.get(), pid.data(), pid.size(), 0) < 0) {
      // The pid is for people only; the lock works without it.
    }
    return lock;
  }
}

// The pid of whoever listens at `path`; nullopt: nobody does.
std::optional<pid_t> listening_pid(const sockaddr_un& address) {
  UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int connected = ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (connected != 0 && errno != EAGAIN) return std::nullopt;  // EAGAIN: its backlog is full, but it is there
  const auto peer = connected == 0 ? peer_of(probe.get()) : std::nullopt;
  return peer ? peer->pid : 0;
}

Result<UniqueFd> bind_socket(const std::string& path, const sockaddr_un& address, mode_t mode, int backlog) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.get() < 0) return failed("cannot create a Unix socket");
  // The mode of the descriptor is that of the file bind() makes, so at no time is it open to more users than asked for.
  if (::fchmod(socket.get(), mode) != 0) return failed("cannot set the permissions of a Unix socket");
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return failed("cannot create the socket " + path);
  if (::chmod(path.c_str(), mode) != 0 || ::listen(socket.get(), backlog) != 0) {
    const Error error = failed("cannot listen at " + path);
    ::unlink(path.c_str());
    return error;
  }
  return socket;
}

}  // namespace

Result<std::unique_ptr<UnixListener>> UnixListener::open(const std::string& path, mode_t mode, int backlog) {
  auto address = unix_address(path);
  if (!address) return address.error();
  if (auto made = make_parent_folder(path); !made) return made.error();
  auto lock = take_lock(path);
  if (!lock) return lock.error();

  auto give_up = [&](Error error) {
    ::unlink(lock_path(path).c_str());
    return error;
  };
  if (auto pid = listening_pid(*address)) return give_up(already_runs(path, *pid > 0 ? std::to_string(*pid) : ""));
  struct stat old{};
  if (::lstat(path.c_str(), &old) == 0) {
    if (!S_ISSOCK(old.st_mode)) return give_up({Code::kInvalidArgument, path + " exists and is not a socket"});
    ::unlink(path.c_str());
  }
  auto socket = bind_socket(path, *address, mode, backlog);
  if (!socket) return give_up(socket.error());
  return std::unique_ptr<UnixListener>(new UnixListener(path, std::move(*lock), std::move(*socket)));
}

UnixListener::~UnixListener() { close(); }

void UnixListener::close() {
  if (socket_.get() < 0) return;
  ::unlink(path_.c_str());
  ::unlink(lock_path(path_).c_str());  // while it is still locked: see take_lock
  socket_.reset();
  lock_.reset();
}

}  // namespace hoplite
